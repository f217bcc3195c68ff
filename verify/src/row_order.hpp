#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// How the slices of one side come from those of the other.
struct OrderName {
  std::string id = "RM521";
  std::string name;   ///< "interleave(128)": short, and stable
  std::string words;  ///< what that does, as a clause
};

/// What config.json says of the model, where it does.
struct OrderHints {
  std::optional<Index> head_dim;
  std::optional<Index> kv_heads;
};

/// Whether both have the same slices, each as often. A slice is known by its hash.
bool same_slices(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right);

/// Says in which order `left` has the slices of `right`. `noun`: what they are, "rows". Every name
/// but the last resort, "reorder", holds for each slice, however many of them are alike.
/// Precondition: same_slices(left, right), and left != right.
OrderName name_order(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right,
                     std::string_view noun, const OrderHints& hints = {});

/// The logarithm, to the base 2, of n!: in how many orders n slices may stand.
double log2_factorial(std::size_t n);

/// How many bits of luck it would take that slices which have nothing to do with each other are the
/// same, were they drawn from as few values as these: a small tensor of small numbers is no proof.
double luck_in_bits(std::span<const std::uint64_t> slices);

}  // namespace remesh::detail
