#include "hdf5_driver.hpp"

#include <algorithm>
#include <array>
#include <new>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::h5 {
namespace {

// The features that decide where libhdf5 puts things are those of its own driver for files, so
// that both make the same bytes.
constexpr unsigned long features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
                                   H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;

constexpr haddr_t most_address = (haddr_t{1} << 63) - 1;

// Where a trial says that raw bytes lie: behind the metadata of any file.
constexpr std::int64_t far_away = std::int64_t{1} << 60;

// What an access list carries, and libhdf5 copies.
struct Info {
  Driver* driver;
};

struct OpenFile : H5FD_t {
  Driver* driver;
};

Driver& driver_of(H5FD_t* file) { return *static_cast<OpenFile*>(file)->driver; }
const Driver& driver_of(const H5FD_t* file) { return *static_cast<const OpenFile*>(file)->driver; }

Content content_of(H5FD_mem_t type) {
  return type == H5FD_MEM_DRAW ? Content::raw : Content::metadata;
}

herr_t status(bool good) { return good ? 0 : -1; }

// What libhdf5 calls. No exception may leave these.

H5FD_t* open(const char* /*name*/, unsigned /*flags*/, hid_t access, haddr_t /*most*/) {
  const auto* const info = static_cast<const Info*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* const file = new (std::nothrow) OpenFile{};
  if (file != nullptr) file->driver = info->driver;
  return file;
}

herr_t close(H5FD_t* file) {
  delete static_cast<OpenFile*>(file);
  return 0;
}

herr_t query(const H5FD_t* /*file*/, unsigned long* flags) {
  *flags = features;
  return 0;
}

haddr_t allocate(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, hsize_t bytes) {
  return driver_of(file).allocate(content_of(type), bytes);
}

haddr_t end_of_space(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return driver_of(file).end_of_space();
}

herr_t set_end_of_space(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t end) {
  driver_of(file).set_end_of_space(end);
  return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return driver_of(file).end_of_file();
}

herr_t read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t offset, size_t count,
            void* into) {
  return status(driver_of(file).read(offset, {static_cast<std::byte*>(into), count}));
}

herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t /*transfer*/, haddr_t offset, size_t count,
             const void* from) {
  return status(driver_of(file).write(content_of(type), offset,
                                      {static_cast<const std::byte*>(from), count}));
}

herr_t truncate(H5FD_t* file, hid_t /*transfer*/, hbool_t /*closing*/) {
  return status(driver_of(file).truncate());
}

H5FD_class_t describe() {
  H5FD_class_t driver{};
  driver.name = "remesh";
  driver.maxaddr = most_address;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Info);
  driver.open = open;
  driver.close = close;
  driver.query = query;
  driver.alloc = allocate;
  driver.get_eoa = end_of_space;
  driver.set_eoa = set_end_of_space;
  driver.get_eof = end_of_file;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  constexpr std::array kinds H5FD_FLMAP_DICHOTOMY;
  std::ranges::copy(kinds, driver.fl_map);
  return driver;
}

// libhdf5 keeps the class for as long as it runs.
hid_t registered() {
  static const H5FD_class_t driver = describe();
  static const hid_t id = check_id(H5FDregister(&driver), "H5FDregister");
  return id;
}

}  // namespace

void FileMedium::read(std::int64_t offset, std::span<std::byte> into) {
  file_.read_at(offset, into);
}

void FileMedium::write(Content /*content*/, std::int64_t offset, std::span<const std::byte> from) {
  file_.write_at(offset, from);
}

// The last byte is no metadata, or it would have been written.
void FileMedium::grow(std::int64_t size_bytes) {
  constexpr std::array last{std::byte{0}};
  file_.write_at(size_bytes - 1, last);
}

PlannedMedium PlannedMedium::trial(remesh::File& file, std::int64_t metadata_begin) {
  PlannedMedium medium(file, {metadata_begin, far_away});
  medium.far_end_ = far_away;
  return medium;
}

void PlannedMedium::expect(ByteRange raw) noexcept {
  const std::int64_t bytes = raw.end - raw.begin;
  asked_for_ = false;
  expected_ = far_end_ == 0 ? raw : ByteRange{far_end_, far_end_ + bytes};
  if (far_end_ != 0) far_end_ += bytes;
}

// What was given out as metadata may not have been written yet, nor anything behind it.
void PlannedMedium::read(std::int64_t offset, std::span<std::byte> into) {
  const std::int64_t left = std::max<std::int64_t>(0, file_.size_bytes() - offset);
  const auto there = into.first(std::min(into.size(), static_cast<std::size_t>(left)));
  file_.read_at(offset, there);
  std::ranges::fill(into.subspan(there.size()), std::byte{});
}

void PlannedMedium::write(Content content, std::int64_t offset, std::span<const std::byte> from) {
  const ByteRange range{offset, offset + std::ssize(from)};
  if (content == Content::raw) return check_expected("writes", range);
  if (range.begin < metadata_.begin || range.end > metadata_end_) {
    throw Error(Errc::internal,
                fmt::format("libhdf5 writes metadata to bytes [{}, {}), but it was given [{}, {}); "
                            "this is a bug in remesh",
                            range.begin, range.end, metadata_.begin, metadata_end_));
  }
  file_.write_at(offset, from);
}

void PlannedMedium::grow(std::int64_t size_bytes) {
  if (far_end_ != 0 || file_.size_bytes() >= size_bytes) return;
  constexpr std::array last{std::byte{0}};
  file_.write_at(size_bytes - 1, last);
}

std::int64_t PlannedMedium::place(Content content, std::int64_t /*end*/, std::int64_t bytes) {
  if (content == Content::metadata) return place_metadata(bytes);
  if (asked_for_) expected_ = {};
  check_expected("asks for", {expected_.begin, expected_.begin + bytes});
  asked_for_ = true;
  return expected_.begin;
}

std::int64_t PlannedMedium::place_metadata(std::int64_t bytes) {
  const std::int64_t offset = metadata_end_;
  if (bytes > metadata_.end - offset) {
    throw Error(Errc::internal,
                fmt::format("libhdf5 asks for {} bytes of metadata at {}, but they were planned to "
                            "end at {}; this is a bug in remesh",
                            bytes, offset, metadata_.end));
  }
  metadata_end_ += bytes;
  return offset;
}

void PlannedMedium::check_expected(const char* what, ByteRange raw) const {
  if (raw == expected_) return;
  throw Error(Errc::internal,
              fmt::format("libhdf5 {} bytes [{}, {}) for content, but [{}, {}) were planned; this "
                          "is a bug in remesh",
                          what, raw.begin, raw.end, expected_.begin, expected_.end));
}

void Driver::use_in(const Properties& access) {
  const Info info{this};
  check(H5Pset_driver(access.id(), registered(), &info), "H5Pset_driver");
}

template <typename Step>
void Driver::attempt(const Step& step) noexcept {
  if (failure_) return;
  try {
    step();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

bool Driver::read(haddr_t offset, std::span<std::byte> into) noexcept {
  const auto there =
      std::min<haddr_t>(into.size(), end_of_medium_ - std::min(end_of_medium_, offset));
  const auto on_medium = into.first(static_cast<std::size_t>(there));
  std::ranges::fill(into.subspan(on_medium.size()), std::byte{});
  try {
    if (!on_medium.empty()) medium_.read(static_cast<std::int64_t>(offset), on_medium);
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
    return false;
  }
  read_kept(offset, into);
  return true;
}

void Driver::read_kept(haddr_t offset, std::span<std::byte> into) const noexcept {
  const haddr_t end = offset + into.size();
  for (const Kept& kept : kept_) {
    const haddr_t from = std::max(offset, kept.offset);
    const haddr_t to = std::min(end, kept.offset + kept.bytes.size());
    if (from >= to) continue;
    const auto bytes = std::span(kept.bytes).subspan(from - kept.offset, to - from);
    std::ranges::copy(bytes, into.subspan(from - offset).begin());
  }
}

bool Driver::write(Content content, haddr_t offset, std::span<const std::byte> from) noexcept {
  attempt([&] { medium_.write(content, static_cast<std::int64_t>(offset), from); });
  end_of_file_ = std::max(end_of_file_, offset + from.size());
  if (!failure_) {
    end_of_medium_ = std::max(end_of_medium_, offset + from.size());
    return true;
  }
  try {
    kept_.push_back({offset, {from.begin(), from.end()}});
    return true;
  } catch (...) {
    return false;
  }
}

bool Driver::truncate() noexcept {
  attempt([&] {
    if (end_of_file_ > end_of_space_) {
      throw Error(Errc::internal,
                  fmt::format("libhdf5 wrote up to byte {} of a file that it says ends at {}; this "
                              "is a bug in remesh",
                              end_of_file_, end_of_space_));
    }
    if (end_of_file_ < end_of_space_) {
      medium_.grow(static_cast<std::int64_t>(end_of_space_));
      end_of_medium_ = end_of_space_;
    }
  });
  end_of_file_ = end_of_space_;
  return true;
}

haddr_t Driver::allocate(Content content, hsize_t bytes) noexcept {
  haddr_t offset = end_of_space_;
  attempt([&] {
    offset = static_cast<haddr_t>(medium_.place(content, static_cast<std::int64_t>(end_of_space_),
                                                static_cast<std::int64_t>(bytes)));
  });
  end_of_space_ = std::max<haddr_t>(end_of_space_, offset + bytes);
  return offset;
}

}  // namespace remesh::h5
