#include "coverage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A reader that has a catalog and extents, and no bytes.
class Described final : public Reader {
 public:
  Described(TensorDesc desc, const std::vector<Box>& pieces) {
    catalog_.tensors.push_back(std::move(desc));
    std::vector<Extent> extents;
    std::int64_t offset = 0;
    for (const Box& box : pieces) {
      const std::int64_t bytes = num_bytes(catalog_.tensors[0].dtype, box);
      extents.push_back({.offset_bytes = offset, .length_bytes = bytes, .box = box});
      offset += bytes;
    }
    extents_ = ExtentMap({{"file", offset}}, std::move(extents));
  }

  Described(TensorDesc desc, ExtentMap extents) : extents_(std::move(extents)) {
    catalog_.tensors.push_back(std::move(desc));
  }

  const Catalog& catalog() const noexcept override { return catalog_; }
  const ExtentMap& extents() const noexcept override { return extents_; }
  void read(std::size_t, const Box&, std::span<std::byte>, const Tap&) const override {}
  void read_bytes(std::uint32_t, std::int64_t, std::span<std::byte>) const override {}
  void unpack(const Extent&, std::int64_t, std::span<const std::byte>,
              std::span<std::byte>) const override {}
  std::vector<std::byte> side(const SideFile&) const override { return {}; }

 private:
  Catalog catalog_;
  ExtentMap extents_;
};

std::vector<std::pair<std::string, Box>> found(const TensorDesc& desc,
                                               const std::vector<Box>& pieces) {
  CollectedFindings findings;
  detail::check_coverage(Described(desc, pieces), {}, findings);
  std::vector<std::pair<std::string, Box>> places;
  for (const Finding& finding : findings.all) places.emplace_back(finding.id, *finding.box);
  return places;
}

const TensorDesc matrix{"m", DType::f32, Box{{0, 4}, {0, 4}}};

TEST(Coverage, WholeTensorsHaveNoFindings) {
  EXPECT_THAT(found(matrix, {matrix.extent}), IsEmpty());
  EXPECT_THAT(found(matrix, {Box{{0, 2}, {0, 4}}, Box{{2, 4}, {0, 4}}}), IsEmpty());
  EXPECT_THAT(found({"s", DType::f32, Box{}}, {Box{}}), IsEmpty());
  EXPECT_THAT(found({"e", DType::f32, Box{{0, 0}}}, {}), IsEmpty());
}

TEST(Coverage, NamesTheMissingBox) {
  EXPECT_THAT(found(matrix, {Box{{0, 4}, {0, 3}}}),
              ElementsAre(Pair("RM301", Box{{0, 4}, {3, 4}})));
  EXPECT_THAT(found(matrix, {}), ElementsAre(Pair("RM301", matrix.extent)));
}

TEST(Coverage, NamesThePieceThatComesTwice) {
  EXPECT_THAT(found(matrix, {Box{{0, 3}, {0, 4}}, Box{{2, 4}, {0, 4}}}),
              ElementsAre(Pair("RM304", Box{{2, 4}, {0, 4}})));
}

TEST(Copies, ThatRecordOtherNumbersAreNamed) {
  const Box top{{0, 2}, {0, 4}};
  const Box rest{{2, 4}, {0, 4}};
  std::vector<Extent> extents;
  for (const std::uint32_t copy : {0U, 1U}) {
    for (const Box& box : {top, rest}) {
      extents.push_back({.file = copy,
                         .rank = copy,
                         .copy = copy,
                         .offset_bytes = std::ssize(extents) * 32,
                         .length_bytes = 32,
                         .box = box,
                         .first_block = std::ssize(extents)});
    }
  }
  const auto ids = [&](std::vector<Digest> crcs) {
    CollectedFindings findings;
    detail::check_copies(Described(matrix, ExtentMap({{"a", 64}, {"b", 128}}, extents, crcs)),
                         findings);
    std::vector<std::pair<std::string, Box>> places;
    for (const Finding& finding : findings.all) places.emplace_back(finding.id, *finding.box);
    return places;
  };
  EXPECT_THAT(ids({{1}, {2}, {1}, {2}}), IsEmpty());
  EXPECT_THAT(ids({{1}, {2}, {1}, {3}}), ElementsAre(Pair("RM401", rest)));
}

TEST(TouchedBox, IsTheSmallestThatHoldsTheBytes) {
  const Box piece{{2, 6}, {4, 8}};  // four rows of four f32: 16 bytes a row
  EXPECT_EQ(detail::touched_box(matrix, piece, 0, 1), (Box{{2, 3}, {4, 5}}));
  EXPECT_EQ(detail::touched_box(matrix, piece, 4, 12), (Box{{2, 3}, {5, 7}}));
  EXPECT_EQ(detail::touched_box(matrix, piece, 12, 20), (Box{{2, 4}, {4, 8}}));
  EXPECT_EQ(detail::touched_box(matrix, piece, 0, 64), piece);
}

TEST(TouchedBox, CountsElementsNarrowerThanAByte) {
  const TensorDesc nibbles{"n", DType::f4, Box{{0, 4}, {0, 4}}};
  EXPECT_EQ(detail::touched_box(nibbles, nibbles.extent, 3, 4), (Box{{1, 2}, {2, 4}}));
}

}  // namespace
}  // namespace remesh
