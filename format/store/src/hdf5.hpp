#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hdf5.h>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

/// @file
/// One checked function for each HDF5 C function that remesh uses, and an owner for each kind of
/// identifier. Errors carry HDF5's innermost reason; the caller adds the path.

namespace remesh::h5 {

/// HDF5's reason for the last failure on this thread: the innermost entry of its error stack.
inline std::string last_reason() {
  std::string reason;
  const auto take_first = [](unsigned /*depth*/, const H5E_error2_t* entry, void* into) -> herr_t {
    auto& text = *static_cast<std::string*>(into);
    if (text.empty() && entry->desc != nullptr) text = entry->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &reason);
  return reason;
}

[[noreturn]] inline void fail(const char* function) {
  const std::string reason = last_reason();
  // The driver passes the system's reason on as text.
  const bool full = reason.find("No space left") != std::string::npos ||
                    reason.find("quota exceeded") != std::string::npos;
  throw Error(Errc::io, fmt::format("{}: {}", function, reason), full ? "RM702" : "RM703");
}

inline hid_t check_id(hid_t id, const char* function) {
  if (id < 0) fail(function);
  return id;
}

inline void check(herr_t status, const char* function) {
  if (status < 0) fail(function);
}

/// Owns one identifier, or none. A failure to close is an error only where close() is called.
template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) noexcept : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) Close(id_);
  }

  hid_t id() const noexcept { return id_; }
  explicit operator bool() const noexcept { return id_ >= 0; }
  void close() { check(Close(std::exchange(id_, H5I_INVALID_HID)), "H5?close"); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using File = Handle<H5Fclose>;
using Group = Handle<H5Gclose>;
using Dataset = Handle<H5Dclose>;
using Attribute = Handle<H5Aclose>;
using Space = Handle<H5Sclose>;
using Type = Handle<H5Tclose>;
using Properties = Handle<H5Pclose>;

/// HDF5 prints its error stack on stderr unless told not to, thread by thread.
inline void be_quiet() { check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "H5Eset_auto2"); }

inline Properties create_properties(hid_t kind) {
  return Properties(check_id(H5Pcreate(kind), "H5Pcreate"));
}
inline void set_userblock(const Properties& list, hsize_t bytes) {
  check(H5Pset_userblock(list.id(), bytes), "H5Pset_userblock");
}
inline void track_no_times(const Properties& list) {
  check(H5Pset_obj_track_times(list.id(), /*track_times=*/false), "H5Pset_obj_track_times");
}
inline void set_version_bounds(const Properties& list, H5F_libver_t low, H5F_libver_t high) {
  check(H5Pset_libver_bounds(list.id(), low, high), "H5Pset_libver_bounds");
}
inline void set_alignment(const Properties& list, hsize_t threshold, hsize_t bytes) {
  check(H5Pset_alignment(list.id(), threshold, bytes), "H5Pset_alignment");
}
inline void set_meta_block_size(const Properties& list, hsize_t bytes) {
  check(H5Pset_meta_block_size(list.id(), bytes), "H5Pset_meta_block_size");
}
inline void set_small_data_block_size(const Properties& list, hsize_t bytes) {
  check(H5Pset_small_data_block_size(list.id(), bytes), "H5Pset_small_data_block_size");
}
inline void lock_no_file(const Properties& list) {
  check(H5Pset_file_locking(list.id(), /*use_file_locking=*/false, /*ignore_when_disabled=*/true),
        "H5Pset_file_locking");
}
/// The most that the library keeps of what it read or made of a file's metadata, its own overhead
/// apart.
inline void limit_metadata_cache(const Properties& list, std::size_t bytes) {
  H5AC_cache_config_t config{};
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  check(H5Pget_mdc_config(list.id(), &config), "H5Pget_mdc_config");
  config.set_initial_size = 1;
  config.initial_size = bytes;
  config.min_size = std::min(config.min_size, bytes);
  config.max_size = bytes;
  config.flash_incr_mode = H5C_flash_incr__off;
  check(H5Pset_mdc_config(list.id(), &config), "H5Pset_mdc_config");
}
inline void set_contiguous(const Properties& list) {
  check(H5Pset_layout(list.id(), H5D_CONTIGUOUS), "H5Pset_layout");
}
inline void set_chunks(const Properties& list, std::span<const hsize_t> dims) {
  check(H5Pset_chunk(list.id(), static_cast<int>(dims.size()), dims.data()), "H5Pset_chunk");
}
inline void allocate_as_needed(const Properties& list) {
  check(H5Pset_alloc_time(list.id(), H5D_ALLOC_TIME_INCR), "H5Pset_alloc_time");
}
/// Optional, as all filters here: a chunk may do without.
inline void add_shuffle(const Properties& list) {
  check(H5Pset_shuffle(list.id()), "H5Pset_shuffle");
}
inline void add_filter(const Properties& list, H5Z_filter_t filter, unsigned value) {
  check(H5Pset_filter(list.id(), filter, H5Z_FLAG_OPTIONAL, 1, &value), "H5Pset_filter");
}
/// Filters that libhdf5 does not have are not looked for on disk, by any thread from now on.
inline void load_no_plugins() { check(H5PLset_loading_state(0), "H5PLset_loading_state"); }
inline void allocate_early(const Properties& list) {
  check(H5Pset_alloc_time(list.id(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
}
inline void fill_never(const Properties& list) {
  check(H5Pset_fill_time(list.id(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
}

/// Throws if the file exists.
inline File create_file(const char* path, const Properties& creation, const Properties& access) {
  return File(check_id(H5Fcreate(path, H5F_ACC_EXCL, creation.id(), access.id()), "H5Fcreate"));
}

inline Group create_group(hid_t parent, const char* name, const Properties& creation) {
  return Group(
      check_id(H5Gcreate2(parent, name, H5P_DEFAULT, creation.id(), H5P_DEFAULT), "H5Gcreate2"));
}

inline Space create_scalar_space() { return Space(check_id(H5Screate(H5S_SCALAR), "H5Screate")); }
/// A scalar where there are no dims.
inline Space create_space(std::span<const hsize_t> dims) {
  if (dims.empty()) return create_scalar_space();
  return Space(check_id(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                        "H5Screate_simple"));
}

inline Type copy_type(hid_t type) { return Type(check_id(H5Tcopy(type), "H5Tcopy")); }
inline Type create_compound(std::size_t bytes) {
  return Type(check_id(H5Tcreate(H5T_COMPOUND, bytes), "H5Tcreate"));
}
inline void insert(const Type& compound, const char* name, std::size_t offset, hid_t member) {
  check(H5Tinsert(compound.id(), name, offset, member), "H5Tinsert");
}
inline void set_size(const Type& type, std::size_t bytes) {
  check(H5Tset_size(type.id(), bytes), "H5Tset_size");
}
inline void set_fields(const Type& type, std::size_t sign, std::size_t exponent,
                       std::size_t exponent_bits, std::size_t mantissa_bits) {
  check(H5Tset_fields(type.id(), sign, exponent, exponent_bits, /*mpos=*/0, mantissa_bits),
        "H5Tset_fields");
}
inline void set_exponent_bias(const Type& type, std::size_t bias) {
  check(H5Tset_ebias(type.id(), bias), "H5Tset_ebias");
}
inline void set_utf8(const Type& type) {
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), "H5Tset_cset");
}
inline void pad_with_nul(const Type& type) {
  check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "H5Tset_strpad");
}

inline Dataset create_dataset(hid_t parent, const char* name, hid_t type, const Space& space,
                              const Properties& creation) {
  return Dataset(
      check_id(H5Dcreate2(parent, name, type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
               "H5Dcreate2"));
}
/// Stores one chunk as it is: what the filters made of it, but for those in `skipped_filters` (bit
/// k is filter k). `at`: its first element.
inline void write_chunk(const Dataset& dataset, std::span<const hsize_t> at,
                        std::span<const std::byte> bytes, std::uint32_t skipped_filters) {
  check(H5Dwrite_chunk(dataset.id(), H5P_DEFAULT, skipped_filters, at.data(), bytes.size(),
                       bytes.data()),
        "H5Dwrite_chunk");
}
/// From the start of the file, the user block included. Precondition: the dataset has bytes.
inline haddr_t offset_of(const Dataset& dataset) {
  const haddr_t offset = H5Dget_offset(dataset.id());
  if (offset == HADDR_UNDEF) fail("H5Dget_offset");
  return offset;
}

inline Attribute create_attribute(hid_t object, const char* name, hid_t type, const Space& space) {
  return Attribute(
      check_id(H5Acreate2(object, name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2"));
}
inline void write_attribute(const Attribute& attribute, hid_t memory_type, const void* value) {
  check(H5Awrite(attribute.id(), memory_type, value), "H5Awrite");
}

}  // namespace remesh::h5
