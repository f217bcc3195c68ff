// Checkpoints of format version 1 that every later remesh must read, for ever. To make them, which
// is for a new kind alone: REMESH_MAKE_GOLDEN=DIRECTORY format.store.golden_test

#include "golden.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <zstd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "native_fixture.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/store/certificate.hpp"
#include "temporary_directory.hpp"

namespace remesh::test {
namespace {

namespace fs = std::filesystem;

fs::path golden_path(const std::string& name) {
  return fs::path(REMESH_SOURCE_DIR) / "fixtures" / "golden" / "v1" / name;
}

// A certificate that says the checkpoint was made of one with the same tensors.
std::string certificate_of(const Writer& writer) {
  const Catalog& catalog = writer.catalog();
  std::vector<std::size_t> same(catalog.tensors.size());
  for (std::size_t at = 0; at < same.size(); ++at) same[at] = at;
  const std::vector<Digest> digests = true_digests(catalog);
  const std::vector<std::int64_t> rounded(same.size());
  return certificate_text({.source = catalog,
                           .target = catalog,
                           .source_of = same,
                           .source_digests = digests,
                           .target_digests = digests,
                           .rounded = rounded,
                           .cast_reason = "",
                           .dropped = {},
                           .dropped_side = {},
                           .manifest = writer.manifest_digest(),
                           .read_back = false});
}

Catalog with_side(Golden golden) {
  if (golden.copies == 1) return std::move(golden.catalog);
  golden.catalog.side = {side_file("config.json"), side_file("tokenizer.model")};
  return std::move(golden.catalog);
}

void write(const Golden& golden, const fs::path& path) {
  const auto writer =
      start(path, with_side(golden),
            {.copies = golden.copies, .compress_level = golden.compress_level, .job_id = "golden"});
  write_all_and_seal(*writer);
  if (golden.copies > 1) writer->certify(certificate_of(*writer));
  writer->publish();
}

std::map<std::string, std::string> files_in(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), directory)] = content_of(entry.path());
  }
  return files;
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, IsReadToTheLastElement) {
  StrictFindings findings;
  const auto reader = open_native(posix_file_system(), golden_path(GetParam().name), findings);
  EXPECT_THAT(findings.rest(), ::testing::IsEmpty());
  const Catalog wanted = with_side(GetParam());
  EXPECT_EQ(reader->catalog().tensors, wanted.tensors);
  EXPECT_EQ(reader->catalog().layout, wanted.layout);
  EXPECT_EQ(reader->catalog().side, wanted.side);
  EXPECT_EQ(reader->catalog().packaging, wanted.packaging);
  EXPECT_EQ(reader->catalog().run_id, wanted.run_id);
  EXPECT_EQ(reader->catalog().digests, true_digests(wanted));
  EXPECT_EQ(std::int64_t{reader->extents().copies()}, GetParam().copies);
  for (std::size_t tensor = 0; tensor < wanted.tensors.size(); ++tensor) {
    const TensorDesc& desc = wanted.tensors[tensor];
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc)));
    reader->read(tensor, desc.extent, bytes, {});
    EXPECT_EQ(what_differs(desc, desc.extent, bytes), "");
  }
}

// Another libzstd may make other frames of the same chunk; every later one reads them all.
constexpr unsigned zstd_of_frames = 10504;

bool is_comparable(const Golden& golden) {
  return golden.as_today && (!golden.compress_level || ZSTD_versionNumber() == zstd_of_frames);
}

// What is written today is still what was written then.
TEST_P(GoldenTest, IsWrittenTheSameByteForByte) {
  const TemporaryDirectory directory;
  write(GetParam(), directory / "again");
  const auto golden = files_in(golden_path(GetParam().name));
  const auto again = files_in(directory / "again");
  ASSERT_EQ(again.size(), golden.size());
  for (const auto& [name, content] : golden) {
    ASSERT_TRUE(again.contains(name)) << name;
    EXPECT_TRUE(again.at(name) == content || !is_comparable(GetParam())) << name << " differs";
  }
}

INSTANTIATE_TEST_SUITE_P(V1, GoldenTest, ::testing::ValuesIn(goldens()),
                         [](const auto& row) { return row.param.name; });

TEST(Goldens, HaveEveryKindOfFrame) {
  const auto reader = open_strict(golden_path("compressed"));
  const ExtentMap& map = reader->extents();
  std::map<std::string, int> seen;
  for (const Extent& extent : map.extents()) {
    const TensorDesc& desc = reader->catalog().tensors[extent.tensor];
    if (!is_chunked(extent)) ++seen["as it is"];
    for (const Frame& frame : map.frames(extent)) {
      ++seen[frame.raw ? "raw frame" : "zstd of " + std::to_string(bits(desc.dtype)) + " bits"];
      EXPECT_LE(frame.length_bytes, extent.length_bytes);
    }
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"as it is", 4},
                                              {"raw frame", 1},
                                              {"zstd of 16 bits", 1},
                                              {"zstd of 32 bits", 2},
                                              {"zstd of 8 bits", 2}}));
}

TEST(Goldens, HaveEveryKindOfPlacement) {
  std::map<std::string, int> seen;
  for (const Golden& golden : goldens()) {
    for (const Placement& placement : golden.catalog.layout.placements()) {
      for (const Split& split : placement.splits) {
        ++seen["rule " + std::to_string(static_cast<int>(split.rule))];
        ++seen["beyond " + std::to_string(static_cast<int>(split.beyond))];
        if (split.over.size() > 1) ++seen["joint"];
        if (split.block > 1) ++seen["block"];
        if (!split.parts.empty()) ++seen["parts"];
        if (split.groups > 0) ++seen["groups"];
      }
      for (const Pin& pin : placement.pins)
        ++seen["pin " + std::to_string(static_cast<int>(pin.to))];
      if (placement.flat) {
        ++seen["flat " + std::to_string(static_cast<int>(placement.flat->unit))];
        if (placement.flat->reversed) ++seen["reversed"];
        if (placement.flat->bucket > 0) ++seen["bucket"];
      }
      for (const Scaled& scaled : placement.scaled) ++seen[scaled.of > 0 ? "scales" : "scaled"];
    }
  }
  EXPECT_EQ(seen.size(), 3U + 3U + 4U + 6U + 3U + 2U + 2U) << ::testing::PrintToString(seen);
}

void make_goldens(const fs::path& directory) {
  for (const Golden& golden : goldens()) write(golden, directory / golden.name);
}

const bool made = [] {
  const char* const directory = std::getenv("REMESH_MAKE_GOLDEN");  // NOLINT(concurrency-mt-unsafe)
  if (directory != nullptr) make_goldens(directory);
  return directory != nullptr;
}();

}  // namespace
}  // namespace remesh::test
