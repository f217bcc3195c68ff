#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/store/seal.hpp"
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
/// A checkpoint of a foreign format that has a seal (remesh/store/seal.hpp) has what that records:
/// digests, block CRCs and guards. `seal` is where it lies; empty: where seal_place() says.
/// Throws Error(not_found, RM101) if there is nothing at `path` or nothing that is a checkpoint
/// (the message says what was found there), Error(invalid_argument) for an unknown format name, or
/// a seal of a native checkpoint, which records all by itself.
std::unique_ptr<Reader> open_reader(const FileSystem& files, const FileSystem::Path& path,
                                    std::string_view from, Findings& findings,
                                    const FileSystem::Path& seal = {});

/// Where the seal of the checkpoint at `path` belongs: "remesh-seal.json" in a directory,
/// "NAME.remesh-seal.json" beside a file.
FileSystem::Path seal_place(const FileSystem& files, const FileSystem::Path& path);

/// A foreign checkpoint with all its files, to be sealed; a seal that it has is not looked at.
/// Throws as open_reader, and Error(unsupported) for a native one.
OpenCheckpoint open_to_seal(const FileSystem& files, const FileSystem::Path& path,
                            std::string_view from, Findings& findings);

/// The seal of the checkpoint at `path`, for who checks its signature; nothing if it has none.
/// `seal` as above.
std::optional<SignedSeal> find_signed_seal(const FileSystem& files, const FileSystem::Path& path,
                                           const FileSystem::Path& seal);

/// Starts to write `wanted` at `destination` in the format `wanted.format`.
/// Throws as create_native does; Error(invalid_argument) for an unknown format.
std::unique_ptr<Writer> create_writer(FileSystem& files, const FileSystem::Path& destination,
                                      Catalog wanted, const SideSource& side,
                                      const WriterOptions& options);

}  // namespace remesh
