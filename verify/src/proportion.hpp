#pragma once

#include <optional>

#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// Two tensors that are not rearranged, but multiples of each other.
struct Proportion {
  int exponent = 0;      ///< each element of the left side is 2^exponent times the right one's,
  bool negated = false;  ///< and its negative

  friend bool operator==(const Proportion&, const Proportion&) = default;
};

/// Whether all elements of two tensors of one floating-point dtype and one shape differ by the same
/// power of two or in their signs, exactly. Zeros, infinities and NaNs must be the same. Few
/// elements, or elements that are all powers of two, prove nothing: no answer. Reads both, no
/// further than up to the first panel that has other numbers. Throws as Reader::read does,
/// Error(out_of_memory), Error(stopped).
std::optional<Proportion> find_proportion(const JudgeContext& context, const Reader& left,
                                          std::size_t l, const Reader& right, std::size_t r);

/// Whether a tensor is, bit for bit, another of the same shape turned into its dtype.
/// Precondition: can_cast(theirs, ours).
bool is_cast_of(const JudgeContext& context, const Reader& ours, std::size_t our_tensor,
                const Reader& theirs, std::size_t their_tensor);

}  // namespace remesh::detail
