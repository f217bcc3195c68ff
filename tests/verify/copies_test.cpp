#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "dense_store.hpp"
#include "job.hpp"
#include "remesh/store/memory_store.hpp"
#include "remesh/verify/verify.hpp"
#include "seeds.hpp"

// Copies of one piece that do not hold the same, in a format that records nothing of them.

namespace remesh {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Finding> judged(const MemoryStore& store) {
  test::Machine machine(2);
  const Opener open = [&](Findings&) { return store.reader(); };
  std::vector<Finding> findings = verify(machine.judge(), open, Level::full).findings;
  std::erase_if(findings, [](const Finding& finding) { return finding.id != "RM401"; });
  return findings;
}

// A vector of bf16 that so many ranks hold; element 5 of each is given, the others are 1.
std::unique_ptr<MemoryStore> held_by(const std::vector<std::uint64_t>& values) {
  Catalog catalog;
  catalog.tensors = {{"model.norm.weight", DType::bf16, Box{{0, 8}}}};
  catalog.layout = Layout::replicated(Mesh({{"dp", std::ssize(values)}}), 1);
  auto store = std::make_unique<MemoryStore>(std::move(catalog));
  for (Rank rank = 0; rank < std::ssize(values); ++rank) {
    for (Index i = 0; i < 8; ++i) {
      test::put_bits_in(store->bytes(rank).data(), 16, i,
                        i == 5 ? values[static_cast<std::size_t>(rank)] : 0x3f80);
    }
  }
  return store;
}

TEST(Copies, ThatAreTheSameAreNotTold) { EXPECT_THAT(judged(*held_by({7, 7, 7})), IsEmpty()); }

TEST(Copies, TwoThatDifferAreToldWithBothValues) {
  const auto findings = judged(*held_by({0x3f80, 0x3f81}));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].tensor, "model.norm.weight");
  EXPECT_EQ(findings[0].box, (Box{{5, 6}}));
  EXPECT_EQ(findings[0].bytes, (ByteRange{10, 12}));
  EXPECT_EQ(findings[0].found, "1.0078125 (0x3f81)");
  EXPECT_EQ(findings[0].expected, "") << "who is right is not known";
  EXPECT_THAT(
      findings[0].message,
      AllOf(
          HasSubstr("copy 1 of [0, 8) (rank 1, "), HasSubstr("that copy 0 of [0, 8) (rank 0, "),
          EndsWith("they differ first at [5], 1.0078125 (0x3f81) against 1 (0x3f80), 1 ulp apart; "
                   "2 copies, 2 different ones, none of which has a majority")));
  EXPECT_THAT(findings[0].next_step, HasSubstr("--replicas first"));
}

TEST(Copies, OneOfThreeIsToldAgainstTheMajority) {
  const auto findings = judged(*held_by({0x4000, 0x3f80, 0x3f80}));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].found, "2 (0x4000)");
  EXPECT_EQ(findings[0].expected, "1 (0x3f80)");
  EXPECT_THAT(findings[0].message,
              AllOf(HasSubstr("copy 0 of [0, 8) (rank 0, "), HasSubstr("128 ulps apart"),
                    EndsWith("3 copies, 2 different ones, of which 2 are as copy 1")));
  EXPECT_THAT(findings[0].next_step, HasSubstr("--replicas majority"));
}

TEST(Copies, ThreeThatAllDifferAreToldTwice) {
  const auto findings = judged(*held_by({0x3f80, 0x3f81, 0x7fc0}));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings[1].message, AllOf(HasSubstr("nan (0x7fc0) against 1 (0x3f80), one is no "
                                                   "finite number apart"),
                                         HasSubstr("3 different ones")));
}

// What each copy of a piece holds, as text, by counting.
struct Piece {
  std::map<std::uint32_t, std::string> copies;
};

std::map<std::pair<std::uint32_t, Box>, Piece> pieces_of(MemoryStore& store) {
  std::map<std::pair<std::uint32_t, Box>, Piece> all;
  for (const Extent& extent : store.extents().extents()) {
    const auto bytes = store.bytes(extent.rank);
    const auto* const begin = reinterpret_cast<const char*>(bytes.data()) + extent.offset_bytes;
    all[{extent.tensor, extent.box}].copies[extent.copy] =
        std::string(begin, static_cast<std::size_t>(extent.length_bytes));
  }
  return all;
}

// Where the most frequent content, of several that of the lowest copy, differs first from each
// other one.
std::vector<std::pair<std::string, Box>> expected_of(const Catalog& catalog, MemoryStore& store) {
  std::vector<std::pair<std::string, Box>> places;
  for (const auto& [key, piece] : pieces_of(store)) {
    const auto& [tensor, box] = key;
    std::map<std::string, std::size_t> votes;
    for (const auto& [copy, content] : piece.copies) ++votes[content];
    std::string first;
    for (const auto& [copy, content] : piece.copies) {
      if (first.empty() || votes[content] > votes[first]) first = content;
    }
    const TensorDesc& desc = catalog.tensors[tensor];
    const int width = bits(desc.dtype);
    for (const auto& [content, count] : votes) {
      if (content == first) continue;
      for (Index i = 0;; ++i) {
        const auto in = [&](const std::string& text) {
          return test::bits_in(reinterpret_cast<const std::byte*>(text.data()), width, i);
        };
        if (in(content) == in(first)) continue;
        places.emplace_back(desc.name, element_of(box, i));
        break;
      }
    }
  }
  std::ranges::sort(places);
  return places;
}

TEST(Copies, OfAnyLayoutAreToldWhereTheyFirstDiffer) {
  std::size_t told = 0;
  for (unsigned seed = 0; seed < test::num_seeds(150); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    Catalog catalog;
    catalog.tensors = arbitrary.tensors();
    catalog.layout = arbitrary.layout(catalog.tensors);
    MemoryStore store(catalog);
    for (const Extent& extent : store.extents().extents()) {
      if (extent.length_bytes == 0 || !arbitrary.chance(4)) continue;
      const Index at = arbitrary.between(0, extent.length_bytes - 1);
      store.bytes(extent.rank)[static_cast<std::size_t>(extent.offset_bytes + at)] ^=
          static_cast<std::byte>(arbitrary.between(1, 2));
    }
    const auto expected = expected_of(catalog, store);
    std::vector<std::pair<std::string, Box>> found;
    for (const Finding& finding : judged(store)) found.emplace_back(finding.tensor, *finding.box);
    std::ranges::sort(found);
    if (expected.size() <= 64) {
      EXPECT_EQ(found, expected);
    } else {
      EXPECT_EQ(found.size(), expected.size()) << "those beyond are told without their places";
    }
    told += found.size();
  }
  EXPECT_GT(told, 300U);
}

}  // namespace
}  // namespace remesh
