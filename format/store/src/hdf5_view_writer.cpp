#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "hdf5_reading.hpp"
#include "hdf5_types.hpp"
#include "hdf5_view_text.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/hdf5_view.hpp"

namespace remesh::native {
namespace {

// An honest file has groups at depth 0 to 2.
constexpr int most_depth = 8;
constexpr std::size_t most_attribute_bytes = std::size_t{64} << 10;

std::string_view link_kind(H5L_type_t type) {
  switch (type) {
    case H5L_TYPE_SOFT:
      return "soft-link";
    case H5L_TYPE_EXTERNAL:
      return "external-link";
    default:
      return "user-link";
  }
}

std::string_view object_kind(H5O_type_t type) {
  switch (type) {
    case H5O_TYPE_GROUP:
      return "group";
    case H5O_TYPE_DATASET:
      return "dataset";
    case H5O_TYPE_NAMED_DATATYPE:
      return "committed-type";
    default:
      return "other";
  }
}

std::string_view layout_text(H5D_layout_t layout) {
  switch (layout) {
    case H5D_CONTIGUOUS:
      return "contiguous";
    case H5D_CHUNKED:
      return "chunked";
    case H5D_COMPACT:
      return "compact";
    case H5D_VIRTUAL:
      return "virtual";
    default:
      return "other";
  }
}

std::string fill_text(const h5::Properties& list) {
  constexpr std::array values{"undefined", "default", "user"};
  constexpr std::array times{"alloc", "never", "ifset"};
  constexpr std::array allocations{"default", "early", "late", "incremental"};
  const auto word = [](const auto& words, int at) {
    return at >= 0 && std::cmp_less(at, words.size()) ? words[static_cast<std::size_t>(at)]
                                                      : "other";
  };
  return fmt::format("value {} time {} allocation {}", word(values, h5::fill_value_of(list)),
                     word(times, h5::fill_time_of(list)),
                     word(allocations, h5::alloc_time_of(list)));
}

std::string space_text(const std::optional<h5::Extents>& extents,
                       std::vector<hsize_t> h5::Extents::*which) {
  if (!extents) return "null";
  const std::vector<hsize_t>& numbers = (*extents).*which;
  return view_numbers(std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
}

class ViewWriter {
 public:
  ViewWriter(const FileSystem::Path& path, const TextSink& sink) : sink_(sink) {
    h5::forbid_plugins();
    h5::be_quiet();
    for (const DType dtype : all_dtypes()) types_.emplace_back(dtype, hdf5_type(dtype));
    h5::Properties access = h5::create_properties(H5P_FILE_ACCESS);
    h5::lock_no_file(access);
    file_ = h5::open_file(path.c_str(), access);
  }

  void write() {
    user_block_ = h5::userblock_of(file_);
    line("userblock {}", user_block_);
    object(h5::open_object(file_.id(), "/"), "", 0);
  }

 private:
  template <typename... Parts>
  void line(fmt::format_string<Parts...> format, Parts&&... parts) {
    sink_(fmt::format(format, std::forward<Parts>(parts)...) + '\n');
  }

  void object(const h5::Object& object, const std::string& path, int depth) {
    const H5O_info_t info = h5::info_of(object.id());
    const char* shown = path.empty() ? "/" : path.c_str();
    if (!seen_.insert(info.addr).second) {
      line("again {}", shown);
      return;
    }
    line("{} {}", object_kind(info.type), shown);
    line(" links {}", info.rc);
    for (hsize_t number = 0; number < info.num_attrs; ++number) attribute(object.id(), number);
    if (info.type == H5O_TYPE_DATASET) dataset(object.id());
    if (info.type == H5O_TYPE_GROUP) group(object.id(), path, depth);
  }

  void group(hid_t group, const std::string& path, int depth) {
    if (depth >= most_depth) {
      throw Error(Errc::corrupt, fmt::format("its groups are nested {} deep and more", most_depth));
    }
    for (const h5::Link& link : h5::links_of(group)) {
      const std::string below = fmt::format("{}/{}", path, view_name(link.name));
      if (link.type == H5L_TYPE_HARD) {
        object(h5::open_object(group, link.name.c_str()), below, depth + 1);
      } else {
        line("{} {}", link_kind(link.type), below);
      }
    }
  }

  void dataset(hid_t dataset) {
    const h5::Properties list = h5::creation_of(dataset);
    const H5D_layout_t layout = h5::layout_of(list);
    line(" layout {}", layout_text(layout));
    line(" type {}", type_text(h5::type_of(dataset)));
    line(" external-files {}", h5::external_files_of(list));
    filters(list);
    line(" fill {}", fill_text(list));
    // For the dims and the size of a virtual dataset the library would open the files behind it.
    if (layout == H5D_VIRTUAL) return;
    const auto extents = h5::extents_of(h5::space_of(dataset));
    line(" dims {}", space_text(extents, &h5::Extents::dims));
    line(" most-dims {}", space_text(extents, &h5::Extents::most));
    // To the place of a dataset without bytes, which is -1, libhdf5 adds the user block as to
    // others.
    const std::uint64_t place = h5::place_of(dataset);
    line(" offset {}", place + 1 > user_block_ ? std::to_string(place) : "none");
    line(" bytes {}", h5::storage_bytes_of(dataset));
    if (layout == H5D_CHUNKED) chunks(dataset, list);
  }

  void filters(const h5::Properties& list) {
    const int count = h5::filters_of(list);
    for (int number = 0; number < count; ++number) {
      const h5::Filter filter = h5::filter_of(list, static_cast<unsigned>(number));
      line(" filter.{} {} flags {} values {}", number, filter.id, filter.flags,
           view_numbers(std::vector<std::uint64_t>(filter.values.begin(), filter.values.end())));
    }
  }

  // A chunk's place as libhdf5 1.10.8 says it counts from the end of the user block, unlike that of
  // a contiguous dataset.
  void chunks(hid_t dataset, const h5::Properties& list) {
    const std::vector<hsize_t> dims = h5::chunk_of(list);
    const h5::Space space = h5::space_of(dataset);
    const hsize_t count = h5::chunks_of(dataset, space);
    line(" chunk {}", view_numbers(std::vector<std::uint64_t>(dims.begin(), dims.end())));
    line(" chunks {}", count);
    for (hsize_t number = 0; number < std::min<hsize_t>(count, most_view_frames); ++number) {
      h5::Chunk chunk = h5::chunk_at(dataset, space, number);
      chunk.at.resize(dims.size());
      line(" frame.{} at {} mask {} offset {} bytes {}", number,
           view_numbers(std::vector<std::uint64_t>(chunk.at.begin(), chunk.at.end())),
           chunk.filter_mask, chunk.offset + user_block_, chunk.bytes);
    }
  }

  void attribute(hid_t object, hsize_t number) {
    const h5::Attribute attribute = h5::attribute_at(object, number);
    line(" @{} {}", view_name(h5::name_of(attribute)), attribute_text(attribute));
  }

  // What has another form than ours is named, and not read.
  static std::string attribute_text(const h5::Attribute& attribute) {
    const h5::Type type = h5::type_of(attribute);
    const auto extents = h5::extents_of(h5::space_of(attribute));
    const std::size_t bytes = h5::bytes_of(type);
    if (!extents || bytes > most_attribute_bytes) return "other";
    if (h5::plain_text(type) && extents->dims.empty()) {
      std::string text(bytes, '\0');
      h5::read_attribute(attribute, type.id(), text.data());
      return view_attribute(text);
    }
    if (!h5::equal(type.id(), H5T_STD_I64LE)) return "other";
    std::size_t count = 1;
    for (const hsize_t size : extents->dims) {
      if (size > most_attribute_bytes) return "other";
      count *= size;
      if (count > most_attribute_bytes) return "other";
    }
    std::vector<std::int64_t> values(count);
    h5::read_attribute(attribute, H5T_NATIVE_INT64, values.data());
    return view_attribute(std::vector<std::uint64_t>(extents->dims.begin(), extents->dims.end()),
                          values);
  }

  std::string type_text(const h5::Type& type) const {
    if (h5::committed(type)) return "committed";
    for (const auto& [dtype, stored] : types_) {
      if (h5::equal(type.id(), stored.id())) return std::string(view_type(dtype));
    }
    return fmt::format("other class {} bytes {}", static_cast<int>(H5Tget_class(type.id())),
                       h5::bytes_of(type));
  }

  const TextSink& sink_;
  std::vector<std::pair<DType, h5::Type>> types_;
  h5::File file_;
  hsize_t user_block_ = 0;
  std::unordered_set<haddr_t> seen_;
};

}  // namespace
}  // namespace remesh::native

namespace remesh {

void write_hdf5_view(const FileSystem::Path& path, const TextSink& sink) {
  sink(fmt::format("{}\n", native::view_first_line));
  std::string last(native::view_last_line);
  try {
    native::ViewWriter(path, sink).write();
  } catch (const Error& error) {
    std::string reason = error.what();
    std::ranges::replace(reason, '\n', ' ');
    last = fmt::format("failed {}", reason);
  }
  sink(fmt::format("{}\n", last));
}

}  // namespace remesh
