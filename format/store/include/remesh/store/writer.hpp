#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/core/progress.hpp"
#include "remesh/schema/catalog.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/staging.hpp"

namespace remesh {

class SecretKey;

struct WriterOptions {
  /// Native: how many of a piece's holders store it; more than there are means all.
  std::int64_t copies = 1;
  /// hf: the most payload bytes of one file, or nothing to keep the packaging of the source (and,
  /// where it has none, 5 GB).
  std::optional<std::int64_t> shard_size_bytes = std::nullopt;
  /// Native: the level of zstd, 1 to 19, or nothing to leave payload as it is.
  std::optional<int> compress_level = std::nullopt;
  /// Native: the key that signs the manifest, or null.
  std::shared_ptr<const SecretKey> sign = nullptr;
  /// Hash the files that are signed; 0 means one for each processor that this process may use.
  int sign_threads = 0;
  /// Heard meanwhile, or null.
  const StopFlag* sign_stop = nullptr;
  /// Names the temporary directory: the same job gets the same one.
  std::string job_id = {};
  /// What becomes of what an earlier job of the same name left behind, if nobody holds it.
  Leftovers leftovers = Leftovers::refuse;
  /// What must be the same for a job to be resumed: lines of text.
  std::string identity = {};
};

/// What WriterOptions::compress_level takes, for so many that write at the same time, beside their
/// buffers and frames that wait for their turn. Throws Error(invalid_argument) if there is no such
/// level.
std::int64_t compressing_bytes(int level, int workers);

/// What reading a compressed checkpoint takes, beside buffers.
std::int64_t unpacking_bytes(int workers);

/// Where bytes go.
struct StoredAt {
  std::uint32_t file = 0;  ///< its number in ExtentMap::files
  std::int64_t offset_bytes = 0;

  friend bool operator==(const StoredAt&, const StoredAt&) = default;
};

/// Where a Writer puts the elements of `box`: a place in each extent that contains it. For writers.
/// A box without elements goes nowhere. Throws Error(internal) if no extent contains the box, or
/// its elements do not lie together in one that does.
std::vector<StoredAt> places_of(const ExtentMap& extents, std::size_t tensor,
                                const TensorDesc& desc, const Box& box);

/// The same of pieces in chunks: the frames that hold the elements of `box`, by their numbers.
/// Throws Error(internal) if it is no chunk.
std::vector<std::int64_t> frames_of(const ExtentMap& extents, std::size_t tensor,
                                    const TensorDesc& desc, const Box& box);

/// The side files of a checkpoint: their bytes, on request.
using SideSource = std::function<std::vector<std::byte>(const SideFile&)>;

/// The bytes of one, which are still those that were digested: throws Error(corrupt, RM207) if not.
/// For writers.
std::vector<std::byte> bytes_of(const SideSource& source, const SideFile& side);

/// The writing end of a checkpoint, in any format. The calls come in this order: write (from many
/// threads), seal, publish. A Writer that is destroyed before publish() leaves nothing behind,
/// unless its options say that it resumes.
class Writer {
 public:
  virtual ~Writer() = default;

  /// What is being written: the wanted catalog, as far as it is known before the payload.
  virtual const Catalog& catalog() const noexcept = 0;

  /// Where each piece is going to lie. Constant from creation on.
  virtual const ExtentMap& extents() const noexcept = 0;

  /// The same, parsed back from the files as they are now, by the code of the format's reader.
  virtual ExtentMap extents_on_medium() const = 0;

  /// Writes the elements of `box`, packed, into each stored copy of the piece that contains them.
  /// Precondition: one piece contains the box, and its elements lie together there; of a piece in
  /// chunks (Extent::chunk_dim) the box is one chunk. Chunks come best in the order of extents()
  /// and chunks, since those that come before their turn are kept in memory; `tap` may hear of
  /// their frames in a later call.
  virtual void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
                     const Tap& tap) = 0;

  /// What write() needs at most if so many call it at the same time, beside chunks that come before
  /// their turn.
  virtual std::int64_t working_bytes(int /*workers*/) const { return 0; }

  /// Completes and syncs every file. `digests` are the tensors' digests, in catalog order, and
  /// `block_crcs` those of all blocks, extent by extent in the order of extents().
  virtual void seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) = 0;

  /// After seal(): tells the system to drop what it caches of the files, so that what is read next
  /// comes from the medium, as far as the system lets one ask for that.
  virtual void forget_caches() = 0;

  /// Opens what seal() left, before it is published.
  virtual std::unique_ptr<Reader> reopen() const = 0;

  /// After seal(): puts `text`, the certificate of the job, where the format has a place for it.
  virtual void certify(const std::string& text) = 0;

  /// After seal(): the digest of what says what the checkpoint is; nothing where no file does.
  virtual std::optional<Digest> manifest_digest() const = 0;

  /// Gives the checkpoint its name and syncs that. Throws Error(exists) if something took the name
  /// meanwhile. Returns whether the parent directory could be synced.
  virtual bool publish() = 0;
};

}  // namespace remesh
