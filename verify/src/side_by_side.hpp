#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// The most bytes of a side that are held at a time.
inline constexpr std::int64_t compared_panel_bytes = std::int64_t{1} << 20;

/// The same elements of two tensors, packed. Returns whether to go on.
using OnPanels = std::function<bool(std::span<const std::byte>, std::span<const std::byte>)>;

/// Hands the same elements of both sides to `visit`, in row-major order, until it says no; returns
/// what it said last. Throws as Reader::read does, Error(out_of_memory), Error(stopped).
/// Precondition: the tensors have one shape, with dims and elements of whole bytes.
bool side_by_side(const JudgeContext& context, const Reader& left, std::size_t l,
                  const Reader& right, std::size_t r, const OnPanels& visit);

}  // namespace remesh::detail
