#include "remesh/store/native_store.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/store/tally.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using test::open_strict;
using test::TemporaryDirectory;
using test::write_checkpoint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

std::map<std::string, std::string> all_files(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), directory).string()] = test::content_of(entry.path());
    }
  }
  return files;
}

std::vector<std::string> names(const fs::path& directory) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    found.push_back(entry.path().filename().string());
  }
  std::ranges::sort(found);
  return found;
}

TEST(NativeStore, ReadsBackEveryKindOfTensorAsItWasWritten) {
  TemporaryDirectory directory;
  Catalog wanted = test::every_kind_of_tensor();
  write_checkpoint(directory / "ckpt", wanted);

  const auto reader = open_strict(directory / "ckpt");

  EXPECT_EQ(test::what_differs(*reader), "");
  const Catalog& catalog = reader->catalog();
  EXPECT_EQ(catalog.format, "remesh");
  EXPECT_EQ(catalog.tensors, wanted.tensors);
  EXPECT_EQ(catalog.digests, test::true_digests(wanted));
  EXPECT_EQ(catalog.layout, wanted.layout);
  EXPECT_EQ(catalog.side, wanted.side);
  EXPECT_EQ(catalog.run_id, "run 7");
  EXPECT_EQ(catalog.save_id.size(), 32U);
  for (const SideFile& side : catalog.side) {
    EXPECT_EQ(reader->side(side), test::side_bytes(side));
  }
}

TEST(NativeStore, StoresEachElementOnceAndEmptyTensorsToo) {
  TemporaryDirectory directory;
  const Catalog wanted = test::every_kind_of_tensor();
  write_checkpoint(directory / "ckpt", wanted);

  const auto reader = open_strict(directory / "ckpt");

  EXPECT_EQ(reader->extents().copies(), 1U);
  Tally tally(reader->catalog().tensors, reader->extents(), /*with_blocks=*/true);
  for (const Extent& extent : reader->extents().extents()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(extent.length_bytes));
    reader->read_bytes(extent.file, extent.offset_bytes, bytes);
    tally.add(extent.file, extent.offset_bytes, bytes);
  }
  for (std::size_t tensor = 0; tensor < wanted.tensors.size(); ++tensor) {
    EXPECT_TRUE(tally.sum(tensor).complete) << wanted.tensors[tensor].name;
    EXPECT_EQ(tally.sum(tensor).digest, reader->catalog().digests[tensor]);
    EXPECT_THAT(reader->extents().of(tensor), ::testing::Not(IsEmpty()))
        << wanted.tensors[tensor].name;
  }
  EXPECT_THAT(test::damage_of(*reader), IsEmpty());
}

TEST(NativeStore, CopiesAreStoredByDifferentHolders) {
  TemporaryDirectory directory;
  const Catalog wanted = test::every_kind_of_tensor();
  write_checkpoint(directory / "ckpt", wanted, {.copies = 2, .job_id = "test"});

  const auto reader = open_strict(directory / "ckpt");

  EXPECT_EQ(reader->extents().copies(), 2U);
  EXPECT_EQ(test::what_differs(*reader), "");
  EXPECT_THAT(test::damage_of(*reader), IsEmpty());
  const Pieces pieces(wanted.layout, wanted.tensors);
  for (std::size_t tensor = 0; tensor < wanted.tensors.size(); ++tensor) {
    std::map<Box, std::vector<Rank>> stored;
    for (const std::uint32_t number : reader->extents().of(tensor)) {
      const Extent& extent = reader->extents().extents()[number];
      stored[extent.box].push_back(extent.rank);
    }
    for (const HeldBox& held : pieces.of(tensor)) {
      std::vector<Rank>& ranks = stored[held.box];
      std::ranges::sort(ranks);
      EXPECT_EQ(ranks.size(), std::min<std::size_t>(2, held.holders.size()));
      EXPECT_TRUE(std::ranges::includes(held.holders, ranks)) << "a rank stores what it lacks";
      EXPECT_EQ(std::ranges::adjacent_find(ranks), ranks.end()) << "one rank has both copies";
    }
  }
}

TEST(NativeStore, MoreCopiesThanHoldersMeansAll) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "ckpt", test::tiny_catalog(), {.copies = 9, .job_id = "test"});
  EXPECT_EQ(open_strict(directory / "ckpt")->extents().copies(), 4U);
}

// f32 4 x 2 over tp 2: 16 bytes each, held by ranks 0 and 2, and by 1 and 3. bf16 3: 6 bytes, held
// by all four.
TEST(NativeStore, TheHolderWithTheFewestBytesStoresAReplica) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "ckpt", test::tiny_catalog());
  EXPECT_THAT(names(directory / "ckpt"),
              ElementsAre("COMMIT", "manifest.json", "shard-00000-of-00004.h5",
                          "shard-00001-of-00004.h5", "shard-00002-of-00004.h5", "side"));
}

TEST(NativeStore, TwoRunsGiveTheSameBytes) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "a", test::every_kind_of_tensor());
  write_checkpoint(directory / "b", test::every_kind_of_tensor(), {.job_id = "another"});
  EXPECT_EQ(all_files(directory / "a"), all_files(directory / "b"));
}

TEST(NativeStore, TheOrderOfWritingDoesNotMatter) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "forward", test::every_kind_of_tensor());
  {
    const auto writer = test::start(directory / "backward", test::every_kind_of_tensor());
    const auto extents = writer->extents().extents();
    for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
      const TensorDesc& desc = writer->catalog().tensors[extent->tensor];
      writer->write(extent->tensor, extent->box, test::numbered(desc, extent->box), {});
    }
    test::seal(*writer);
    writer->publish();
  }
  EXPECT_EQ(all_files(directory / "forward"), all_files(directory / "backward"));
}

TEST(NativeStore, TheMediumSaysWhereEachPieceLiesBeforeAndAfterSealing) {
  TemporaryDirectory directory;
  const auto writer = test::start(directory / "ckpt", test::every_kind_of_tensor());
  EXPECT_TRUE(writer->extents().same_places(writer->extents_on_medium()));
  test::write_all(*writer);
  EXPECT_TRUE(writer->extents().same_places(writer->extents_on_medium()));
  test::seal(*writer);
  EXPECT_TRUE(writer->extents().same_places(writer->extents_on_medium()));
}

TEST(NativeStore, TheTapHearsEveryStoredByteAtItsPlace) {
  TemporaryDirectory directory;
  const Catalog wanted = test::every_kind_of_tensor();
  const auto writer = test::start(directory / "ckpt", wanted, {.copies = 2, .job_id = "test"});
  const ExtentMap medium = writer->extents_on_medium();
  Tally tally(wanted.tensors, medium, /*with_blocks=*/false);
  test::write_all(*writer,
                  [&](std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes) {
                    tally.add(file, offset, bytes);
                  });
  for (std::size_t tensor = 0; tensor < wanted.tensors.size(); ++tensor) {
    EXPECT_EQ(tally.sum(tensor).digest, digest_of(test::numbered(wanted.tensors[tensor])));
    EXPECT_TRUE(tally.sum(tensor, /*copy=*/0).complete) << wanted.tensors[tensor].name;
  }
  EXPECT_EQ(tally.stray_bytes(), 0);
}

TEST(NativeStore, ReopenSeesWhatPublishWillName) {
  TemporaryDirectory directory;
  const auto writer = test::start(directory / "ckpt", test::every_kind_of_tensor());
  test::write_all(*writer);
  test::seal(*writer);
  EXPECT_EQ(test::what_differs(*writer->reopen()), "");
  EXPECT_FALSE(fs::exists(directory / "ckpt"));
  EXPECT_TRUE(writer->publish());
  EXPECT_EQ(test::what_differs(*open_strict(directory / "ckpt")), "");
  EXPECT_THAT(names(directory.path()), ElementsAre("ckpt"));
}

TEST(NativeStore, AnUnpublishedWriterLeavesNothing) {
  TemporaryDirectory directory;
  {
    const auto writer = test::start(directory / "ckpt", test::tiny_catalog());
    test::write_all(*writer);
    test::seal(*writer);
  }
  EXPECT_THAT(names(directory.path()), IsEmpty());
}

TEST(NativeStore, BlocksOfAPieceLargerThanOneAreCountedInFileOrder) {
  TemporaryDirectory directory;
  Catalog wanted = test::small_catalog({{{"large", DType::f32, Box{{0, 6}, {0, 100'000}}}, 1},
                                        {{"small", DType::u8, Box{{0, 3}}}, 0}});
  write_checkpoint(directory / "ckpt", wanted);
  const auto reader = open_strict(directory / "ckpt");
  const Extent& extent = reader->extents().extents()[reader->extents().of(0)[1]];
  EXPECT_EQ(reader->extents().blocks(extent).size(), 2U);
  EXPECT_EQ(extent.offset_bytes % 4096, 0) << "large payload is aligned";
  EXPECT_THAT(test::damage_of(*reader), IsEmpty());
  EXPECT_EQ(test::what_differs(*reader), "");
}

TEST(NativeStore, ACheckpointWithoutTensorsIsOne) {
  TemporaryDirectory directory;
  Catalog wanted;
  write_checkpoint(directory / "ckpt", wanted);
  EXPECT_THAT(open_strict(directory / "ckpt")->catalog().tensors, IsEmpty());
  EXPECT_THAT(names(directory / "ckpt"), ElementsAre("COMMIT", "manifest.json"));
}

TEST(NativeStore, KeepsThePackagingOfItsSource) {
  TemporaryDirectory directory;
  Catalog wanted = test::tiny_catalog();
  wanted.packaging = {.files = {{"a.safetensors", {{"format", "pt"}, {"a", "b"}}, "{\"w\": 1}"},
                                {"b.safetensors", {}, ""}},
                      .file_of = {1, 0},
                      .index_text = "{\n}\n"};
  write_checkpoint(directory / "ckpt", wanted);
  EXPECT_EQ(open_strict(directory / "ckpt")->catalog().packaging, wanted.packaging);
}

TEST(NativeStore, LooksNativeByContentAlone) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "any name", test::tiny_catalog());
  fs::create_directory(directory / "ckpt");
  fs::create_directory_symlink("any name", directory / "latest");
  const FileSystem& files = posix_file_system();
  EXPECT_TRUE(looks_native(files, directory / "any name"));
  EXPECT_TRUE(looks_native(files, directory / "any name/"));
  EXPECT_TRUE(looks_native(files, directory / "latest"));
  EXPECT_FALSE(looks_native(files, directory / "ckpt"));
  EXPECT_FALSE(looks_native(files, directory / "absent"));
  EXPECT_FALSE(looks_native(files, directory / "any name" / "COMMIT"));
  test::set_content(directory / "ckpt" / "shard-00000-of-00001.h5", "");
  EXPECT_TRUE(looks_native(files, directory / "ckpt"));
}

TEST(NativeStore, OpensThroughALink) {
  TemporaryDirectory directory;
  write_checkpoint(directory / "ckpt", test::tiny_catalog());
  fs::create_directory_symlink("ckpt", directory / "latest");
  EXPECT_EQ(test::what_differs(*open_strict(directory / "latest/")), "");
}

TEST(NativeStore, RefusesATensorThatItCannotStore) {
  TemporaryDirectory directory;
  const auto refused = [&](TensorDesc desc, std::uint32_t placement, const char* why) {
    try {
      test::start(directory / "ckpt", test::small_catalog({{std::move(desc), placement}}));
      ADD_FAILURE() << "not refused: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported);
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
    EXPECT_THAT(names(directory.path()), IsEmpty());
  };
  refused({"", DType::f32, Box{}}, 0, "it has no name");
  refused({std::string(4097, 'n'), DType::f32, Box{}}, 0, "its name has 4097 bytes");
  refused({"w", DType::f4, Box{{0, 3}}}, 0, "its 12 bits are no whole bytes");
  refused({"w", DType::f6_e2m3, Box{{0, 4}}}, 1, "a border of the box is no whole byte");
  refused({"w", DType::f32, Box{{0, Index{1} << 62}, {0, 2}}}, 0, "does not fit 63 bits");
}

TEST(NativeStore, RefusesASideFileThatChangedOnTheWay) {
  TemporaryDirectory directory;
  Catalog wanted = test::tiny_catalog();
  wanted.side[0].digest.value ^= 1;
  const auto writer = test::start(directory / "ckpt", wanted);
  test::write_all(*writer);
  try {
    test::seal(*writer);
    FAIL() << "sealed";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM207");
    EXPECT_THAT(error.what(), HasSubstr("config.json"));
  }
}

TEST(NativeStore, RefusesAPayloadThatDoesNotFitTheDisk) {
  TemporaryDirectory directory;
  const Catalog wanted = test::small_catalog({{{"w", DType::u8, Box{{0, Index{1} << 59}}}, 0}});
  try {
    test::start(directory / "ckpt", wanted);
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM702");
    EXPECT_THAT(error.what(), HasSubstr("but the file system has"));
  }
  EXPECT_THAT(names(directory.path()), IsEmpty());
}

TEST(NativeStore, PublishBeforeSealIsABug) {
  TemporaryDirectory directory;
  const auto writer = test::start(directory / "ckpt", test::tiny_catalog());
  EXPECT_THROW(writer->publish(), Error);
  EXPECT_FALSE(fs::exists(directory / "ckpt"));
}

}  // namespace
}  // namespace remesh
