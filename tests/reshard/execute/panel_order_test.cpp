#include "panel_order.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh::detail {
namespace {

constexpr Index rows = 64;

// One tensor of 64 rows and 8 columns for each entry, cut into four files along that dim, or whole
// in one file; panels of two rows.
struct Job {
  std::vector<Extent> extents;
  std::vector<Panel> panels;

  void add(std::vector<std::uint32_t> files, int dim) {
    const auto tensor = static_cast<std::uint32_t>(tensors++);
    const Index parts = std::ssize(files);
    for (Index part = 0; part < parts; ++part) {
      Box box{{0, rows}, {0, 8}};
      const Index size = box[dim].size() / parts;
      box[dim] = {part * size, (part + 1) * size};
      extents.push_back({.tensor = tensor,
                         .file = files[static_cast<std::size_t>(part)],
                         .offset_bytes = 512 * tensor,
                         .length_bytes = box.num_elements(),
                         .box = box});
    }
    for (Index row = 0; row < rows; row += 2) {
      panels.push_back({tensor, tensor, Box{{row, row + 2}, {0, 8}}});
    }
  }

  std::vector<Panel> ordered(int workers) const {
    const ExtentMap map({{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}}, extents);
    std::vector<Panel> mine = panels;
    std::vector<Panel> all;
    for (const std::uint32_t number : in_lanes(mine, map, workers)) all.push_back(mine.at(number));
    return all;
  }

  int tensors = 0;
};

auto key(const Panel& panel) { return std::tuple(panel.target_tensor, panel.box[0].begin); }

std::vector<std::tuple<std::size_t, Index>> keys(const std::vector<Panel>& panels) {
  std::vector<std::tuple<std::size_t, Index>> all;
  for (const Panel& panel : panels) all.push_back(key(panel));
  return all;
}

Job mixed() {
  Job job;
  job.add({0, 1, 2, 3}, 0);
  job.add({0, 1, 2, 3}, 1);
  job.add({2}, 0);
  job.add({3}, 0);
  return job;
}

TEST(PanelOrder, LosesNothing) {
  for (const int workers : {1, 2, 3, 4, 9}) {
    auto expected = keys(mixed().panels);
    auto found = keys(mixed().ordered(workers));
    std::ranges::sort(expected);
    std::ranges::sort(found);
    EXPECT_EQ(found, expected);
  }
}

TEST(PanelOrder, OneWorkerKeepsIt) { EXPECT_EQ(keys(mixed().ordered(1)), keys(mixed().panels)); }

// Whatever is cut, the workers of a turn begin with different files, as long as there are enough.
TEST(PanelOrder, ThoseInTurnWriteToDifferentFiles) {
  for (const int workers : {2, 3, 4}) {
    const std::vector<Panel> panels = mixed().ordered(workers);
    // The shortest two files have 16 panels each, and the longest two 48.
    for (std::size_t at = 0; at + static_cast<std::size_t>(workers) <= 32;
         at += static_cast<std::size_t>(workers)) {
      std::set<std::uint32_t> files;
      for (int k = 0; k < workers; ++k) files.insert(panels[at + static_cast<std::size_t>(k)].file);
      EXPECT_EQ(std::ssize(files), workers) << "at " << at;
    }
  }
}

TEST(PanelOrder, AFileKeepsTheOrderAndItsLane) {
  const std::vector<Panel> panels = mixed().ordered(2);
  for (std::uint32_t file = 0; file < 4; ++file) {
    std::vector<Panel> own;
    std::ranges::copy_if(panels, std::back_inserter(own),
                         [&](const Panel& panel) { return panel.file == file; });
    EXPECT_TRUE(std::ranges::is_sorted(keys(own)));
    EXPECT_TRUE(std::ranges::all_of(own, [&](const Panel& p) { return p.lane == own[0].lane; }));
  }
}

// Every panel of a tensor cut along its columns goes to all four files: a quarter begins with each.
TEST(PanelOrder, DealsOutWhatGoesToSeveralFiles) {
  Job job;
  job.add({0, 1, 2, 3}, 1);
  std::vector<int> begins(4);
  for (const Panel& panel : job.ordered(2)) ++begins[panel.file];
  EXPECT_THAT(begins, ::testing::Each(8));
}

TEST(PanelOrder, TensorsWithoutElementsHaveNoPlace) {
  const ExtentMap map({{"a", 0}, {"b", 0}}, {});
  std::vector<Panel> none;
  EXPECT_TRUE(in_lanes(none, map, 2).empty());
}

}  // namespace
}  // namespace remesh::detail
