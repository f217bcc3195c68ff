#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/execute/context.hpp"
#include "remesh/execute/selection.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"

namespace remesh {

struct TransferOptions {
  /// Re-read every file from the medium after it was synced, and prove that as well.
  bool read_back = false;
  /// The target may have fewer tensors than the source, and some of them in another dtype
  /// (can_cast). Without, either is an error: nobody loses a number that he did not name.
  bool may_change = false;
  /// What the target leaves out and why, for the certificate; may be null.
  const Left* left = nullptr;
  std::string cast_reason;                 ///< why dtypes change: "--dtype bf16"
  std::string source_name = "CHECKPOINT";  ///< what messages call the source
  /// Whether all copies were looked at before: then messages propose that no more.
  bool copies_chosen = false;
  /// Called when all is proved; what it throws, transfer() throws, and nothing is published.
  std::function<void()> before_publish = {};
};

/// What was proved about the bytes of the target.
enum class Proved {
  sent,       ///< those handed to the file system are the source's
  read_back,  ///< those read from the medium again are the source's
};

struct Outcome {
  std::int64_t tensors = 0;
  std::int64_t read_bytes = 0;      ///< payload read from the source, each byte once
  std::int64_t written_bytes = 0;   ///< payload written to the target, each byte of each copy once
  std::int64_t stored_bytes = 0;    ///< what they take up, compressed
  std::int64_t kept_bytes = 0;      ///< what ranks hold and held before; every replica counts
  std::int64_t moved_bytes = 0;     ///< what they hold and held not
  std::int64_t recorded = 0;        ///< tensors whose digest the source had recorded, and matched
  std::int64_t cast_tensors = 0;    ///< tensors that have another dtype now
  std::int64_t rounded_values = 0;  ///< their values that are not the same any more
  std::int64_t replicas_not_compared = 0;  ///< tensors of which the source stores several copies
  Proved proved = Proved::sent;
  bool directory_synced = true;
  std::string certificate;  ///< the text that others can check (certificate.hpp)
};

/// Moves every tensor of `source` into `target`, proves it, and publishes it. The one engine behind
/// reshard() and convert().
///
/// Three figures are computed for each tensor: S from the bytes as they were read, each run placed
/// by its offset in the source file; T from the bytes as they were written, each run placed by its
/// offset in the target file through what those files say when they are parsed back; M, the digest
/// that the source recorded, if any. Unless S = T (= M), and each element passed exactly once on
/// both sides, nothing is published.
///
/// Where a dtype changes, S is of the values as cast_by_the_book() has them: the cast is proved by
/// recomputing it.
///
/// Throws Error(corrupt, RM207) if S != M, naming tensor and both digests; Error(corrupt, RM301) if
/// the source was not covered; Error(internal) if S != T or the target was not covered;
/// Error(out_of_memory) if the budget is too small for one panel for each worker;
/// Error(unsupported) if a value is beyond the new dtype; Error(stopped).
Outcome transfer(Context& context, const Reader& source, Writer& target,
                 const TransferOptions& options);

}  // namespace remesh
