#include "shard_hdf5.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faulty_file_system.hpp"
#include "hdf5_types.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "shard_reader.hpp"
#include "temporary_directory.hpp"

namespace remesh::native {
namespace {

using test::TemporaryDirectory;
using test::write_checkpoint;
using ::testing::HasSubstr;

// What libhdf5 itself reads, without any code of remesh.
class Viewer {
 public:
  explicit Viewer(const std::filesystem::path& path)
      : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {}
  ~Viewer() { H5Fclose(file_); }
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  bool good() const { return file_ >= 0; }

  // As stored, unconverted.
  std::vector<std::byte> bytes(const std::string& dataset) const {
    const hid_t id = H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT);
    if (id < 0) return {};
    const hid_t type = H5Dget_type(id);
    const hid_t space = H5Dget_space(id);
    std::vector<std::byte> read(H5Tget_size(type) *
                                static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    if (!read.empty()) H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data());
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(id);
    return read;
  }

  std::vector<float> floats(const std::string& dataset, std::size_t count) const {
    const hid_t id = H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT);
    std::vector<float> read(count);
    H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data());
    H5Dclose(id);
    return read;
  }

  std::string text(const std::string& dataset, const char* attribute) const {
    const hid_t id = H5Aopen_by_name(file_, dataset.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0) return "(none)";
    const hid_t type = H5Aget_type(id);
    std::string value(H5Tget_size(type), '\0');
    H5Aread(id, type, value.data());
    H5Tclose(type);
    H5Aclose(id);
    return value;
  }

  std::vector<std::int64_t> numbers(const std::string& dataset, const char* attribute) const {
    const hid_t id = H5Aopen_by_name(file_, dataset.c_str(), attribute, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0) return {};
    const hid_t space = H5Aget_space(id);
    std::vector<std::int64_t> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Aread(id, H5T_NATIVE_INT64, values.data());
    H5Sclose(space);
    H5Aclose(id);
    return values;
  }

 private:
  hid_t file_;
};

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return output + "exit " + std::to_string(status);
}

// The view of HDF5 and the index agree on every byte and every name: no polyglots.
TEST(ShardHdf5, LibhdfReadsTheSameBytesAsTheIndexSays) {
  TemporaryDirectory directory;
  const Catalog catalog = test::every_kind_of_tensor();
  write_checkpoint(directory / "ckpt", catalog);
  const auto reader = test::open_strict(directory / "ckpt");

  std::map<std::pair<std::uint32_t, std::uint32_t>, int> next;  // the k of each tensor in each file
  std::vector<Extent> extents(reader->extents().extents().begin(),
                              reader->extents().extents().end());
  std::ranges::sort(extents, {}, [](const Extent& e) { return std::tie(e.file, e.tensor, e.box); });
  for (const Extent& extent : extents) {
    const TensorDesc& desc = catalog.tensors[extent.tensor];
    const Viewer viewer(directory / "ckpt" / reader->extents().files()[extent.file].name);
    ASSERT_TRUE(viewer.good());
    const std::string dataset = "/tensors/" + percent_encode(desc.name) + "/" +
                                std::to_string(next[{extent.file, extent.tensor}]++);
    EXPECT_EQ(viewer.bytes(dataset), test::numbered(desc, extent.box)) << dataset;
    EXPECT_EQ(viewer.text(dataset, "remesh_tensor"), desc.name);
    EXPECT_EQ(viewer.text(dataset, "remesh_dtype"), to_string(desc.dtype));
    std::vector<std::int64_t> box;
    std::vector<std::int64_t> shape;
    for (int dim = 0; dim < extent.box.ndim(); ++dim) {
      box.push_back(extent.box[dim].begin);
      box.push_back(extent.box[dim].end);
      shape.push_back(extent.box[dim].size());
    }
    EXPECT_EQ(viewer.numbers(dataset, "remesh_box"), box) << dataset;
    if (bits(desc.dtype) % 8 != 0) {
      EXPECT_EQ(viewer.numbers(dataset, "remesh_shape"), shape);
    }
  }
}

TEST(ShardHdf5, TheIndexIsADatasetOfItsOwn) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "ckpt", test::tiny_catalog());
  const auto path = directory / "ckpt" / "shard-00000-of-00004.h5";
  StrictFindings findings;
  const auto file = posix_file_system().open(path);
  const auto header = read_header(*file, path, "shard", findings)->header;
  const std::string content = test::content_of(path);
  EXPECT_EQ(Viewer(path).bytes("/remesh/index"),
            test::bytes_of(std::string_view(content).substr(
                static_cast<std::size_t>(header.index.begin),
                static_cast<std::size_t>(header.index.end - header.index.begin))));
  EXPECT_EQ(static_cast<std::int64_t>(content.size()), header.file_bytes);
}

// Viewers convert: the kinds that we describe to HDF5 field by field must mean what they say.
TEST(ShardHdf5, SixteenBitFloatsHaveTheValuesThatTheyStandFor) {
  TemporaryDirectory directory;
  const TensorDesc bf16{"b", DType::bf16, Box{{0, 4}}};
  const TensorDesc f16{"f", DType::f16, Box{{0, 4}}};
  const auto writer = test::start(directory / "ckpt", test::small_catalog({{bf16, 0}, {f16, 0}}));
  const std::vector<std::uint16_t> as_bf16{0x3F80, 0xC040, 0x0080, 0x7F80};  // 1, -3, 2^-126, inf
  const std::vector<std::uint16_t> as_f16{0x3C00, 0xC200, 0x0001, 0x7BFF};   // 1, -3, 2^-24, 65504
  writer->write(0, bf16.extent, std::as_bytes(std::span(as_bf16)), {});
  writer->write(1, f16.extent, std::as_bytes(std::span(as_f16)), {});
  writer->seal(test::true_digests(writer->catalog()),
               test::true_blocks(writer->catalog(), writer->extents()));
  writer->publish();

  EXPECT_EQ(Viewer(directory / "ckpt" / "shard-00000-of-00004.h5").floats("/tensors/b/0", 4),
            (std::vector<float>{1.0F, -3.0F, std::ldexp(1.0F, -126), INFINITY}));
  EXPECT_EQ(Viewer(directory / "ckpt" / "shard-00001-of-00004.h5").floats("/tensors/f/0", 4),
            (std::vector<float>{1.0F, -3.0F, std::ldexp(1.0F, -24), 65504.0F}));
}

TEST(ShardHdf5, TheUsualToolsReadIt) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "ckpt", test::every_kind_of_tensor());
  const std::string shard = (directory / "ckpt" / "shard-00000-of-00004.h5").string();
  EXPECT_THAT(output_of("h5ls -r " + shard),
              ::testing::AllOf(HasSubstr("/tensors/all.f16/0 "), HasSubstr("/remesh/index "),
                               HasSubstr("Dataset {3, 8}"), ::testing::EndsWith("exit 0")));
  EXPECT_THAT(output_of("h5dump -A " + shard),
              ::testing::AllOf(HasSubstr("ATTRIBUTE \"remesh_dtype\""),
                               HasSubstr("(0): \"f8_e4m3\""), ::testing::EndsWith("exit 0")));
  EXPECT_THAT(output_of("h5dump " + shard), ::testing::EndsWith("exit 0"));
}

TEST(ShardHdf5, FailsWithThePathWhereThereIsSomethingAlready) {
  TemporaryDirectory directory;
  test::set_content(directory / "f.h5", "x");
  ShardIndex index;
  try {
    create_hdf5(posix_file_system(), directory / "f.h5", index, 48);
    FAIL() << "created";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::exists);
    EXPECT_THAT(error.what(), HasSubstr("cannot create '" + (directory / "f.h5").string() + "': "));
  }
  EXPECT_EQ(test::content_of(directory / "f.h5"), "x");
}

ShardIndex many_tensors(std::uint32_t count) {
  ShardIndex index;
  for (std::uint32_t k = 0; k < count; ++k) {
    const TensorDesc desc{"model.layers." + std::to_string(k) + ".mlp.experts.7.up_proj.weight",
                          DType::bf16, Box{{0, 64}, {0, 8}}};
    index.tensors.push_back({k, desc});
    for (Index half = 0; half < 2; ++half) {
      Extent extent;
      extent.tensor = k;
      extent.box = Box{{32 * half, 32 * half + 32}, {0, 8}};
      extent.length_bytes = num_bytes(desc.dtype, extent.box);
      index.extents.push_back(extent);
    }
  }
  return index;
}

// So that metadata lies together, and the check of free space knows the truth.
TEST(ShardHdf5, TheEstimateOfMetadataIsALittleTooLarge) {
  for (const std::uint32_t count : {1U, 10U, 1000U}) {
    TemporaryDirectory directory;
    ShardIndex index = many_tensors(count);
    create_hdf5(posix_file_system(), directory / "f.h5", index, 4096);
    std::int64_t payload = 0;
    for (const Extent& extent : index.extents) payload += extent.length_bytes;
    const auto metadata =
        static_cast<std::int64_t>(std::filesystem::file_size(directory / "f.h5")) - payload -
        header_bytes - 4096;
    EXPECT_LE(metadata, estimated_metadata_bytes(index)) << count;
    std::set<std::int64_t> offsets;
    for (const Extent& extent : index.extents) offsets.insert(extent.offset_bytes);
    EXPECT_EQ(offsets.size(), index.extents.size());
  }
}

// Content goes past libhdf5. Only the last byte is written, so that the file is as long as it says.
TEST(ShardHdf5, CreationWritesNoByteOfContent) {
  TemporaryDirectory directory;
  test::FaultyFileSystem files(posix_file_system());
  ShardIndex index = many_tensors(300);
  const std::int64_t index_bytes = 100'000;
  const std::int64_t index_offset = create_hdf5(files, directory / "f.h5", index, index_bytes);
  const std::string content = test::content_of(directory / "f.h5");
  std::vector<ByteRange> payload{{index_offset, index_offset + index_bytes}};
  for (const Extent& extent : index.extents) {
    payload.push_back({extent.offset_bytes, extent.offset_bytes + extent.length_bytes});
  }
  for (const ByteRange& range : payload) {
    for (const auto& [path, offset] : files.events()) {
      if (offset + 1 == std::ssize(content)) continue;
      EXPECT_FALSE(range.begin <= offset && offset < range.end) << offset;
    }
    ASSERT_LE(range.end, std::ssize(content));
    const auto bytes = std::string_view(content).substr(
        static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin));
    EXPECT_EQ(bytes.find_first_not_of('\0'), std::string_view::npos) << range.begin;
  }
}

// Whatever call it is: its own error, unchanged, and libhdf5 lets go of the file.
TEST(ShardHdf5, AFailureOfAnyCallIsTheErrorOfTheFileSystem) {
  TemporaryDirectory directory;
  test::FaultyFileSystem whole(posix_file_system());
  ShardIndex index = many_tensors(100);
  create_hdf5(whole, directory / "whole.h5", index, 4096);
  ASSERT_GT(whole.calls(), 5);
  for (std::int64_t call = 0; call < whole.calls(); ++call) {
    SCOPED_TRACE(call);
    test::FaultyFileSystem files(posix_file_system());
    files.fail_at(call);
    try {
      create_hdf5(files, directory / ("f" + std::to_string(call)), index, 4096);
      ADD_FAILURE() << "failed unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::io);
      EXPECT_EQ(error.what(), std::string(call == 0 ? "create" : "write_at") +
                                  ": injected failure of call " + std::to_string(call));
    }
    EXPECT_EQ(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL), 0);
    EXPECT_EQ(files.calls(), call + 1);  // it did not go on
  }
}

TEST(PercentEncode, KeepsWhatIsPlainAndEscapesTheRest) {
  EXPECT_EQ(percent_encode("model.layers.0.weight@exp_avg"), "model.layers.0.weight@exp_avg");
  EXPECT_EQ(percent_encode("a/b c%\n\xc3\xa9"), "a%2Fb%20c%25%0A%C3%A9");
  EXPECT_EQ(percent_encode("."), "%2E");
  EXPECT_EQ(percent_encode(".."), "%2E%2E");
  EXPECT_EQ(percent_encode(".a"), ".a");
}

}  // namespace
}  // namespace remesh::native
