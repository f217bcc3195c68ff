#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hdf5.hpp"

/// @file
/// The HDF5 C functions that look at a file, checked like those that write one. The library may
/// crash or hang on a file that was made to hurt it, so only a process that nobody needs calls
/// them.

namespace remesh::h5 {

using Object = Handle<H5Oclose>;

/// No plug-in is ever loaded by this process.
inline void forbid_plugins() { check(H5PLset_loading_state(0), "H5PLset_loading_state"); }

inline File open_file(const char* path, const Properties& access) {
  return File(check_id(H5Fopen(path, H5F_ACC_RDONLY, access.id()), "H5Fopen"));
}
inline hsize_t userblock_of(const File& file) {
  const Properties list(check_id(H5Fget_create_plist(file.id()), "H5Fget_create_plist"));
  hsize_t bytes = 0;
  check(H5Pget_userblock(list.id(), &bytes), "H5Pget_userblock");
  return bytes;
}

struct Link {
  std::string name;
  H5L_type_t type = H5L_TYPE_ERROR;
};

/// The links of a group by name.
inline std::vector<Link> links_of(hid_t group) {
  std::vector<Link> links;
  const auto keep = [](hid_t /*group*/, const char* name, const H5L_info_t* info,
                       void* into) noexcept -> herr_t {
    static_cast<std::vector<Link>*>(into)->push_back({name, info->type});
    return 0;
  };
  check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &links), "H5Literate");
  return links;
}

inline Object open_object(hid_t parent, const char* name) {
  return Object(check_id(H5Oopen(parent, name, H5P_DEFAULT), "H5Oopen"));
}
/// Type, address, number of hard links and of attributes.
inline H5O_info_t info_of(hid_t object) {
  H5O_info_t info{};
  check(H5Oget_info2(object, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS), "H5Oget_info2");
  return info;
}

inline Properties creation_of(hid_t dataset) {
  return Properties(check_id(H5Dget_create_plist(dataset), "H5Dget_create_plist"));
}
inline Type type_of(hid_t dataset) { return Type(check_id(H5Dget_type(dataset), "H5Dget_type")); }
inline Space space_of(hid_t dataset) {
  return Space(check_id(H5Dget_space(dataset), "H5Dget_space"));
}
/// From the start of the file. A dataset without one place has -1 or, as libhdf5 1.10.8 says it,
/// the last byte of the user block.
inline std::uint64_t place_of(hid_t dataset) { return H5Dget_offset(dataset); }
inline hsize_t storage_bytes_of(hid_t dataset) { return H5Dget_storage_size(dataset); }

/// Of no extent at all ("null"): nothing.
struct Extents {
  std::vector<hsize_t> dims;
  std::vector<hsize_t> most;
};
inline std::optional<Extents> extents_of(const Space& space) {
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) return std::nullopt;
  const int ndim = H5Sget_simple_extent_ndims(space.id());
  if (ndim < 0) fail("H5Sget_simple_extent_ndims");
  Extents extents;
  extents.dims.resize(static_cast<std::size_t>(ndim));
  extents.most.resize(static_cast<std::size_t>(ndim));
  if (H5Sget_simple_extent_dims(space.id(), extents.dims.data(), extents.most.data()) < 0) {
    fail("H5Sget_simple_extent_dims");
  }
  return extents;
}

inline H5D_layout_t layout_of(const Properties& list) {
  const H5D_layout_t layout = H5Pget_layout(list.id());
  if (layout == H5D_LAYOUT_ERROR) fail("H5Pget_layout");
  return layout;
}
inline std::vector<hsize_t> chunk_of(const Properties& list) {
  std::vector<hsize_t> dims(H5S_MAX_RANK);
  const int ndim = H5Pget_chunk(list.id(), H5S_MAX_RANK, dims.data());
  if (ndim < 0) fail("H5Pget_chunk");
  dims.resize(static_cast<std::size_t>(ndim));
  return dims;
}
inline int external_files_of(const Properties& list) {
  const int count = H5Pget_external_count(list.id());
  if (count < 0) fail("H5Pget_external_count");
  return count;
}
inline int filters_of(const Properties& list) {
  const int count = H5Pget_nfilters(list.id());
  if (count < 0) fail("H5Pget_nfilters");
  return count;
}
struct Filter {
  H5Z_filter_t id = 0;
  unsigned flags = 0;
  std::vector<unsigned> values;
};
inline Filter filter_of(const Properties& list, unsigned number) {
  Filter filter;
  filter.values.resize(32);
  std::size_t count = filter.values.size();
  filter.id = H5Pget_filter2(list.id(), number, &filter.flags, &count, filter.values.data(), 0,
                             nullptr, nullptr);
  if (filter.id < 0) fail("H5Pget_filter2");
  filter.values.resize(std::min(count, filter.values.size()));
  return filter;
}
inline H5D_fill_value_t fill_value_of(const Properties& list) {
  H5D_fill_value_t value = H5D_FILL_VALUE_ERROR;
  check(H5Pfill_value_defined(list.id(), &value), "H5Pfill_value_defined");
  return value;
}
inline H5D_fill_time_t fill_time_of(const Properties& list) {
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  check(H5Pget_fill_time(list.id(), &time), "H5Pget_fill_time");
  return time;
}
inline H5D_alloc_time_t alloc_time_of(const Properties& list) {
  H5D_alloc_time_t time = H5D_ALLOC_TIME_ERROR;
  check(H5Pget_alloc_time(list.id(), &time), "H5Pget_alloc_time");
  return time;
}

inline hsize_t chunks_of(hid_t dataset, const Space& space) {
  hsize_t count = 0;
  check(H5Dget_num_chunks(dataset, space.id(), &count), "H5Dget_num_chunks");
  return count;
}
struct Chunk {
  std::vector<hsize_t> at;
  unsigned filter_mask = 0;
  haddr_t offset = 0;
  hsize_t bytes = 0;
};
/// libhdf5 1.10 walks through all chunks before this one.
inline Chunk chunk_at(hid_t dataset, const Space& space, hsize_t number) {
  Chunk chunk;
  chunk.at.resize(H5S_MAX_RANK);
  check(H5Dget_chunk_info(dataset, space.id(), number, chunk.at.data(), &chunk.filter_mask,
                          &chunk.offset, &chunk.bytes),
        "H5Dget_chunk_info");
  return chunk;
}

inline Attribute attribute_at(hid_t object, hsize_t number) {
  return Attribute(check_id(
      H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, number, H5P_DEFAULT, H5P_DEFAULT),
      "H5Aopen_by_idx"));
}
inline std::string name_of(const Attribute& attribute) {
  const ssize_t bytes = H5Aget_name(attribute.id(), 0, nullptr);
  if (bytes < 0) fail("H5Aget_name");
  std::string name(static_cast<std::size_t>(bytes) + 1, '\0');
  if (H5Aget_name(attribute.id(), name.size(), name.data()) < 0) fail("H5Aget_name");
  name.pop_back();
  return name;
}
inline Type type_of(const Attribute& attribute) {
  return Type(check_id(H5Aget_type(attribute.id()), "H5Aget_type"));
}
inline Space space_of(const Attribute& attribute) {
  return Space(check_id(H5Aget_space(attribute.id()), "H5Aget_space"));
}
inline void read_attribute(const Attribute& attribute, hid_t memory_type, void* into) {
  check(H5Aread(attribute.id(), memory_type, into), "H5Aread");
}

inline bool equal(hid_t one, hid_t other) {
  const htri_t same = H5Tequal(one, other);
  if (same < 0) fail("H5Tequal");
  return same > 0;
}
inline bool committed(const Type& type) {
  const htri_t named = H5Tcommitted(type.id());
  if (named < 0) fail("H5Tcommitted");
  return named > 0;
}
inline std::size_t bytes_of(const Type& type) {
  const std::size_t bytes = H5Tget_size(type.id());
  if (bytes == 0) fail("H5Tget_size");
  return bytes;
}
/// A string of a length that the type has, UTF-8, filled up with zeros.
inline bool plain_text(const Type& type) {
  return H5Tget_class(type.id()) == H5T_STRING && H5Tis_variable_str(type.id()) == 0 &&
         H5Tget_cset(type.id()) == H5T_CSET_UTF8 && H5Tget_strpad(type.id()) == H5T_STR_NULLPAD;
}

}  // namespace remesh::h5
