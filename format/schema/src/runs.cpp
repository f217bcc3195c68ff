#include "remesh/schema/runs.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using Strides = std::array<std::int64_t, max_ndim>;

// The distance, in elements, between neighbours along each dim of a packed box.
Strides strides_of(const Box& box) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int dim = box.ndim() - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= box[dim].size();
  }
  return strides;
}

// The offset, in elements, of the first element of `inner` among those of `outer`.
std::int64_t offset_in(const Box& outer, const Box& inner) {
  const Strides strides = strides_of(outer);
  std::int64_t offset = 0;
  for (int dim = 0; dim < outer.ndim(); ++dim) {
    offset += (inner[dim].begin - outer[dim].begin) * strides[static_cast<std::size_t>(dim)];
  }
  return offset;
}

// How many of the leading dims must be stepped through one index at a time: behind them, what
// `inner` has of `outer` lies together. (-1 stands for a scalar's no dims at all.)
int stepped_dims(const Box& outer, const Box& inner) {
  int dim = outer.ndim() - 1;
  while (dim > 0 && inner[dim] == outer[dim]) --dim;
  return std::max(dim, 0);
}

std::int64_t elements_from(const Box& box, int dim) {
  std::int64_t count = 1;
  for (; dim < box.ndim(); ++dim) count *= box[dim].size();
  return count;
}

ByteView sub_byte_view(const TensorDesc& tensor, const Box& box) {
  const int width = bits(tensor.dtype);
  const int last = tensor.extent.ndim() - 1;
  const auto whole = [width](Index elements) { return elements * width % 8 == 0; };
  ByteView view{tensor.extent, box, 1};
  if (last >= 0 && whole(tensor.extent[last].size())) {
    if (whole(box[last].begin) && whole(box[last].end)) {
      view.extent[last].end = tensor.extent[last].end * width / 8;
      view.box[last] = {box[last].begin * width / 8, box[last].end * width / 8};
      return view;
    }
  } else if (box == tensor.extent && whole(box.num_elements())) {
    view.extent = view.box = Box{{0, num_bytes(tensor)}};
    return view;
  }
  throw Error(Errc::unsupported,
              fmt::format("cannot cut {} at {}: its elements have {} bits, and a border of the box "
                          "is no whole byte",
                          to_string(tensor), to_string(box), width));
}

}  // namespace

ByteView byte_view(const TensorDesc& tensor, const Box& box) {
  const int width = bits(tensor.dtype);
  if (width % 8 == 0) return {tensor.extent, box, width / 8};
  return sub_byte_view(tensor, box);
}

void for_each_run(const ByteView& view, std::int64_t begin, std::int64_t end,
                  const std::function<void(const Run&)>& visit) {
  if (begin >= end) return;
  const int stepped = stepped_dims(view.extent, view.box);
  const std::int64_t run_bytes = elements_from(view.box, stepped) * view.element_bytes;
  const Strides strides = strides_of(view.extent);
  const std::int64_t first = offset_in(view.extent, view.box) * view.element_bytes;

  for (std::int64_t at = begin; at < end;) {
    std::int64_t index = at / run_bytes;
    const std::int64_t skipped = at % run_bytes;
    std::int64_t elements = 0;
    for (int dim = stepped - 1; dim >= 0; --dim) {
      const Index size = view.box[dim].size();
      elements += index % size * strides[static_cast<std::size_t>(dim)];
      index /= size;
    }
    const std::int64_t length = std::min(run_bytes - skipped, end - at);
    visit({first + elements * view.element_bytes + skipped, at, length});
    at += length;
  }
}

std::optional<std::int64_t> contiguous_in(const Box& outer, const Box& inner,
                                          std::int64_t element_bytes) {
  assert(contains(outer, inner));
  if (inner.empty()) return 0;
  int dim = 0;
  while (dim < inner.ndim() && inner[dim].size() == 1) ++dim;
  for (++dim; dim < inner.ndim(); ++dim) {
    if (inner[dim] != outer[dim]) return std::nullopt;
  }
  return offset_in(outer, inner) * element_bytes;
}

void copy_box(const Box& part, const Box& from_box, const std::byte* from, const Box& to_box,
              std::byte* to, std::int64_t element_bytes) {
  if (part.empty()) return;
  const int stepped = std::max(stepped_dims(from_box, part), stepped_dims(to_box, part));
  const auto run_bytes = static_cast<std::size_t>(elements_from(part, stepped) * element_bytes);
  const Strides from_strides = strides_of(from_box);
  const Strides to_strides = strides_of(to_box);
  from += offset_in(from_box, part) * element_bytes;
  to += offset_in(to_box, part) * element_bytes;

  std::array<Index, max_ndim> at{};
  while (true) {
    std::memcpy(to, from, run_bytes);
    int dim = stepped - 1;
    for (; dim >= 0; --dim) {
      const auto d = static_cast<std::size_t>(dim);
      from += from_strides[d] * element_bytes;
      to += to_strides[d] * element_bytes;
      if (++at[d] < part[dim].size()) break;
      from -= at[d] * from_strides[d] * element_bytes;
      to -= at[d] * to_strides[d] * element_bytes;
      at[d] = 0;
    }
    if (dim < 0) return;
  }
}

}  // namespace remesh
