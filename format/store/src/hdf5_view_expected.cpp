#include "hdf5_view_expected.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "remesh/store/chunks.hpp"

namespace remesh::native {
namespace {

constexpr std::string_view nothing = "nothing";

bool packed(DType dtype) { return bits(dtype) % 8 != 0; }

std::vector<std::int64_t> shape_of(const Box& box) {
  std::vector<std::int64_t> shape;
  shape.reserve(static_cast<std::size_t>(box.ndim()));
  for (int dim = 0; dim < box.ndim(); ++dim) shape.push_back(box[dim].size());
  return shape;
}

std::vector<std::int64_t> ends_of(const Box& box) {
  std::vector<std::int64_t> ends;
  ends.reserve(2 * static_cast<std::size_t>(box.ndim()));
  for (int dim = 0; dim < box.ndim(); ++dim) {
    ends.push_back(box[dim].begin);
    ends.push_back(box[dim].end);
  }
  return ends;
}

ViewObject contiguous(std::string path, std::string_view type, std::span<const std::int64_t> dims,
                      std::int64_t offset_bytes, std::int64_t length_bytes) {
  ViewObject object{"dataset", std::move(path), {}};
  object.properties = {
      {"links", "1"},
      {"layout", "contiguous"},
      {"type", std::string(type)},
      {"dims", view_numbers(dims)},
      {"most-dims", view_numbers(dims)},
      {"external-files", "0"},
      {"fill", "value default time never allocation early"},
      {"offset", length_bytes > 0 ? std::to_string(offset_bytes) : "none"},
      {"bytes", std::to_string(length_bytes)},
  };
  return object;
}

constexpr std::array<std::string_view, 2> filter_ids{"2", "32015"};  // shuffle, zstd

std::string filter_text(std::string_view id, std::int64_t value) {
  return fmt::format("{} flags 1 values {}", id, value);
}

void put_in_chunks(Properties& properties, const TensorDesc& desc, const Extent& extent,
                   std::span<const Frame> frames) {
  std::vector<std::int64_t> chunk = shape_of(chunk_box(extent, 0));
  chunk[static_cast<std::size_t>(extent.chunk_dim)] = extent.chunk_size;
  std::int64_t bytes = 0;
  for (const Frame& frame : frames) bytes += frame.length_bytes;
  properties["layout"] = "chunked";
  properties["fill"] = "value default time never allocation incremental";
  properties["offset"] = "none";
  properties["bytes"] = std::to_string(bytes);
  properties["chunk"] = view_numbers(chunk);
  properties["chunks"] = std::to_string(frames.size());
  properties["filter.0"] = filter_text(filter_ids[0], bits(desc.dtype) / 8);
  properties["filter.1"] = filter_text(filter_ids[1], 1);
}

}  // namespace

ViewObject expected_dataset(const TensorDesc& desc, const Extent& extent,
                            std::span<const Frame> frames, std::string path) {
  const std::vector<std::int64_t> shape = shape_of(extent.box);
  const std::vector<std::int64_t> dims =
      packed(desc.dtype) ? std::vector{extent.length_bytes} : shape;
  ViewObject object = contiguous(std::move(path), view_type(desc.dtype), dims, extent.offset_bytes,
                                 extent.length_bytes);
  Properties& properties = object.properties;
  if (is_chunked(extent)) put_in_chunks(properties, desc, extent, frames);
  properties["@remesh_tensor"] = view_attribute(desc.name);
  properties["@remesh_dtype"] = view_attribute(to_string(desc.dtype));
  const auto ndim = static_cast<std::uint64_t>(extent.box.ndim());
  if (ndim > 0) {
    properties["@remesh_box"] =
        view_attribute(std::array{ndim, std::uint64_t{2}}, ends_of(extent.box));
  }
  if (packed(desc.dtype)) properties["@remesh_shape"] = view_attribute(std::array{ndim}, shape);
  return object;
}

std::string expected_frame(const Extent& extent, const Frame& frame, std::int64_t k) {
  const Box box = chunk_box(extent, k);
  std::vector<std::int64_t> first;
  first.reserve(static_cast<std::size_t>(box.ndim()));
  for (int dim = 0; dim < box.ndim(); ++dim) {
    first.push_back(box[dim].begin - extent.box[dim].begin);
  }
  return fmt::format("at {} mask {} offset {} bytes {}", view_numbers(first), frame.raw ? 3 : 0,
                     frame.offset_bytes, frame.length_bytes);
}

bool is_filter_of(const Extent& extent, std::string_view key, std::string_view value) {
  if (!is_chunked(extent)) return false;
  const std::string_view id = value.substr(0, value.find(' '));
  return (key == "filter.0" && id == filter_ids[0]) || (key == "filter.1" && id == filter_ids[1]);
}

ViewObject expected_index(ByteRange index) {
  const std::int64_t bytes = index.end - index.begin;
  return contiguous(std::string(index_path), view_type(DType::u8), std::array{bytes}, index.begin,
                    bytes);
}

ViewObject expected_group(std::string path) { return {"group", std::move(path), {{"links", "1"}}}; }

std::vector<Difference> differences(const Properties& found, const Properties& expected) {
  std::vector<Difference> all;
  for (const auto& [key, value] : expected) {
    const auto at = found.find(key);
    if (at == found.end()) {
      all.push_back({key, std::string(nothing), value});
    } else if (at->second != value) {
      all.push_back({key, at->second, value});
    }
  }
  for (const auto& [key, value] : found) {
    if (!expected.contains(key)) all.push_back({key, value, std::string(nothing)});
  }
  return all;
}

// The name is there three times, each of its bytes as five at most; 21 digits for a number.
std::int64_t most_view_bytes_of(const TensorDesc& desc, std::size_t num_frames) {
  const std::int64_t frame = 128 + 21 * static_cast<std::int64_t>(desc.extent.ndim());
  return 2048 + 16 * static_cast<std::int64_t>(desc.name.size()) +
         frame * static_cast<std::int64_t>(std::min(num_frames, most_view_frames));
}

}  // namespace remesh::native
