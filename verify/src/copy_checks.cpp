#include "copy_checks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "elements.hpp"
#include "numbers.hpp"
#include "remesh/store/copies.hpp"

namespace remesh::detail {
namespace {

// To read a copy that is not the first takes a map of all extents; ranks that drifted apart differ
// in every tensor.
constexpr std::size_t most_detailed = 64;

// One element of one copy.
std::optional<std::uint64_t> bits_in(const Reader& reader, std::uint32_t number,
                                     const Box& element) {
  const Extent& extent = reader.extents().extents()[number];
  const DType dtype = reader.catalog().tensors[extent.tensor].dtype;
  if (bits(dtype) % 8 != 0) return std::nullopt;  // no box of one element is whole bytes
  std::array<std::byte, 8> bytes{};
  const auto into = std::span(bytes).first(static_cast<std::size_t>(bits(dtype) / 8));
  reader_with_first(reader, std::array{number})->read(extent.tensor, element, into, {});
  return bits_at(dtype, into, 0);
}

class UnlikeReport {
 public:
  UnlikeReport(const Reader& reader, const UnlikeCopies& unlike)
      : reader_(reader), unlike_(unlike) {
    for (const auto& group : unlike.groups) total_ += group.size();
  }

  Finding about(std::size_t group, bool detailed) const {
    const std::uint32_t here = unlike_.groups[group].front();
    const std::uint32_t there = unlike_.groups.front().front();
    const Extent& extent = extent_of(here);
    Finding finding;
    finding.id = "RM401";
    finding.file = file_of(here);
    finding.tensor = desc_of(extent).name;
    finding.box = extent.box;
    finding.bytes = reader_.extents().place(extent);
    const std::string place = detailed ? place_in(here, there, finding) : "";
    finding.message =
        fmt::format("{}: {} does not hold the numbers that {} holds{}; {}",
                    to_string(desc_of(extent)), words_of(here), words_of(there), place, votes());
    finding.next_step =
        has_majority()
            ? "find out since when they differ; `--replicas majority` of reshard and convert takes "
              "what most copies hold"
            : "find out since when they differ, and which rank is right; `--replicas first` of "
              "reshard and convert takes copy 0";
    return finding;
  }

 private:
  const Extent& extent_of(std::uint32_t number) const {
    return reader_.extents().extents()[number];
  }
  const TensorDesc& desc_of(const Extent& extent) const {
    return reader_.catalog().tensors[extent.tensor];
  }
  const std::string& file_of(std::uint32_t number) const {
    return reader_.extents().files()[extent_of(number).file].name;
  }
  bool has_majority() const { return 2 * unlike_.groups.front().size() > total_; }

  // "copy 1 of [0, 8) (rank 1, shard-00001-of-00002.h5)".
  std::string words_of(std::uint32_t number) const {
    const Extent& extent = extent_of(number);
    return fmt::format("copy {} of {} (rank {}, {})", extent.copy, to_string(extent.box),
                       extent.rank, file_of(number));
  }

  // The first element that differs, as a clause; the finding gets its place and values.
  std::string place_in(std::uint32_t here, std::uint32_t there, Finding& finding) const {
    const auto element = first_difference(reader_, there, here);
    if (!element) return {};
    const Extent& extent = extent_of(here);
    const DType dtype = desc_of(extent).dtype;
    finding.box = element;
    const auto ours = bits_in(reader_, here, *element);
    const auto theirs = bits_in(reader_, there, *element);
    std::string at = fmt::format(": they differ first at {}", index_text(*element));
    if (!ours || !theirs) return at;
    if (!is_chunked(extent)) {
      const std::int64_t width = bits(dtype) / 8;
      const std::int64_t begin = extent.offset_bytes + width * number_of(extent.box, *element);
      finding.bytes = ByteRange{begin, begin + width};
    }
    finding.found = element_text(dtype, *ours);
    const std::string other = element_text(dtype, *theirs);
    if (has_majority()) finding.expected = other;
    const std::string distance = distance_text(dtype, *ours, *theirs);
    return fmt::format("{}, {} against {}{}", at, finding.found, other,
                       distance.empty() ? "" : ", " + distance + " apart");
  }

  std::string votes() const {
    const std::string damaged =
        unlike_.damaged.empty() ? "" : fmt::format(" ({} more damaged)", unlike_.damaged.size());
    const std::string counted =
        fmt::format("{} copies{}, {} different ones", total_, damaged, unlike_.groups.size());
    if (!has_majority()) return counted + ", none of which has a majority";
    return fmt::format("{}, of which {} are as copy {}", counted, unlike_.groups.front().size(),
                       extent_of(unlike_.groups.front().front()).copy);
  }

  const Reader& reader_;
  const UnlikeCopies& unlike_;
  std::size_t total_ = 0;
};

}  // namespace

bool may_differ(const Reader& reader, const Tally& tally) {
  const ExtentMap& map = reader.extents();
  if (map.copies() < 2) return false;
  std::map<std::pair<std::uint32_t, Box>, const Extent*> firsts;
  for (const Extent& extent : map.extents()) {
    if (extent.copy == 0) firsts.emplace(std::pair(extent.tensor, extent.box), &extent);
  }
  return std::ranges::any_of(map.extents(), [&](const Extent& extent) {
    if (extent.copy == 0 || extent.length_bytes == 0) return false;
    const auto first = firsts.find({extent.tensor, extent.box});
    if (first == firsts.end()) return false;
    const auto recorded = map.blocks(extent);
    if (!recorded.empty()) return !std::ranges::equal(recorded, map.blocks(*first->second));
    return tally.sum(extent.tensor, extent.copy) != tally.sum(extent.tensor, 0);
  });
}

void report_unlike_copies(const JudgeContext& context, const Reader& reader,
                          std::vector<Finding>& findings) {
  const auto all =
      unlike_copies({context.pool, context.budget, context.progress, context.stop}, reader);
  std::size_t told = 0;
  for (const UnlikeCopies& unlike : all) {
    const UnlikeReport report(reader, unlike);
    for (std::size_t group = 1; group < unlike.groups.size(); ++group) {
      findings.push_back(report.about(group, told++ < most_detailed));
    }
  }
}

}  // namespace remesh::detail
