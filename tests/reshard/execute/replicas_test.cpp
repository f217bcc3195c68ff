#include "remesh/execute/replicas.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "remesh/execute/transfer.hpp"
#include "remesh/store/memory_store.hpp"
#include "remesh/store/native_store.hpp"
#include "seeds.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Machine {
  ComparedReplicas compare(const Reader& source, ReplicaChoice choice) {
    return compare_replicas({pool, budget, progress, log, stop}, source, choice);
  }

  ThreadPool pool{2};
  MemoryBudget budget{MemoryBudget::least_bytes};
  Progress progress;
  Log log;
  StopFlag stop;
};

// What is thrown, as "RM401 message"; "" where nothing is.
std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return std::string(error.id()) + " " + error.what();
  }
  return "";
}

// A vector of eight bytes that three ranks hold.
Catalog three_ranks() {
  Catalog catalog;
  catalog.tensors = {{"model.norm.weight", DType::u8, Box{{0, 8}}}};
  catalog.layout = Layout::replicated(Mesh({{"dp", 3}}), 1);
  return catalog;
}

std::vector<int> read_all(const Reader& reader) {
  std::vector<std::byte> bytes(8);
  reader.read(0, reader.catalog().tensors[0].extent, bytes, {});
  std::vector<int> values;
  std::ranges::transform(bytes, std::back_inserter(values),
                         [](std::byte byte) { return static_cast<int>(byte); });
  return values;
}

class ThreeCopies : public ::testing::Test {
 protected:
  // Each rank's element 5; all others are 0.
  void give(std::vector<int> values) {
    for (Rank rank = 0; rank < 3; ++rank) {
      store_.bytes(rank)[5] = static_cast<std::byte>(values[static_cast<std::size_t>(rank)]);
    }
    reader_ = store_.reader();
  }

  int taken(ReplicaChoice choice) {
    const ComparedReplicas compared = machine_.compare(*reader_, choice);
    return read_all(compared.reader ? *compared.reader : *reader_)[5];
  }

  std::string refused(ReplicaChoice choice) {
    return refusal([&] { machine_.compare(*reader_, choice); });
  }

  Machine machine_;
  MemoryStore store_{three_ranks()};
  std::unique_ptr<Reader> reader_;
};

TEST_F(ThreeCopies, ThatAreTheSameAreLeftAsTheyAre) {
  give({7, 7, 7});
  const ComparedReplicas compared = machine_.compare(*reader_, ReplicaChoice::error);
  EXPECT_EQ(compared.unlike, 0);
  EXPECT_EQ(compared.reader, nullptr);
  EXPECT_THAT(compared.findings, IsEmpty());
}

TEST_F(ThreeCopies, OfWhichOneDiffersAreRefused) {
  give({7, 7, 9});
  EXPECT_THAT(refused(ReplicaChoice::error),
              AllOf(HasSubstr("RM401 cannot choose a copy of"), HasSubstr("model.norm.weight"),
                    HasSubstr("copy 0 (rank 0,"), HasSubstr("copy 2 (rank 2,"),
                    HasSubstr("differ first at element [5, 6)"), HasSubstr("2 different ones")));
}

TEST_F(ThreeCopies, TheFirstIsTakenWhereThatIsAsked) {
  give({9, 7, 7});
  EXPECT_EQ(taken(ReplicaChoice::first), 9);
}

TEST_F(ThreeCopies, TheMajorityIsTakenWhereverItLies) {
  give({9, 7, 7});
  EXPECT_EQ(taken(ReplicaChoice::majority), 7);
  give({7, 9, 7});
  EXPECT_EQ(taken(ReplicaChoice::majority), 7);
  give({7, 7, 9});
  EXPECT_EQ(taken(ReplicaChoice::majority), 7);
}

TEST_F(ThreeCopies, WithoutAMajorityAreRefused) {
  give({7, 8, 9});
  EXPECT_THAT(refused(ReplicaChoice::majority),
              AllOf(HasSubstr("RM401"), HasSubstr("3 different ones"),
                    HasSubstr("none has a majority among 3")));
  EXPECT_EQ(taken(ReplicaChoice::first), 7);
}

TEST_F(ThreeCopies, WhatWasTakenIsTold) {
  give({9, 7, 7});
  const ComparedReplicas compared = machine_.compare(*reader_, ReplicaChoice::majority);
  EXPECT_EQ(compared.unlike, 1);
  ASSERT_THAT(compared.findings, SizeIs(1));
  const Finding& finding = compared.findings.front();
  EXPECT_EQ(finding.id, "RM403");
  EXPECT_EQ(finding.severity, Severity::warn);
  EXPECT_EQ(finding.tensor, "model.norm.weight");
  EXPECT_THAT(finding.message, AllOf(HasSubstr("copy 1 (rank 1,"), HasSubstr("was taken"),
                                     HasSubstr("other numbers are in copy 0 (rank 0,")));
}

// Which bytes each piece should be read as, by counting.
std::map<std::pair<std::uint32_t, Box>, std::map<std::string, std::vector<std::uint32_t>>> votes(
    MemoryStore& store) {
  std::map<std::pair<std::uint32_t, Box>, std::map<std::string, std::vector<std::uint32_t>>> all;
  for (const Extent& extent : store.extents().extents()) {
    const auto bytes = store.bytes(extent.rank);
    const auto* const begin = reinterpret_cast<const char*>(bytes.data()) + extent.offset_bytes;
    all[{extent.tensor, extent.box}]
       [std::string(begin, static_cast<std::size_t>(extent.length_bytes))]
           .push_back(extent.copy);
  }
  return all;
}

// The one that most have, if that is more than half; "" otherwise.
const std::string* majority_of(const std::map<std::string, std::vector<std::uint32_t>>& said) {
  std::size_t all = 0;
  for (const auto& [bytes, copies] : said) all += copies.size();
  for (const auto& [bytes, copies] : said) {
    if (copies.size() * 2 > all) return &bytes;
  }
  return nullptr;
}

TEST(Replicas, OfAnyLayoutTheMajorityIsRead) {
  int read = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < test::num_seeds(300); ++seed) {
    SCOPED_TRACE(seed);
    test::Arbitrary arbitrary(seed);
    Catalog catalog;
    catalog.tensors = arbitrary.tensors();
    catalog.layout = arbitrary.layout(catalog.tensors);
    MemoryStore store(catalog);
    for (const Extent& extent : store.extents().extents()) {
      if (extent.length_bytes == 0 || !arbitrary.chance(15)) continue;
      const Index at = arbitrary.between(0, extent.length_bytes - 1);
      store.bytes(extent.rank)[static_cast<std::size_t>(extent.offset_bytes + at)] ^=
          static_cast<std::byte>(arbitrary.between(1, 2));
    }
    const auto said = votes(store);
    const bool decided =
        std::ranges::all_of(said, [](const auto& piece) { return majority_of(piece.second); });

    Machine machine;
    const auto reader = store.reader();
    if (!decided) {
      EXPECT_THAT(refusal([&] { machine.compare(*reader, ReplicaChoice::majority); }),
                  HasSubstr("RM401"));
      ++refused;
      continue;
    }
    const ComparedReplicas compared = machine.compare(*reader, ReplicaChoice::majority);
    const Reader& chosen = compared.reader ? *compared.reader : *reader;
    std::int64_t unlike = 0;
    for (const auto& [place, bytes] : said) {
      const auto& [tensor, box] = place;
      std::string found(static_cast<std::size_t>(num_bytes(catalog.tensors[tensor].dtype, box)),
                        '\0');
      chosen.read(tensor, box, std::as_writable_bytes(std::span(found)), {});
      EXPECT_EQ(found, *majority_of(bytes));
      unlike += bytes.size() > 1 ? 1 : 0;
    }
    EXPECT_EQ(compared.unlike, unlike);
    ++read;
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 20);
}

// Two copies of a tensor of few values, so that it is packed where that is asked. One stored byte
// of copy 0 is another one.
class DamagedCopy : public ::testing::TestWithParam<std::optional<int>> {
 protected:
  DamagedCopy() {
    Catalog catalog;
    catalog.format = "remesh";
    catalog.tensors = {{"halves.few", DType::bf16, Box{{0, 64}, {0, 400}}}};
    catalog.layout = Layout::replicated(Mesh({{"dp", 2}}), 1);
    write(catalog);
    StrictFindings findings;
    const auto whole = open_native(posix_file_system(), path_, findings);
    EXPECT_EQ(whole->extents().all_frames().empty(), !GetParam().has_value());
    for (const Extent& extent : whole->extents().extents()) {
      if (extent.copy != 0) continue;
      flip(whole->extents().files()[extent.file].name, whole->extents().place(extent).begin + 3);
    }
    reader_ = open_native(posix_file_system(), path_, findings);
  }

  void write(const Catalog& catalog) {
    MemoryStore store(catalog);
    for (const Extent& extent : store.extents().extents()) {
      std::ranges::copy(test::numbered(catalog.tensors[0], extent.box),
                        store.bytes(extent.rank).begin());
    }
    const auto writer =
        create_native(posix_file_system(), path_, catalog, {},
                      {.copies = 2, .compress_level = GetParam(), .job_id = "test"});
    Context context{machine_.pool, machine_.budget, machine_.progress, machine_.log, machine_.stop};
    transfer(context, *store.reader(), *writer, {});
  }

  void flip(const std::string& name, std::int64_t at) const {
    std::fstream file(path_ / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 16));
  }

  Machine machine_;
  test::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "ckpt";
  std::unique_ptr<Reader> reader_;
};

TEST_P(DamagedCopy, IsRefused) {
  EXPECT_THAT(refusal([&] { machine_.compare(*reader_, ReplicaChoice::error); }),
              AllOf(HasSubstr("RM207 cannot use"), HasSubstr("is not what was recorded"),
                    HasSubstr("another copy is sound")));
}

TEST_P(DamagedCopy, IsNotTakenForTheFirst) {
  for (const ReplicaChoice choice : {ReplicaChoice::first, ReplicaChoice::majority}) {
    const ComparedReplicas compared = machine_.compare(*reader_, choice);
    EXPECT_EQ(compared.unlike, 1);
    ASSERT_NE(compared.reader, nullptr);
    const TensorDesc& desc = reader_->catalog().tensors[0];
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc)));
    compared.reader->read(0, desc.extent, bytes, {});
    EXPECT_EQ(test::what_differs(desc, desc.extent, bytes), "");
    ASSERT_THAT(compared.findings, SizeIs(1));
    EXPECT_THAT(compared.findings.front().message,
                AllOf(HasSubstr("copy 1 (rank"), HasSubstr("was taken; not what was recorded is "
                                                           "copy 0 (rank")));
  }
}

INSTANTIATE_TEST_SUITE_P(PlainAndPacked, DamagedCopy, ::testing::Values(std::nullopt, 1));

}  // namespace
}  // namespace remesh
