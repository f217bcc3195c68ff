#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5_view_text.hpp"
#include "remesh/store/extents.hpp"

namespace remesh::native {

inline constexpr std::string_view index_path = "/remesh/index";

/// What libhdf5 must see, by the index alone. `frames`: those of the extent, if it is in chunks.
/// What it must see of each of these is not among the properties: they may be many.
ViewObject expected_dataset(const TensorDesc& desc, const Extent& extent,
                            std::span<const Frame> frames, std::string path);
/// "at 0 64 mask 0 offset 8192 bytes 700": the property "frame.K" of chunk k.
std::string expected_frame(const Extent& extent, const Frame& frame, std::int64_t k);
/// Whether a dataset may have a filter, of which a view says `value` ("2 flags 1 values 4") under
/// `key` ("filter.0").
bool is_filter_of(const Extent& extent, std::string_view key, std::string_view value);
ViewObject expected_index(ByteRange index);
ViewObject expected_group(std::string path);

struct Difference {
  std::string key;
  std::string found;  ///< "nothing" where one side has no such property
  std::string expected;
};
using Properties = std::map<std::string, std::string, std::less<>>;
std::vector<Difference> differences(const Properties& found, const Properties& expected);

/// More than the text of any honest view takes: besides its datasets, and for one of a tensor.
inline constexpr std::int64_t most_view_bytes = 4096;
std::int64_t most_view_bytes_of(const TensorDesc& desc, std::size_t num_frames);

}  // namespace remesh::native
