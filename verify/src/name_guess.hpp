#pragma once

#include <span>
#include <string>
#include <string_view>

#include "remesh/schema/tensor.hpp"

namespace remesh::detail {

/// What the sides are called.
struct SideNames {
  std::string_view left = "the left side";
  std::string_view right = "the right side";
};

/// A guess at how tensors belong together of which each side has its own names: those of one side
/// have other first words ("model." or none), or the shapes are the same under names that have
/// nothing in common. One clause with numbers and an example; empty where too few would fit.
/// `left` and `right`: the tensors that only one side has. Does not look at elements.
std::string guess_names(std::span<const TensorDesc* const> left,
                        std::span<const TensorDesc* const> right, const SideNames& sides = {});

}  // namespace remesh::detail
