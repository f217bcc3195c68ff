#pragma once

#include <span>
#include <string>
#include <vector>

#include "command.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace remesh {

/// The command line as CLI11 sees it: every verb, its options and its help.
/// `request` must outlive it.
void build_program(CLI::App& program, std::span<const Command> commands, Request& request);

/// Reads the arguments (without the program's name), does what they say, and returns the exit code.
/// Never throws: every failure is told on standard error, and with --json on standard output too.
int run_program(std::span<const Command> commands, const std::vector<std::string>& arguments,
                FileSystem& files, const StopFlag& stop) noexcept;

/// A verb with its name, what it is for, and examples that can be run as they stand. In these CKPT
/// stands for a native checkpoint, HF_DIR for a Hugging Face directory, OUT for a new path.
CLI::App* add_verb(CLI::App& program, const std::string& name, const std::string& purpose,
                   const std::vector<std::string>& examples);

}  // namespace remesh
