#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5_view_text.hpp"
#include "remesh/store/extents.hpp"

namespace remesh::native {

inline constexpr std::string_view index_path = "/remesh/index";

/// What libhdf5 must see, by the index alone. A dataset that is stored in another way (in chunks,
/// packed) has other properties here, and nowhere else.
ViewObject expected_dataset(const TensorDesc& desc, const Extent& extent, std::string path);
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
std::int64_t most_view_bytes_of(const TensorDesc& desc);

}  // namespace remesh::native
