#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "../../contract/reader_contract.hpp"
#include "../../contract/writer_contract.hpp"
#include "arbitrary.hpp"
#include "remesh/adapters/open.hpp"
#include "temporary_directory.hpp"
#include "write_numbered.hpp"

/// @file
/// Every format that this build knows, by the doors through which everybody comes.

namespace remesh::test {
namespace {

struct Format {
  std::string name;
  WriterOptions options;

  Catalog draw(Arbitrary& arbitrary) const {
    Catalog drawn = arbitrary.catalog();
    drawn.format = name;
    if (name == "hf") drawn.layout = Layout::replicated(Mesh{}, drawn.tensors.size());
    return drawn;
  }
  std::unique_ptr<Writer> create(const TemporaryDirectory& home, Catalog wanted) const {
    return create_writer(posix_file_system(), home / "checkpoint", std::move(wanted), {}, options);
  }
  std::unique_ptr<Reader> open(const TemporaryDirectory& home) const {
    StrictFindings findings;
    return open_reader(posix_file_system(), home / "checkpoint", "", findings);
  }
};

StoreCase store_in(Format format) {
  const auto home = std::make_shared<TemporaryDirectory>();
  return {[format](Arbitrary& arbitrary) { return format.draw(arbitrary); },
          [format, home](const Catalog& wanted) { return format.create(*home, wanted); },
          [format, home] { return format.open(*home); }};
}

NumberedCheckpoint numbered_in(const Format& format, Arbitrary& arbitrary) {
  const auto home = std::make_shared<TemporaryDirectory>();
  const auto writer = format.create(*home, format.draw(arbitrary));
  write_and_seal_numbered(*writer, arbitrary);
  writer->publish();
  return {home, format.open(*home)};
}

Format native() { return {"remesh", {.copies = 2, .job_id = "1"}}; }
Format hf() { return {"hf", {.shard_size_bytes = 200, .job_id = "1"}}; }

StoreCase native_store() { return store_in(native()); }
StoreCase hf_store() { return store_in(hf()); }
NumberedCheckpoint native_numbered(Arbitrary& arbitrary) {
  return numbered_in(native(), arbitrary);
}
NumberedCheckpoint hf_numbered(Arbitrary& arbitrary) { return numbered_in(hf(), arbitrary); }

TEST(Contract, HoldsForEveryFormat) {
  EXPECT_EQ(format_names(), (std::vector<std::string_view>{"remesh", "hf"}))
      << "a format that is new needs its two lines below";
}

INSTANTIATE_TEST_SUITE_P(Native, ReaderContract, ::testing::Values(&native_numbered));
INSTANTIATE_TEST_SUITE_P(Native, WriterContract, ::testing::Values(&native_store));
INSTANTIATE_TEST_SUITE_P(HuggingFace, ReaderContract, ::testing::Values(&hf_numbered));
INSTANTIATE_TEST_SUITE_P(HuggingFace, WriterContract, ::testing::Values(&hf_store));

}  // namespace
}  // namespace remesh::test
