#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "remesh/core/dtype.hpp"

/// @file
/// The words of a view, shared by the child that writes them and the parent that expects them.

namespace remesh::native {

inline constexpr std::string_view view_first_line = "hdf5-view 1";
inline constexpr std::string_view view_last_line = "end";

/// A view has the first so many frames of a dataset, which are 4 GiB and more: libhdf5 1.10 finds
/// each by a walk through all before it, and of 65,536 that takes an hour.
inline constexpr std::size_t most_view_frames = 8192;

/// What libhdf5 sees at one path. Values are compared as text, and never taken apart.
struct ViewObject {
  std::string kind;  ///< "dataset"
  std::string path;  ///< "/tensors/a%252Fb/0"
  std::map<std::string, std::string, std::less<>> properties;
};

/// The name of the HDF5 type that a dtype is stored as: its own, or u8.
std::string_view view_type(DType dtype);

/// Names as they stand in a view.
std::string view_name(std::string_view name);

/// "2 3"; "none" where there are none.
std::string view_numbers(std::span<const std::uint64_t> numbers);
std::string view_numbers(std::span<const std::int64_t> numbers);

/// "i64 (2 2) 0 4 0 4": an attribute of numbers with its dims.
std::string view_attribute(std::span<const std::uint64_t> dims,
                           std::span<const std::int64_t> values);
/// "text remesh"
std::string view_attribute(std::string_view text);

}  // namespace remesh::native
