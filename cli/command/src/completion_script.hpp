#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace remesh {

/// A shell's completion of the program's verbs and options, taken from what CLI11 knows of them.
/// `shell` is "bash", "zsh" or "fish".
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace remesh
