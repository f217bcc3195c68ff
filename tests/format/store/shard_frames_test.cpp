// Shards whose frames were there before libhdf5 was asked: it must describe exactly what lies
// there.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "faulty_file_system.hpp"
#include "hdf5.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/chunks.hpp"
#include "seeds.hpp"
#include "shard_hdf5.hpp"
#include "temporary_directory.hpp"

namespace remesh::native {
namespace {

using test::Arbitrary;
using test::TemporaryDirectory;
using ::testing::HasSubstr;

struct Limits {
  Index tensors = 12;
  Index chunks = 40;
  Index row_bytes = 200;
};

void add_extent(ShardIndex& index, Arbitrary& arbitrary, std::uint32_t tensor) {
  const TensorDesc& desc = index.tensors[tensor].desc;
  Extent extent;
  extent.tensor = tensor;
  extent.copy = static_cast<std::uint32_t>(index.extents.size());
  extent.box = desc.extent;
  extent.length_bytes = num_bytes(desc.dtype, extent.box);
  if (extent.length_bytes > 0 && bits(desc.dtype) % 8 == 0 && arbitrary.chance(75)) {
    extent.chunk_dim = static_cast<int>(arbitrary.between(0, desc.extent.ndim() - 1));
    const Index rows = desc.extent[extent.chunk_dim].size();
    extent.chunk_size = arbitrary.chance(50) ? 1 : arbitrary.between(1, rows);
  }
  index.extents.push_back(extent);
}

ShardIndex arbitrary_index(Arbitrary& arbitrary, const Limits& limits) {
  ShardIndex index;
  const Index tensors = arbitrary.between(1, limits.tensors);
  for (Index k = 0; k < tensors; ++k) {
    Box box{{0, arbitrary.between(arbitrary.chance(5) ? 0 : 1, limits.chunks)},
            {0, 8 * arbitrary.between(1, std::max<Index>(1, limits.row_bytes / 64))}};
    if (arbitrary.chance(30)) box = Box{{0, arbitrary.between(1, 3)}, box[0], box[1]};
    index.tensors.push_back(
        {static_cast<std::uint32_t>(k), {"t" + std::to_string(k), arbitrary.dtype(), box}});
    const Index extents = arbitrary.between(1, 2);
    for (Index each = 0; each < extents; ++each) {
      add_extent(index, arbitrary, static_cast<std::uint32_t>(k));
    }
  }
  return index;
}

// Appends a frame of any length and content for each chunk.
void write_frames(File& file, ShardIndex& index, const FramePlan& plan, Arbitrary& arbitrary) {
  std::int64_t end = plan.frames_begin;
  for (Extent& extent : index.extents) {
    if (!is_chunked(extent)) continue;
    const DType dtype = index.tensors[extent.tensor].desc.dtype;
    const std::int64_t whole = whole_chunk_bytes(dtype, extent);
    extent.first_frame = std::ssize(index.frames);
    for (std::int64_t k = 0; k < num_chunks(extent); ++k) {
      Frame frame;
      frame.raw = whole == 1 || arbitrary.chance(20);
      frame.length_bytes =
          static_cast<std::int32_t>(frame.raw ? whole : arbitrary.between(1, whole - 1));
      frame.offset_bytes = next_offset(end, frame.length_bytes);
      end = frame.offset_bytes + frame.length_bytes;
      file.write_at(frame.offset_bytes, arbitrary.bytes(frame.length_bytes));
      index.frames.push_back(frame);
    }
    extent.offset_bytes = index.frames[static_cast<std::size_t>(extent.first_frame)].offset_bytes;
  }
}

constexpr std::int64_t index_bytes = 70'000;

struct Made {
  FramePlan plan;
  ShardIndex index;
};

Made make(FileSystem& files, const std::filesystem::path& path, std::uint64_t seed,
          const Limits& limits) {
  Arbitrary arbitrary(seed);
  ShardIndex index = arbitrary_index(arbitrary, limits);
  const auto file = files.create(path);
  const FramePlan plan = plan_frames(*file, path, index, index_bytes);
  write_frames(*file, index, plan, arbitrary);
  for (const Extent& extent : index.extents) {
    if (!is_chunked(extent) && extent.length_bytes > 0) {
      file->write_at(extent.offset_bytes, arbitrary.bytes(extent.length_bytes));
    }
  }
  describe_frames(*file, path, index, index_bytes, plan);
  return {plan, index};
}

// What it throws, as text; empty if it throws nothing.
template <typename Step>
std::string complaint_of(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    return (error.code() == Errc::internal ? "bug: " : "") + std::string(error.what());
  }
  return {};
}

ssize_t num_open() { return H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL); }

// What libhdf5 reads, with its own driver for files.
class Viewer {
 public:
  explicit Viewer(const std::filesystem::path& path)
      : content_(test::content_of(path)),
        file_(h5::check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen")) {}

  void expect_index(const FramePlan& plan) const {
    const h5::Dataset dataset = open("/remesh/index");
    EXPECT_EQ(static_cast<std::int64_t>(h5::offset_of(dataset)), plan.index_offset);
  }

  void expect_contiguous(const Extent& extent, const std::string& name) const {
    const h5::Dataset dataset = open(name);
    if (extent.length_bytes == 0) return;
    EXPECT_EQ(static_cast<std::int64_t>(h5::offset_of(dataset)), extent.offset_bytes);
  }

  void expect_frames(const Extent& extent, const std::string& name,
                     std::span<const Frame> frames) const {
    const h5::Dataset dataset = open(name);
    for (std::size_t k = 0; k < frames.size(); ++k) {
      SCOPED_TRACE(k);
      const std::vector<hsize_t> at = first_of(extent, static_cast<std::int64_t>(k));
      expect_frame(dataset, at, frames[k]);
      if (k % 97 == 0) expect_address(dataset, at, frames[k]);
    }
  }

 private:
  static std::vector<hsize_t> first_of(const Extent& extent, std::int64_t k) {
    const Box box = chunk_box(extent, k);
    std::vector<hsize_t> at(static_cast<std::size_t>(box.ndim()));
    for (int dim = 0; dim < box.ndim(); ++dim) {
      at[static_cast<std::size_t>(dim)] =
          static_cast<hsize_t>(box[dim].begin - extent.box[dim].begin);
    }
    return at;
  }

  void expect_frame(const h5::Dataset& dataset, const std::vector<hsize_t>& at,
                    const Frame& frame) const {
    hsize_t length = 0;
    h5::check(H5Dget_chunk_storage_size(dataset.id(), at.data(), &length), "storage size");
    ASSERT_EQ(length, static_cast<hsize_t>(frame.length_bytes));
    std::string bytes(length, '\0');
    std::uint32_t skipped = 7;
    h5::check(H5Dread_chunk(dataset.id(), H5P_DEFAULT, at.data(), &skipped, bytes.data()), "read");
    EXPECT_EQ(skipped, frame.raw ? 3U : 0U);
    EXPECT_TRUE(bytes == content_.substr(static_cast<std::size_t>(frame.offset_bytes), length));
  }

  h5::Dataset open(const std::string& name) const {
    return h5::Dataset(h5::check_id(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT), "H5Dopen2"));
  }

  static void expect_address(const h5::Dataset& dataset, const std::vector<hsize_t>& at,
                             const Frame& frame) {
    haddr_t address = 0;
    hsize_t length = 0;
    unsigned skipped = 0;
    ASSERT_GE(H5Dget_chunk_info_by_coord(dataset.id(), at.data(), &skipped, &address, &length), 0);
    // libhdf5 1.10 counts these from behind the user block.
    EXPECT_EQ(static_cast<std::int64_t>(address) + header_bytes, frame.offset_bytes);
  }

  std::string content_;
  h5::File file_;
};

void expect_described(const std::filesystem::path& path, const Made& made) {
  const Viewer viewer(path);
  viewer.expect_index(made.plan);
  int k = 0;
  for (std::size_t at = 0; at < made.index.extents.size(); ++at) {
    const Extent& extent = made.index.extents[at];
    k = at > 0 && made.index.extents[at - 1].tensor == extent.tensor ? k + 1 : 0;
    const std::string name =
        "/tensors/" + made.index.tensors[extent.tensor].desc.name + "/" + std::to_string(k);
    SCOPED_TRACE(name);
    if (is_chunked(extent)) {
      viewer.expect_frames(extent, name,
                           std::span(made.index.frames)
                               .subspan(static_cast<std::size_t>(extent.first_frame),
                                        static_cast<std::size_t>(num_chunks(extent))));
    } else {
      viewer.expect_contiguous(extent, name);
    }
  }
}

// Returns how many chunks the extent with most of them had.
std::int64_t expect_all_described(unsigned seeds, const Limits& limits) {
  h5::be_quiet();
  std::int64_t most = 0;
  for (unsigned seed = 0; seed < test::num_seeds(seeds); ++seed) {
    SCOPED_TRACE(seed);
    TemporaryDirectory directory;
    const Made made = make(posix_file_system(), directory / "f.h5", seed, limits);
    expect_described(directory / "f.h5", made);
    for (const Extent& extent : made.index.extents) {
      if (is_chunked(extent)) most = std::max(most, num_chunks(extent));
    }
  }
  return most;
}

TEST(ShardFrames, LibhdfReadsTheFramesThatWereThere) {
  EXPECT_GT(expect_all_described(40, {}), 20);
}

// libhdf5 keeps the places of more than 1024 chunks in pages.
TEST(ShardFrames, AlsoThoseOfThousandsOfChunks) {
  EXPECT_GT(expect_all_described(4, {.tensors = 3, .chunks = 3000, .row_bytes = 64}), 2048);
}

TEST(ShardFrames, AlsoThoseOfThousandsOfDatasets) {
  EXPECT_GT(expect_all_described(1, {.tensors = 3000, .chunks = 2, .row_bytes = 64}), 1);
}

TEST(ShardFrames, AlsoLargeOnes) {
  EXPECT_GT(expect_all_described(4, {.tensors = 2, .chunks = 3, .row_bytes = 1 << 18}), 1);
}

std::vector<ByteRange> all_ranges(const Made& made) {
  std::vector<ByteRange> ranges{{0, header_bytes},
                                {header_bytes, made.plan.metadata_end},
                                {made.plan.index_offset, made.plan.index_offset + index_bytes}};
  for (const Extent& extent : made.index.extents) {
    if (is_chunked(extent) || extent.length_bytes == 0) continue;
    ranges.push_back({extent.offset_bytes, extent.offset_bytes + extent.length_bytes});
  }
  for (const Frame& frame : made.index.frames) {
    ranges.push_back({frame.offset_bytes, frame.offset_bytes + frame.length_bytes});
  }
  return ranges;
}

TEST(ShardFrames, NothingOverlapsAndPayloadIsAligned) {
  TemporaryDirectory directory;
  const Made made = make(posix_file_system(), directory / "f.h5", 1, {.row_bytes = 1 << 15});
  const std::vector<ByteRange> ranges = all_ranges(made);
  for (std::size_t k = 1; k < ranges.size(); ++k) {
    EXPECT_GE(ranges[k].begin, ranges[k - 1].end);
    const bool large = ranges[k].end - ranges[k].begin >= 65536;
    EXPECT_TRUE(k == 1 || ranges[k].begin % (large ? 4096 : 8) == 0);
  }
  EXPECT_EQ(ranges.back().end,
            static_cast<std::int64_t>(std::filesystem::file_size(directory / "f.h5")));
}

TEST(ShardFrames, TheSameFramesGiveTheSameBytes) {
  TemporaryDirectory directory;
  make(posix_file_system(), directory / "a", 5, {});
  make(posix_file_system(), directory / "b", 5, {});
  EXPECT_TRUE(test::content_of(directory / "a") == test::content_of(directory / "b"));
}

TEST(ShardFrames, APlanIsRefusedWhereLibhdf5WantsMetadataBeyondIt) {
  TemporaryDirectory directory;
  const auto path = directory / "f.h5";
  Made made = make(posix_file_system(), path, 2, {});
  const auto file = posix_file_system().open_for_writing(path);
  for (const std::int64_t change : {-1, 1}) {
    FramePlan wrong = made.plan;
    wrong.metadata_end += change;
    const auto step = [&] { describe_frames(*file, path, made.index, index_bytes, wrong); };
    EXPECT_THAT(
        complaint_of(step),
        ::testing::AllOf(::testing::StartsWith("bug: "),
                         HasSubstr("planned to end at " + std::to_string(wrong.metadata_end))));
    EXPECT_EQ(num_open(), 0);
  }
}

TEST(ShardFrames, AFailureOfAnyCallIsTheErrorOfTheFileSystem) {
  TemporaryDirectory directory;
  const Limits few{.tensors = 4, .chunks = 6};
  test::FaultyFileSystem whole(posix_file_system());
  make(whole, directory / "whole.h5", 3, few);
  for (std::int64_t call = 0; call < whole.calls(); ++call) {
    SCOPED_TRACE(call);
    test::FaultyFileSystem files(posix_file_system());
    files.fail_at(call);
    const auto step = [&] { make(files, directory / ("f" + std::to_string(call)), 3, few); };
    EXPECT_THAT(complaint_of(step), HasSubstr("injected failure of call " + std::to_string(call)));
    EXPECT_EQ(num_open(), 0);
    EXPECT_EQ(files.calls(), call + 1);
  }
}

TEST(ShardFrames, TheUsualToolsShowThem) {
  TemporaryDirectory directory;
  make(posix_file_system(), directory / "f.h5", 1, {});
  const std::string path = (directory / "f.h5").string();
  const std::string command = "h5dump -p -H " + path + " > " + path + ".txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_THAT(test::content_of(path + ".txt"),
              ::testing::AllOf(HasSubstr("FILTER_ID 32015"), HasSubstr("PREPROCESSING SHUFFLE")));
}

}  // namespace
}  // namespace remesh::native
