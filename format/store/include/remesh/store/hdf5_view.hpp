#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "remesh/store/reader.hpp"

/// @file
/// A shard is read by its own index, and by others through libhdf5. Whether the two agree is asked
/// of libhdf5 itself, which is C and may crash or hang on a hostile file: a child process writes
/// down what the library sees (the view), and the parent compares the text with the index.
///
/// The view is lines. The first is "hdf5-view 1", the last "end", or "failed REASON" where the
/// library gave up. Between them "userblock BYTES" and the objects, each a line "KIND PATH" and
/// then its properties, a line " KEY VALUE" for each. In names, all that is no plain letter, and
/// '/' and '%', is percent-encoded.

namespace remesh {

using TextSink = std::function<void(std::string_view text)>;

/// Writes the view of an HDF5 file. For a process that may die of it: the caller has set its
/// limits. Never throws for what is wrong with the file; what `sink` throws passes through.
void write_hdf5_view(const FileSystem::Path& path, const TextSink& sink);

/// The files of a checkpoint that libhdf5 can read, and whose indexes were read.
std::vector<std::uint32_t> files_with_hdf5_view(const Reader& reader);

/// Compares the view of one file with its index. The view is believed in nothing: it comes from a
/// process that read hostile bytes.
class Hdf5ViewCheck {
 public:
  /// Both arguments must outlive the check. Reads the file's header.
  Hdf5ViewCheck(const Reader& reader, std::uint32_t file, Findings& findings);
  Hdf5ViewCheck(const Hdf5ViewCheck&) = delete;
  Hdf5ViewCheck& operator=(const Hdf5ViewCheck&) = delete;
  ~Hdf5ViewCheck();

  /// The next bytes of the view. What libhdf5 sees otherwise than the index says is RM211; what
  /// leads out of the file is RM606; a filter that the index does not mean is RM607. A dataset of
  /// so many frames that a view has only some of them gets a note (RM211). Throws Error(corrupt,
  /// RM211) for text that is no view, or more than an honest file's.
  void feed(std::string_view text);

  /// There is no more. Throws Error(corrupt, RM211) if the view has no end.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace remesh
