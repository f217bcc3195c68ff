#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/schema/tensor.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh {

/// What a lock file holds of each tensor's logical bytes: its elements, row-major, little-endian,
/// without padding, whatever the layout.
enum class DigestKind {
  crc64xz,  ///< "crc64xz:" and 16 hexadecimal digits: against accidents
  blake2b,  ///< "blake2b:" and 64, of BLAKE2b-256: against intent, if the lock file itself is safe
};

std::string_view to_string(DigestKind kind) noexcept;
std::optional<DigestKind> parse_digest_kind(std::string_view name) noexcept;

/// The digest of every tensor as a lock file writes it, in catalog order, recomputed from the
/// bytes. BLAKE2b takes one thread for each tensor. Throws as tensor_digests() does; for blake2b
/// also Error(out_of_memory) for a tensor of narrow elements whose rows are no whole bytes and that
/// does not fit in whole.
std::vector<std::string> fingerprint_digests(const JudgeContext& context, const Reader& reader,
                                             DigestKind kind);

/// A lock file: one line for each tensor, sorted by name, for git and CI. All digests are of one
/// kind.
///
///     # remesh fingerprint 1
///     model.norm.weight bf16 [64] crc64xz:0123456789abcdef
///
/// Names are percent-encoded where they hold white space, '%' or control characters.
std::string fingerprint_text(std::span<const TensorDesc> tensors,
                             std::span<const std::string> digests);

struct FingerprintLine {
  std::string name;
  std::string dtype;
  std::vector<Index> shape;
  std::string digest;  ///< as fingerprint_digests() writes it

  friend bool operator==(const FingerprintLine&, const FingerprintLine&) = default;
};

/// Throws Error(corrupt), with the line's number, for text that fingerprint_text does not
/// write, and Error(unsupported) for another version or another kind of digest.
std::vector<FingerprintLine> parse_fingerprint(std::string_view text, std::string_view where);

/// The kind of the digests of a lock file that was parsed; crc64xz where it has none.
DigestKind digest_kind_of(std::span<const FingerprintLine> lines) noexcept;

/// RM302 for a tensor of the lock file that is missing, RM310 for one that is not in it, RM303 for
/// another dtype or shape, RM311 for another digest.
std::vector<Finding> compare_fingerprint(std::span<const FingerprintLine> expected,
                                         std::span<const TensorDesc> tensors,
                                         std::span<const std::string> digests);

/// Where many names are of the lock file or of the checkpoint alone: a guess at how they belong
/// together, as a clause. Empty where there is none.
std::string fingerprint_hint(std::span<const FingerprintLine> expected,
                             std::span<const TensorDesc> tensors);

}  // namespace remesh
