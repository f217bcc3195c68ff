#include "remesh/store/hdf5_view.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hdf5_types.hpp"
#include "hdf5_view_expected.hpp"
#include "hdf5_view_text.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string view_of(const std::filesystem::path& path) {
  std::string view;
  write_hdf5_view(path, [&view](std::string_view text) { view += text; });
  return view;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::vector<std::string> messages_of(const std::vector<Finding>& findings) {
  std::vector<std::string> messages;
  messages.reserve(findings.size());
  for (const Finding& finding : findings) messages.push_back(finding.message);
  return messages;
}

// The findings, and for a text that is no view what was thrown.
std::vector<Finding> findings_of(const Reader& reader, std::uint32_t number,
                                 const std::string& view) {
  CollectedFindings findings;
  try {
    Hdf5ViewCheck check(reader, number, findings);
    check.feed(view);
    check.finish();
  } catch (const Error& error) {
    Finding thrown;
    thrown.id = error.id();
    thrown.message = error.what();
    findings.add(std::move(thrown));
  }
  return findings.all;
}

// Whether some finding tells of each line that is left out, doubled or changed.
void expect_no_line_can_change(const Reader& reader, const std::vector<std::string>& lines) {
  for (std::size_t at = 0; at < lines.size(); ++at) {
    std::vector<std::string> changed = lines;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_THAT(findings_of(reader, 0, joined(changed)), Not(IsEmpty())) << "-" << lines[at];
    changed = lines;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
    EXPECT_THAT(findings_of(reader, 0, joined(changed)), Not(IsEmpty())) << "2x" << lines[at];
    changed = lines;
    changed[at].back() ^= 1;
    EXPECT_THAT(findings_of(reader, 0, joined(changed)), Not(IsEmpty())) << "^1" << lines[at];
  }
}

class Hdf5View : public ::testing::Test {
 protected:
  explicit Hdf5View(const Catalog& catalog = test::every_kind_of_tensor(),
                    std::optional<int> level = {}) {
    test::write_checkpoint(path_, catalog, {.compress_level = level, .job_id = "test"});
    reader_ = test::open_strict(path_);
  }

  std::filesystem::path file(std::uint32_t number) const {
    return path_ / reader_->extents().files()[number].name;
  }

  std::vector<Finding> findings_of(std::uint32_t number, const std::string& view) const {
    return remesh::findings_of(*reader_, number, view);
  }

  // What is found if one line, which starts so, is another.
  std::vector<Finding> findings_with(const std::string& start, const std::string& instead) const {
    std::vector<std::string> lines = lines_of(view_of(file(0)));
    const auto line = std::ranges::find_if(
        lines, [&start](const std::string& its) { return its.starts_with(start); });
    EXPECT_NE(line, lines.end()) << start;
    if (line != lines.end()) *line = instead;
    return findings_of(0, joined(lines));
  }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_ / "ck";
  std::unique_ptr<Reader> reader_;
};

TEST_F(Hdf5View, AgreesWithTheIndexForEveryKindOfTensor) {
  const auto files = files_with_hdf5_view(*reader_);
  EXPECT_THAT(files, SizeIs(4));
  for (const std::uint32_t number : files) {
    EXPECT_THAT(messages_of(findings_of(number, view_of(file(number)))), IsEmpty());
  }
}

TEST_F(Hdf5View, ComesInAnyPieces) {
  CollectedFindings findings;
  Hdf5ViewCheck check(*reader_, 0, findings);
  for (const char letter : view_of(file(0))) check.feed(std::string_view(&letter, 1));
  check.finish();
  EXPECT_THAT(findings.all, IsEmpty());
}

TEST_F(Hdf5View, NoLineCanBeLeftOutDoubledOrChanged) {
  const std::vector<std::string> lines = lines_of(view_of(file(0)));
  ASSERT_GT(lines.size(), 150U);
  expect_no_line_can_change(*reader_, lines);
}

TEST_F(Hdf5View, IsNoViewWhereItEndsTooEarly) {
  const std::string view = view_of(file(0));
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, view.size() / 2, view.size() - 1}) {
    EXPECT_THAT(findings_of(0, view.substr(0, bytes)),
                ElementsAre(AllOf(Field(&Finding::id, "RM211"),
                                  Field(&Finding::message, HasSubstr("it has no end")))))
        << bytes;
  }
}

TEST_F(Hdf5View, NamesFileTensorBoxAndBothValues) {
  const std::vector<Finding> findings = findings_with(" offset ", " offset 7");
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, "RM211");
  EXPECT_EQ(findings[0].file, "shard-00000-of-00004.h5");
  EXPECT_EQ(findings[0].found, "7");
  EXPECT_THAT(findings[0].message, StartsWith("'shard-00000-of-00004.h5': libhdf5 sees /remesh/"
                                              "index with offset = 7, but its index says "));
}

TEST_F(Hdf5View, RefusesWhatLeadsOutOfTheFile) {
  for (const std::string line : {" layout virtual", " external-files 1"}) {
    const std::string start = line.substr(0, line.rfind(' ') + 1);
    EXPECT_THAT(findings_with(start, line), ElementsAre(Field(&Finding::id, "RM606"))) << line;
  }
  EXPECT_THAT(findings_with("end", "external-link /x\nend"),
              ElementsAre(Field(&Finding::id, "RM606")));
}

TEST_F(Hdf5View, RefusesFilters) {
  EXPECT_THAT(findings_with(" external-files 0", " external-files 0\n filter.0 32015 flags 0"),
              ElementsAre(Field(&Finding::id, "RM607")));
}

TEST_F(Hdf5View, TellsEveryObjectThatTheIndexDoesNotHave) {
  for (const std::string line :
       {"group /x", "soft-link /x", "dataset /tensors/all.bf16/7", "dataset /tensors/all.bf16/00",
        "committed-type /x", "user-link /x", "other /x", "again /x", "dataset /remesh/index2"}) {
    EXPECT_THAT(findings_with("end", line + "\nend"),
                ElementsAre(AllOf(Field(&Finding::id, "RM211"),
                                  Field(&Finding::message, HasSubstr("says nothing")))))
        << line;
  }
}

TEST_F(Hdf5View, EndsWithWhatStopsLibhdf5) {
  test::set_content(directory_ / "no.h5", "no HDF5");
  const std::string view = view_of(directory_ / "no.h5");
  EXPECT_THAT(lines_of(view), ElementsAre("hdf5-view 1", StartsWith("failed H5Fopen: ")));
  EXPECT_THAT(findings_of(0, view),
              ElementsAre(Field(&Finding::message, HasSubstr("libhdf5 says: H5Fopen: "))));
}

TEST_F(Hdf5View, IsHeardOnlyAsLongAsAnHonestOne) {
  CollectedFindings findings;
  Hdf5ViewCheck check(*reader_, 0, findings);
  check.feed("hdf5-view 1\nuserblock 4096\n");
  std::size_t bytes = 0;
  const std::string line = "group /\n";
  EXPECT_THROW(
      {
        for (; bytes < (std::size_t{64} << 20); bytes += line.size()) check.feed(line);
      },
      Error);
  EXPECT_LT(bytes, std::size_t{1} << 20);
}

// A tensor in three chunks, of which the last is short; one in one chunk; one that zstd cannot make
// smaller; one that is too small.
Catalog packed_catalog() {
  return test::small_catalog({{{"rows.few", DType::bf16, Box{{0, 2}, {0, 1101}, {0, 1000}}}, 2},
                              {{"one.few", DType::f32, Box{{0, 40}, {0, 50}}}, 0},
                              {{"noise", DType::u16, Box{{0, 2100}}}, 0},
                              {{"small", DType::u8, Box{{0, 100}}}, 0}});
}

class PackedHdf5View : public Hdf5View {
 protected:
  PackedHdf5View() : Hdf5View(packed_catalog(), 1) {}
};

TEST_F(PackedHdf5View, AgreesWithTheIndex) {
  std::size_t frames = 0;
  bool raw = false;
  for (const std::uint32_t number : files_with_hdf5_view(*reader_)) {
    const std::string view = view_of(file(number));
    EXPECT_THAT(messages_of(findings_of(number, view)), IsEmpty()) << view;
    frames += static_cast<std::size_t>(std::ranges::count_if(
        lines_of(view), [](const std::string& line) { return line.starts_with(" frame."); }));
    raw = raw || view.find(" mask 3 ") != std::string::npos;
  }
  EXPECT_EQ(frames, reader_->extents().all_frames().size());
  EXPECT_GE(frames, 6U);
  EXPECT_TRUE(raw);
}

TEST_F(PackedHdf5View, NoLineCanBeLeftOutDoubledOrChanged) {
  const std::vector<std::string> lines = lines_of(view_of(file(0)));
  ASSERT_THAT(lines, Contains(StartsWith(" frame.1 ")));
  expect_no_line_can_change(*reader_, lines);
}

TEST_F(PackedHdf5View, NamesAFrameThatLiesElsewhere) {
  const std::vector<Finding> findings = findings_with(" frame.1 ", " frame.1 at 0 0 0 mask 0 ...");
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, "RM211");
  EXPECT_EQ(findings[0].found, "at 0 0 0 mask 0 ...");
  EXPECT_EQ(findings[0].tensor, "rows.few");
  EXPECT_THAT(findings[0].message, HasSubstr("libhdf5 sees frame 1 of /tensors/rows.few/"));
  EXPECT_THAT(findings[0].message, HasSubstr("1 of "));
}

TEST_F(PackedHdf5View, EveryFieldOfAFrameCounts) {
  const std::vector<std::string> lines = lines_of(view_of(file(0)));
  const auto line = std::ranges::find_if(
      lines, [](const std::string& its) { return its.starts_with(" frame.1 "); });
  ASSERT_NE(line, lines.end());
  for (const std::string field : {" at ", " mask ", " offset ", " bytes "}) {
    std::string changed = *line;
    changed.insert(changed.find(field) + field.size(), "1");
    EXPECT_THAT(findings_with(" frame.1 ", changed), ElementsAre(Field(&Finding::id, "RM211")))
        << changed;
  }
}

TEST_F(PackedHdf5View, TellsOfFramesThatAreTooManyOrTooFew) {
  EXPECT_THAT(findings_with(" chunks ", " chunks 0"),
              ElementsAre(Field(&Finding::message, HasSubstr("with chunks = 0, but"))));
  const std::vector<std::string> lines = lines_of(view_of(file(0)));
  std::vector<std::string> fewer;
  std::ranges::copy_if(lines, std::back_inserter(fewer),
                       [](const std::string& line) { return !line.starts_with(" frame."); });
  EXPECT_THAT(findings_of(0, joined(fewer)),
              Contains(Field(&Finding::message, HasSubstr("sees 0 frames of "))));
}

TEST_F(PackedHdf5View, RefusesOtherFilters) {
  for (const std::string line : {" filter.0 32015 flags 1 values 1", " filter.0 1 flags 1 values 2",
                                 " filter.0 2 flags 1 values 2\n filter.2 3 flags 1 values none"}) {
    EXPECT_THAT(findings_with(" filter.0 ", line), ElementsAre(Field(&Finding::id, "RM607")))
        << line;
  }
  EXPECT_THAT(findings_with(" filter.1 ", " filter.1 32999 flags 1 values 1"),
              ElementsAre(Field(&Finding::id, "RM607")));
  EXPECT_THAT(findings_with(" filter.1 ", " filter.1 32015 flags 0 values 1"),
              ElementsAre(Field(&Finding::id, "RM211")));
}

TEST_F(PackedHdf5View, FiltersArePartOfWhatIsPackedAlone) {
  EXPECT_THAT(
      findings_with(" layout contiguous", " layout contiguous\n filter.0 2 flags 1 values 1"),
      ElementsAre(Field(&Finding::id, "RM607")));
}

std::string text_of(const native::ViewObject& object) {
  std::string text = fmt::format("{} {}\n", object.kind, object.path);
  for (const auto& [key, value] : object.properties) text += fmt::format(" {} {}\n", key, value);
  return text;
}

// A piece of more frames than a view has, of which the file is not there but for its header.
class ManyFrames : public Hdf5View {
 protected:
  static constexpr std::size_t count = native::most_view_frames + 2;

  ManyFrames() {
    desc_ = {"many", DType::u8, Box{{0, static_cast<Index>(count)}, {0, 4}}};
    Extent extent;
    extent.box = desc_.extent;
    extent.length_bytes = num_bytes(desc_.dtype, extent.box);
    extent.first_frame = 0;
    extent.chunk_dim = 0;
    extent.chunk_size = 1;
    std::vector<Frame> frames(count);
    for (std::size_t k = 0; k < count; ++k) {
      frames[k] = {.offset_bytes = 8192 + 8 * static_cast<std::int64_t>(k), .length_bytes = 3};
    }
    extent.offset_bytes = frames.front().offset_bytes;
    Catalog catalog;
    catalog.format = "remesh";
    catalog.tensors = {desc_};
    many_ = make_reader(posix_file_system(),
                        {std::move(catalog),
                         ExtentMap({{"shard.h5", 1 << 20}}, {extent}, {}, {}, std::move(frames)),
                         {file(0)},
                         {}});
  }

  std::string view(std::size_t frames) const {
    const Extent& extent = many_->extents().extents()[0];
    const std::span<const Frame> all = many_->extents().frames(extent);
    const std::string index = joined(lines_of(view_of(file(0))));
    const std::size_t at = index.find("dataset /remesh/index\n");
    std::string text = "hdf5-view 1\nuserblock 4096\n";
    for (const char* group : {"/", "/remesh", "/tensors", "/tensors/many"}) {
      text += text_of(native::expected_group(group));
    }
    text += index.substr(at, index.find("group /tensors\n") - at);
    text += text_of(native::expected_dataset(desc_, extent, all, "/tensors/many/0"));
    for (std::size_t k = 0; k < frames; ++k) {
      text += fmt::format(" frame.{} {}\n", k,
                          native::expected_frame(extent, all[k], static_cast<std::int64_t>(k)));
    }
    return text + "end\n";
  }

  TensorDesc desc_;
  std::unique_ptr<Reader> many_;
};

TEST_F(ManyFrames, AreNotAllComparedWhichANoteSays) {
  const auto findings = remesh::findings_of(*many_, 0, view(native::most_view_frames));
  ASSERT_THAT(messages_of(findings),
              ElementsAre(HasSubstr("of the 8194 frames of /tensors/many/0 the first 8192")));
  EXPECT_EQ(findings[0].severity, Severity::note);
}

TEST_F(ManyFrames, MustBeAsManyAsAViewHas) {
  EXPECT_THAT(remesh::findings_of(*many_, 0, view(native::most_view_frames - 1)),
              Contains(AllOf(Field(&Finding::severity, Severity::error),
                             Field(&Finding::message, HasSubstr("sees 8191 frames")))));
}

TEST(Hdf5ViewText, TypesHaveOneNameIfTheyAreOneToHdf5) {
  for (const DType one : all_dtypes()) {
    for (const DType other : all_dtypes()) {
      EXPECT_EQ(native::view_type(one) == native::view_type(other),
                H5Tequal(native::hdf5_type(one).id(), native::hdf5_type(other).id()) > 0)
          << to_string(one) << " " << to_string(other);
    }
  }
}

TEST(Hdf5ViewText, NamesHaveNoSpaceNoSlashAndOneMeaning) {
  EXPECT_EQ(native::view_name("a b/c%d\n\xc3\xa9"), "a%20b%2Fc%25d%0A%C3%A9");
}

// A file in chunks, with a user block, whose chunks were written in the order 1, 0.
void write_chunked(const std::filesystem::path& path) {
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(creation, 4096);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT);
  const std::array<hsize_t, 2> dims{4, 3};
  const std::array<hsize_t, 2> chunk{2, 3};
  const hid_t space = H5Screate_simple(2, dims.data(), nullptr);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk.data());
  H5Pset_shuffle(list);
  const hid_t set = H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  const std::array<hsize_t, 2> second{2, 0};
  const std::array<hsize_t, 2> first{0, 0};
  H5Dwrite_chunk(set, H5P_DEFAULT, 0, second.data(), 6, "SECOND");
  H5Dwrite_chunk(set, H5P_DEFAULT, 0, first.data(), 5, "FIRST");
  H5Dclose(set);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  H5Pclose(creation);
}

TEST(Hdf5ViewText, FramesOfChunkedDatasetsLieWhereTheFileHasThem) {
  const TemporaryDirectory directory;
  write_chunked(directory / "chunked.h5");
  const std::string content = test::content_of(directory / "chunked.h5");
  EXPECT_THAT(
      lines_of(view_of(directory / "chunked.h5")),
      ::testing::IsSupersetOf(
          {std::string(" layout chunked"), std::string(" chunk 2 3"), std::string(" chunks 2"),
           std::string(" filter.0 2 flags 1 values 1"),
           fmt::format(" frame.0 at 0 0 mask 0 offset {} bytes 5", content.find("FIRST")),
           fmt::format(" frame.1 at 2 0 mask 0 offset {} bytes 6", content.find("SECOND"))}));
}

}  // namespace
}  // namespace remesh
