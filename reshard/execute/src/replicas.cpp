#include "remesh/execute/replicas.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/core/error.hpp"
#include "remesh/store/copies.hpp"

namespace remesh {
namespace {

using namespace std::string_view_literals;

constexpr std::array names{"error"sv, "first"sv, "majority"sv};
constexpr std::size_t most_findings = 16;

// "copy 1 (rank 3, 'shard-00003-of-00004.h5')"
std::string name_of(const ExtentMap& map, std::uint32_t number) {
  const Extent& extent = map.extents()[number];
  return fmt::format("copy {} (rank {}, '{}')", extent.copy, extent.rank,
                     map.files()[extent.file].name);
}

std::string names_of(const ExtentMap& map, const std::vector<std::uint32_t>& numbers) {
  std::vector<std::string> all;
  all.reserve(numbers.size());
  for (const std::uint32_t number : numbers) all.push_back(name_of(map, number));
  return fmt::format("{}", fmt::join(all, ", "));
}

class Choosing {
 public:
  Choosing(const Reader& source, ReplicaChoice choice) : source_(source), choice_(choice) {}

  void add(const UnlikeCopies& unlike) {
    if (unlike.groups.empty() || (choice_ == ReplicaChoice::error && !unlike.damaged.empty())) {
      refuse_damaged(unlike);
    }
    if (choice_ == ReplicaChoice::error) refuse_unlike(unlike, "");
    const std::uint32_t taken =
        choice_ == ReplicaChoice::first ? first_of(unlike) : majority_of(unlike);
    if (map().extents()[taken].copy != 0) firsts_.push_back(taken);
    ++out_.unlike;
    if (out_.findings.size() < most_findings) out_.findings.push_back(told(unlike, taken));
  }

  ComparedReplicas result() {
    if (!firsts_.empty()) out_.reader = reader_with_first(source_, firsts_);
    return std::move(out_);
  }

 private:
  const ExtentMap& map() const { return source_.extents(); }

  const TensorDesc& tensor_of(std::uint32_t number) const {
    return source_.catalog().tensors[map().extents()[number].tensor];
  }

  [[noreturn]] void refuse_damaged(const UnlikeCopies& unlike) const {
    const std::uint32_t bad = unlike.damaged.front();
    const Extent& extent = map().extents()[bad];
    throw Error(Errc::corrupt,
                fmt::format("cannot use {}: {} of {} at byte {} is not what was recorded; {}",
                            to_string(tensor_of(bad)), name_of(map(), bad), to_string(extent.box),
                            extent.offset_bytes,
                            unlike.groups.empty()
                                ? "no other copy is sound either"
                                : "another copy is sound: `--replicas first` takes it, and "
                                  "`remesh repair` makes a whole checkpoint"),
                "RM207");
  }

  [[noreturn]] void refuse_unlike(const UnlikeCopies& unlike, std::string_view why) const {
    const std::uint32_t one = unlike.groups[0].front();
    const std::uint32_t other = unlike.groups[1].front();
    const auto where = first_difference(source_, one, other);
    throw Error(
        Errc::corrupt,
        fmt::format("cannot choose a copy of {} of {}: {} and {} differ{}, and {} different ones "
                    "are stored{}; find out which is right, or say `--replicas first`{}",
                    to_string(map().extents()[one].box), to_string(tensor_of(one)),
                    name_of(map(), one), name_of(map(), other),
                    where ? fmt::format(" first at element {}", to_string(*where)) : "",
                    unlike.groups.size(), why,
                    choice_ == ReplicaChoice::error ? " or `--replicas majority`" : ""),
        "RM401");
  }

  // The order of extents is that of copies.
  std::uint32_t first_of(const UnlikeCopies& unlike) const {
    const auto first = std::ranges::min_element(
        unlike.groups, {}, [&](const auto& group) { return map().extents()[group.front()].copy; });
    return first->front();
  }

  std::uint32_t majority_of(const UnlikeCopies& unlike) const {
    std::size_t all = 0;
    for (const auto& group : unlike.groups) all += group.size();
    const auto& largest = unlike.groups.front();
    if (largest.size() * 2 <= all) {
      refuse_unlike(unlike, fmt::format(", of which none has a majority among {}", all));
    }
    return largest.front();
  }

  Finding told(const UnlikeCopies& unlike, std::uint32_t taken) const {
    const Extent& extent = map().extents()[taken];
    std::vector<std::uint32_t> others;
    for (const auto& group : unlike.groups) {
      if (std::ranges::find(group, taken) == group.end())
        std::ranges::copy(group, std::back_inserter(others));
    }
    Finding finding;
    finding.id = "RM403";
    finding.severity = Severity::warn;
    finding.tensor = tensor_of(taken).name;
    finding.box = extent.box;
    finding.file = map().files()[extent.file].name;
    finding.message = fmt::format("{}: {} of {} was taken", to_string(tensor_of(taken)),
                                  name_of(map(), taken), to_string(extent.box));
    if (!others.empty()) {
      finding.message += fmt::format("; other numbers are in {}", names_of(map(), others));
    }
    if (!unlike.damaged.empty()) {
      finding.message +=
          fmt::format("; not what was recorded is {}", names_of(map(), unlike.damaged));
    }
    return finding;
  }

  const Reader& source_;
  const ReplicaChoice choice_;
  std::vector<std::uint32_t> firsts_;
  ComparedReplicas out_;
};

}  // namespace

std::optional<ReplicaChoice> parse_replica_choice(std::string_view name) noexcept {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<ReplicaChoice>(at - names.begin());
}

std::string_view to_string(ReplicaChoice choice) noexcept {
  return names[static_cast<std::size_t>(choice)];
}

ComparedReplicas compare_replicas(const Context& context, const Reader& source,
                                  ReplicaChoice choice) {
  Choosing choosing(source, choice);
  const auto all =
      unlike_copies({context.pool, context.budget, context.progress, context.stop}, source);
  for (const UnlikeCopies& unlike : all) choosing.add(unlike);
  return choosing.result();
}

}  // namespace remesh
