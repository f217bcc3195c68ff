#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/sweep.hpp"

/// @file
/// Makes a whole copy of a damaged native checkpoint, as far as what is left of it says what it
/// was. Each byte of the copy is what the checkpoint recorded of itself: nothing is guessed that
/// is not checked against a recorded CRC afterwards.

namespace remesh {

enum class MendedBy {
  flip,    ///< the flipped bits that explain the CRC were flipped back
  copy,    ///< another stored copy of the same box has the recorded CRC
  rule,    ///< made again by the rules by which the writer makes it
  record,  ///< written again as another file of the checkpoint records it
  cut,     ///< what was appended was left out
};

/// "flip", "copy", "rule", "record", "cut"
std::string_view to_string(MendedBy by) noexcept;

/// A place that was not as recorded, and is.
struct Mend {
  std::string file;  ///< its name in the checkpoint
  ByteRange bytes;
  MendedBy by = MendedBy::flip;
  std::string how;          ///< "1 bit flipped back: bit 3 of byte 200000"
  std::string tensor = {};  ///< its name, or empty
  std::optional<Box> box = std::nullopt;

  friend bool operator==(const Mend&, const Mend&) = default;
};

struct RepairOptions {
  /// Names the temporary directory: the same job gets the same one.
  std::string job_id;
  /// Remove what an earlier job of the same name left behind, if nobody holds it.
  bool discard_leftovers = false;
  /// Find out what would be mended and what is lost, and write nothing. Then the destination may be
  /// empty.
  bool dry_run = false;
};

struct RepairReport {
  std::vector<Mend> mended;    ///< by file and offset
  std::vector<Finding> lost;   ///< what cannot be mended: if there is some, nothing was written
  std::vector<Finding> notes;  ///< warnings: files that were left out
  std::int64_t tensors = 0;
  std::int64_t written_bytes = 0;
  bool written = false;  ///< false where nothing was to be mended, too, and in a dry run
  /// The result is what was once written, byte for byte; false where manifest.json was rebuilt from
  /// the shards, and neither COMMIT nor the certificate records the same bytes.
  bool proven = true;
  bool directory_synced = true;
};

/// Repairs the checkpoint at `source` into `destination`, which is new. The source is only read.
///
/// A damaged block of payload comes from another copy that has the recorded CRC; otherwise a burst
/// (burst.hpp) is undone, in the block or in a copy. Damage to header, index or metadata of a shard
/// that is no burst, and a shard that is missing, are mended by making the shard again: with the
/// rules of today's writer, and only if its header then is the one that manifest.json records. How
/// long the frames of compressed payload were says its index, if that is there, or another copy.
/// A wrong COMMIT is written again if all that the manifest says holds; a burst in the manifest, in
/// a side file or in the certificate is undone. Before `destination` gets its name, all of it is
/// read again: each block, complement, side file and tensor digest, and the tree hashes where the
/// manifest has some.
///
/// A manifest that is missing, or damaged beyond that, is rebuilt if all shards are whole by their
/// own CRCs (with what a burst or a copy mends), of one save, and hold every tensor: which there
/// were the save id or the certificate proves; otherwise each rank must have its shard. What the
/// damaged one still says of layout and packaging counts if the save id of the shards, or COMMIT,
/// proves it; otherwise the layout is the simplest that gives each rank the boxes that it stores,
/// on the mesh that the certificate states if there is one. Then run id, layers, experts,
/// packaging, certificate and signature are lost, side files are taken as they lie, and the save id
/// is a new one, in the headers of the shards too: `proven` is false, and the notes say so. Digests
/// are those of the bytes, and if the certificate has others, all is refused.
///
/// A dry run does all of it but to write the copy and to read that again.
///
/// Throws Error(not_found, RM101) if nothing there is a native checkpoint; as Staging does; Error
/// (corrupt) if the result is not what the manifest records, or something but damage keeps it from
/// being read.
RepairReport repair_native(FileSystem& files, const FileSystem::Path& source,
                           const FileSystem::Path& destination, const RepairOptions& options,
                           const SweepContext& machine);

}  // namespace remesh
