#include "panel_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace remesh::detail {
namespace {

// The files that get a part of the panel, in the order of the boxes.
std::vector<std::uint32_t> files_of(const Panel& panel, const ExtentMap& target) {
  std::vector<std::uint32_t> files;
  for (const std::uint32_t number : target.of(panel.target_tensor)) {
    const Extent& extent = target.extents()[number];
    if (extent.copy != 0) break;
    if (intersect(extent.box, panel.box)) files.push_back(extent.file);
  }
  return files;
}

// A panel that goes to one file is that file's. Those of a tensor that go to several are dealt out,
// a stretch of them to each, so that no file has to wait for another.
void choose_files(std::vector<Panel>& panels, const ExtentMap& target) {
  for (auto begin = panels.begin(); begin != panels.end();) {
    const auto end = std::find_if(begin, panels.end(), [&](const Panel& panel) {
      return panel.target_tensor != begin->target_tensor;
    });
    for (auto panel = begin; panel != end; ++panel) {
      const std::vector<std::uint32_t> files = files_of(*panel, target);
      const auto place = (panel - begin) * std::ssize(files) / (end - begin);
      if (!files.empty()) panel->file = files[static_cast<std::size_t>(place)];
    }
    begin = end;
  }
}

using Lane = std::vector<std::uint32_t>;

// The numbers of each file's panels, of those that have any; the file with the most comes first.
std::vector<Lane> lanes_of(const std::vector<Panel>& panels, std::size_t files) {
  std::vector<Lane> lanes(files);
  for (std::uint32_t number = 0; number < panels.size(); ++number) {
    lanes[panels[number].file].push_back(number);
  }
  std::erase_if(lanes, [](const Lane& lane) { return lane.empty(); });
  std::ranges::stable_sort(lanes, std::ranges::greater{}, &Lane::size);
  return lanes;
}

std::vector<std::uint32_t> as_they_are(std::size_t panels) {
  std::vector<std::uint32_t> order(panels);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  return order;
}

}  // namespace

std::vector<std::uint32_t> in_lanes(std::vector<Panel>& panels, const ExtentMap& target,
                                    int workers) {
  // Frames are appended in this order.
  const bool in_chunks = !target.all_frames().empty();
  if (workers == 1 || target.files().size() < 2 || in_chunks) return as_they_are(panels.size());
  choose_files(panels, target);
  const std::vector<Lane> lanes = lanes_of(panels, target.files().size());

  struct Place {
    std::size_t lane = 0;
    std::size_t next = 0;
  };
  std::vector<Place> places(std::min(static_cast<std::size_t>(workers), lanes.size()));
  for (std::size_t i = 0; i < places.size(); ++i) places[i].lane = i;
  std::size_t waiting = places.size();

  std::vector<std::uint32_t> order;
  order.reserve(panels.size());
  while (order.size() < panels.size()) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      Place& place = places[i];
      if (place.lane < lanes.size() && place.next == lanes[place.lane].size()) place = {waiting++};
      if (place.lane >= lanes.size()) continue;
      order.push_back(lanes[place.lane][place.next++]);
      panels[order.back()].lane = static_cast<std::uint32_t>(i);
    }
  }
  return order;
}

}  // namespace remesh::detail
