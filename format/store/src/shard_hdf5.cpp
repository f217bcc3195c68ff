#include "shard_hdf5.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "hdf5.hpp"
#include "hdf5_driver.hpp"
#include "hdf5_types.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh::native {
namespace {

// libhdf5 aligns objects of at least this size. A lower threshold would align metadata too: with
// 100,000 datasets and a threshold of 1 libhdf5 1.10.8 runs for minutes.
constexpr hsize_t alignment_threshold_bytes = hsize_t{64} << 10;
constexpr hsize_t alignment_bytes = 4096;

// Measured on libhdf5 1.10.8 and rounded up: 1 to 20,000 tensors of 1 to 16 boxes, names of 10 to
// 300 bytes. An estimate that is too small only means that some metadata lies behind payload.
constexpr std::int64_t bytes_per_file = 8192;
constexpr std::int64_t bytes_per_tensor = 224;
constexpr std::int64_t bytes_per_extent = 352;
constexpr std::int64_t bytes_per_dim = 32;

constexpr std::size_t metadata_cache_bytes = std::size_t{256} << 10;

// As registered with The HDF Group. The level is of no use to readers, but filters expect one.
constexpr H5Z_filter_t zstd_filter = 32015;
constexpr unsigned zstd_level = 1;
constexpr std::uint32_t both_filters = 3;

h5::Properties creation_of_file() {
  h5::Properties list = h5::create_properties(H5P_FILE_CREATE);
  h5::set_userblock(list, static_cast<hsize_t>(header_bytes));
  h5::track_no_times(list);
  return list;
}

h5::Properties access_of_file(h5::Driver& driver) {
  h5::Properties list = h5::create_properties(H5P_FILE_ACCESS);
  driver.use_in(list);
  h5::set_version_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110);
  h5::lock_no_file(list);
  h5::limit_metadata_cache(list, metadata_cache_bytes);
  return list;
}

h5::Properties access_with_metadata_first(h5::Driver& driver, std::int64_t metadata_bytes) {
  h5::Properties list = access_of_file(driver);
  h5::set_alignment(list, alignment_threshold_bytes, alignment_bytes);
  h5::set_meta_block_size(list, static_cast<hsize_t>(metadata_bytes));
  return list;
}

// Every block of raw bytes is asked for by itself.
h5::Properties access_as_planned(h5::Driver& driver) {
  h5::Properties list = access_of_file(driver);
  h5::set_small_data_block_size(list, 0);
  return list;
}

h5::Properties creation_of_group() {
  h5::Properties list = h5::create_properties(H5P_GROUP_CREATE);
  h5::track_no_times(list);
  return list;
}

// Room for all content at once, which nobody fills: the payload is written past libhdf5.
h5::Properties creation_of_dataset() {
  h5::Properties list = h5::create_properties(H5P_DATASET_CREATE);
  h5::track_no_times(list);
  h5::set_contiguous(list);
  h5::allocate_early(list);
  h5::fill_never(list);
  return list;
}

h5::Properties creation_of_chunks(std::span<const hsize_t> dims) {
  h5::Properties list = h5::create_properties(H5P_DATASET_CREATE);
  h5::track_no_times(list);
  h5::set_chunks(list, dims);
  h5::allocate_as_needed(list);
  h5::fill_never(list);
  h5::add_shuffle(list);
  h5::add_filter(list, zstd_filter, zstd_level);
  return list;
}

void write_text(const h5::Dataset& dataset, const char* name, std::string_view text) {
  const h5::Type type = h5::copy_type(H5T_C_S1);
  h5::set_size(type, text.size());
  h5::set_utf8(type);
  h5::pad_with_nul(type);
  const h5::Space scalar = h5::create_scalar_space();
  h5::write_attribute(h5::create_attribute(dataset.id(), name, type.id(), scalar), type.id(),
                      text.data());
}

void write_numbers(const h5::Dataset& dataset, const char* name, std::span<const hsize_t> dims,
                   std::span<const std::int64_t> values) {
  const h5::Space space = h5::create_space(dims);
  h5::write_attribute(h5::create_attribute(dataset.id(), name, H5T_STD_I64LE, space),
                      H5T_NATIVE_INT64, values.data());
}

void write_box(const h5::Dataset& dataset, const Box& box) {
  std::vector<std::int64_t> values;
  for (int dim = 0; dim < box.ndim(); ++dim) {
    values.push_back(box[dim].begin);
    values.push_back(box[dim].end);
  }
  const std::array dims{static_cast<hsize_t>(box.ndim()), hsize_t{2}};
  if (!values.empty()) write_numbers(dataset, "remesh_box", dims, values);
}

std::vector<std::int64_t> shape_of(const Box& box) {
  std::vector<std::int64_t> shape;
  shape.reserve(static_cast<std::size_t>(box.ndim()));
  for (int dim = 0; dim < box.ndim(); ++dim) shape.push_back(box[dim].size());
  return shape;
}

bool packed(DType dtype) { return bits(dtype) % 8 != 0; }

// Elements narrower than a byte have no HDF5 type, so their dataset is one dim of bytes.
std::vector<hsize_t> dataset_dims(const TensorDesc& desc, const Extent& extent) {
  if (packed(desc.dtype)) return {static_cast<hsize_t>(extent.length_bytes)};
  const auto shape = shape_of(extent.box);
  return {shape.begin(), shape.end()};
}

std::vector<hsize_t> chunk_dims(const Extent& extent) {
  std::vector<hsize_t> dims;
  dims.reserve(static_cast<std::size_t>(extent.box.ndim()));
  for (int dim = 0; dim < extent.box.ndim(); ++dim) {
    const Index size = dim > extent.chunk_dim ? extent.box[dim].size() : 1;
    dims.push_back(static_cast<hsize_t>(dim == extent.chunk_dim ? extent.chunk_size : size));
  }
  return dims;
}

std::vector<hsize_t> first_of_chunk(const Extent& extent, std::int64_t k) {
  const Box box = chunk_box(extent, k);
  std::vector<hsize_t> first;
  first.reserve(static_cast<std::size_t>(box.ndim()));
  for (int dim = 0; dim < box.ndim(); ++dim) {
    first.push_back(static_cast<hsize_t>(box[dim].begin - extent.box[dim].begin));
  }
  return first;
}

// Where content is to lie, where libhdf5 does not decide.
struct Places {
  h5::PlannedMedium* medium;
  std::int64_t index_offset = 0;
  std::span<const Frame> frames;  // of all extents; none in a trial
};

class ShardFile {
 public:
  ShardFile(h5::Driver& driver, const h5::Properties& access, const Places* places = nullptr)
      : driver_(driver),
        places_(places),
        file_(h5::create_file("shard", creation_of_file(), access)) {}

  std::int64_t add_index(std::int64_t index_bytes) {
    const h5::Group group = h5::create_group(file_.id(), "remesh", group_);
    const std::array dims{static_cast<hsize_t>(index_bytes)};
    if (places_ != nullptr) expect(places_->index_offset, index_bytes);
    const h5::Dataset dataset =
        h5::create_dataset(group.id(), "index", H5T_STD_U8LE, h5::create_space(dims), dataset_);
    return static_cast<std::int64_t>(h5::offset_of(dataset));
  }

  // `extents`: those of one tensor, in the order of their datasets.
  void add_tensor(const TensorDesc& desc, std::span<Extent> extents) {
    if (!tensors_) tensors_ = h5::create_group(file_.id(), "tensors", group_);
    const std::string name = percent_encode(desc.name);
    const h5::Group group = h5::create_group(tensors_.id(), name.c_str(), group_);
    const h5::Type type = hdf5_type(desc.dtype);
    for (std::size_t at = 0; at < extents.size(); ++at) {
      add_extent(group, std::to_string(at), type, desc, extents[at]);
    }
    driver_.rethrow_failure();
  }

  void close() {
    tensors_ = {};
    file_.close();
    driver_.rethrow_failure();
  }

 private:
  void add_extent(const h5::Group& group, const std::string& name, const h5::Type& type,
                  const TensorDesc& desc, Extent& extent) {
    const h5::Dataset dataset = create(group, name, type, desc, extent);
    write_text(dataset, "remesh_tensor", desc.name);
    write_text(dataset, "remesh_dtype", to_string(desc.dtype));
    write_box(dataset, extent.box);
    if (packed(desc.dtype)) {
      const auto shape = shape_of(extent.box);
      const std::array shape_dims{static_cast<hsize_t>(shape.size())};
      write_numbers(dataset, "remesh_shape", shape_dims, shape);
    }
    if (is_chunked(extent)) {
      add_frames(dataset, extent);
    } else if (extent.length_bytes > 0) {
      extent.offset_bytes = static_cast<std::int64_t>(h5::offset_of(dataset));
    }
  }

  h5::Dataset create(const h5::Group& group, const std::string& name, const h5::Type& type,
                     const TensorDesc& desc, const Extent& extent) {
    const h5::Space space = h5::create_space(dataset_dims(desc, extent));
    if (is_chunked(extent)) {
      const h5::Properties chunks = creation_of_chunks(chunk_dims(extent));
      return h5::create_dataset(group.id(), name.c_str(), type.id(), space, chunks);
    }
    expect(extent.offset_bytes, extent.length_bytes);
    return h5::create_dataset(group.id(), name.c_str(), type.id(), space, dataset_);
  }

  // Tells libhdf5 of frames. It is given as many bytes, which go nowhere.
  void add_frames(const h5::Dataset& dataset, const Extent& extent) {
    const std::int64_t count = num_chunks(extent);
    for (std::int64_t k = 0; k < count; ++k) {
      const Frame frame = frame_of(extent, k);
      const auto length = static_cast<std::size_t>(frame.length_bytes);
      if (length > nothing_.size()) nothing_.resize(length);
      expect(frame.offset_bytes, frame.length_bytes);
      h5::write_chunk(dataset, first_of_chunk(extent, k), std::span(nothing_).first(length),
                      frame.raw ? both_filters : 0);
      driver_.rethrow_failure();
    }
  }

  // In a trial any will do: metadata has room for the largest.
  Frame frame_of(const Extent& extent, std::int64_t k) const {
    if (places_->frames.empty()) return {.offset_bytes = 0, .length_bytes = 1};
    return places_->frames[static_cast<std::size_t>(extent.first_frame + k)];
  }

  void expect(std::int64_t offset, std::int64_t length) {
    if (places_ != nullptr) places_->medium->expect({offset, offset + length});
  }

  h5::Driver& driver_;
  const Places* places_;
  std::vector<std::byte> nothing_;
  h5::Properties group_ = creation_of_group();
  h5::Properties dataset_ = creation_of_dataset();
  h5::File file_;
  h5::Group tensors_;
};

std::span<Extent> extents_of(std::uint32_t tensor, std::span<Extent> rest) {
  const auto end = std::ranges::find_if(rest, [&](const Extent& e) { return e.tensor != tensor; });
  return rest.first(static_cast<std::size_t>(end - rest.begin()));
}

// Returns the offset of the index.
std::int64_t describe(ShardFile&& file, ShardIndex& index, std::int64_t index_bytes) {
  const std::int64_t offset = file.add_index(index_bytes);
  std::span<Extent> rest(index.extents);
  for (std::uint32_t tensor = 0; tensor < index.tensors.size(); ++tensor) {
    const std::span<Extent> extents = extents_of(tensor, rest);
    file.add_tensor(index.tensors[tensor].desc, extents);
    rest = rest.subspan(extents.size());
  }
  file.close();
  return offset;
}

void sort_as_datasets(ShardIndex& index) {
  std::ranges::sort(index.extents, {},
                    [](const Extent& e) { return std::tie(e.tensor, e.box, e.copy); });
}

// What libhdf5 complains of after a failure of the medium is but its echo.
template <typename Step>
auto run(const h5::Driver& driver, const FileSystem::Path& path, const Step& step) {
  try {
    h5::be_quiet();
    return step();
  } catch (const Error& error) {
    driver.rethrow_failure();
    throw Error(error.code(), fmt::format("cannot create '{}': {}", path.string(), error.what()),
                error.id());
  }
}

// Metadata around raw bytes in their places. Returns where it ends.
std::int64_t make_metadata(const FileSystem::Path& path, ShardIndex& index,
                           std::int64_t index_bytes, const Places& places) {
  h5::Driver driver(*places.medium);
  run(driver, path, [&] {
    h5::load_no_plugins();
    return describe(ShardFile(driver, access_as_planned(driver), &places), index, index_bytes);
  });
  return places.medium->metadata_end();
}

}  // namespace

std::int64_t create_hdf5(FileSystem& files, const FileSystem::Path& path, ShardIndex& index,
                         std::int64_t index_bytes) {
  sort_as_datasets(index);
  const std::unique_ptr<File> file = files.create(path);
  h5::FileMedium medium(*file);
  h5::Driver driver(medium);
  return run(driver, path, [&] {
    const std::int64_t metadata_bytes = estimated_metadata_bytes(index);
    return describe(ShardFile(driver, access_with_metadata_first(driver, metadata_bytes)), index,
                    index_bytes);
  });
}

FramePlan plan_frames(File& file, const FileSystem::Path& path, ShardIndex& index,
                      std::int64_t index_bytes) {
  sort_as_datasets(index);
  auto medium = h5::PlannedMedium::trial(file, header_bytes);
  FramePlan plan;
  plan.metadata_end = make_metadata(path, index, index_bytes, {.medium = &medium, .frames = {}});
  plan.index_offset = next_offset(plan.metadata_end, index_bytes);
  plan.frames_begin = plan.index_offset + index_bytes;
  for (Extent& extent : index.extents) {
    if (is_chunked(extent) || extent.length_bytes == 0) continue;
    extent.offset_bytes = next_offset(plan.frames_begin, extent.length_bytes);
    plan.frames_begin = extent.offset_bytes + extent.length_bytes;
  }
  return plan;
}

std::int64_t next_offset(std::int64_t end, std::int64_t length_bytes) noexcept {
  const std::int64_t multiple =
      length_bytes < static_cast<std::int64_t>(alignment_threshold_bytes) ? 8 : alignment_bytes;
  return (end + multiple - 1) / multiple * multiple;
}

void describe_frames(File& file, const FileSystem::Path& path, ShardIndex& index,
                     std::int64_t index_bytes, const FramePlan& plan) {
  sort_as_datasets(index);
  h5::PlannedMedium medium(file, {header_bytes, plan.metadata_end});
  const Places places{.medium = &medium, .index_offset = plan.index_offset, .frames = index.frames};
  const std::int64_t end = make_metadata(path, index, index_bytes, places);
  if (end == plan.metadata_end) return;
  throw Error(Errc::internal,
              fmt::format("cannot create '{}': the metadata of libhdf5 ends at {}, but it was "
                          "planned to end at {}; this is a bug in remesh",
                          path.string(), end, plan.metadata_end));
}

std::int64_t estimated_metadata_bytes(const ShardIndex& index) {
  std::int64_t bytes = bytes_per_file;
  for (const ShardTensor& tensor : index.tensors) {
    bytes += bytes_per_tensor + 5 * static_cast<std::int64_t>(tensor.desc.name.size()) / 4;
  }
  for (const Extent& extent : index.extents) {
    const std::string& name = index.tensors[extent.tensor].desc.name;
    bytes += bytes_per_extent + static_cast<std::int64_t>(name.size()) +
             bytes_per_dim * extent.box.ndim();
  }
  return bytes;
}

std::string percent_encode(std::string_view name) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~@";
  const bool only_dots = name.find_first_not_of('.') == std::string_view::npos;
  std::string encoded;
  for (const char character : name) {
    if (plain.find(character) != std::string_view::npos || (character == '.' && !only_dots)) {
      encoded += character;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(character));
    }
  }
  return encoded;
}

}  // namespace remesh::native
