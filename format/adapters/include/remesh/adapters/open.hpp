#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"

namespace remesh {

/// The formats that this build knows, as `--to` and `--from` name them: "remesh", "hf".
std::vector<std::string_view> format_names();

/// The format of what lies at `path`, from its content; nothing if no format recognises it.
std::optional<std::string> detect_format(const FileSystem& files, const FileSystem::Path& path);

/// Opens a checkpoint for reading, in the format `from` or, if empty, the detected one.
///
/// What is wrong goes to `findings` (see Findings); with a collecting one the result may be null.
/// An optimizer that does not fit its weights is wrong too (check_states).
/// Throws Error(not_found, RM101) if there is nothing at `path` or nothing that is a checkpoint
/// (the message says what was found there), Error(invalid_argument) for an unknown format name.
std::unique_ptr<Reader> open_reader(const FileSystem& files, const FileSystem::Path& path,
                                    std::string_view from, Findings& findings);

/// Starts to write `wanted` at `destination` in the format `wanted.format`.
/// Throws as create_native does; Error(invalid_argument) for an unknown format.
std::unique_ptr<Writer> create_writer(FileSystem& files, const FileSystem::Path& destination,
                                      Catalog wanted, const SideSource& side,
                                      const WriterOptions& options);

}  // namespace remesh
