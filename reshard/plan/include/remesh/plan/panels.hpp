#pragma once

#include <cstdint>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh {

/// Cuts a tensor into panels: boxes of at most `max_bytes` that are one range of some dim, whole in
/// every later dim and single in every earlier one. So a panel's part of any piece lies together
/// among the packed bytes of that piece, whichever way the piece was cut, and is read or written in
/// one run.
///
/// The panels are disjoint, cover `extent`, and come in row-major order. A tensor without elements
/// has none. Cuts along the last dim fall on multiples of 4096 bytes where they can.
/// Precondition: max_bytes >= element_bytes.
std::vector<Box> panels(const Box& extent, std::int64_t element_bytes, std::int64_t max_bytes);

}  // namespace remesh
