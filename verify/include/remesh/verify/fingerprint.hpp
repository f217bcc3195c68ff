#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// A lock file: one line for each tensor, sorted by name, for git and CI.
///
///     # remesh fingerprint 1
///     model.norm.weight bf16 [64] crc64xz:0123456789abcdef
///
/// Names are percent-encoded where they hold white space, '%' or control characters.
std::string fingerprint_text(std::span<const TensorDesc> tensors, std::span<const Digest> digests);

struct FingerprintLine {
  std::string name;
  std::string dtype;
  std::vector<Index> shape;
  Digest digest;

  friend bool operator==(const FingerprintLine&, const FingerprintLine&) = default;
};

/// Throws Error(invalid_argument), with the line's number, for text that fingerprint_text does not
/// write, and Error(unsupported) for another version.
std::vector<FingerprintLine> parse_fingerprint(std::string_view text, std::string_view where);

/// RM302 for a tensor of the lock file that is missing, RM310 for one that is not in it, RM303 for
/// another dtype or shape, RM311 for another digest.
std::vector<Finding> compare_fingerprint(std::span<const FingerprintLine> expected,
                                         std::span<const TensorDesc> tensors,
                                         std::span<const Digest> digests);

}  // namespace remesh
