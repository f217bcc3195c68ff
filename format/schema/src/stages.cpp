#include "remesh/schema/stages.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "layout_string.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/near_miss.hpp"
#include "remesh/schema/placement.hpp"

namespace remesh {
namespace {

constexpr Index most_layers = Index{1} << 20;
constexpr std::string_view layout_letters = "EtmL|";

[[noreturn]] void fail_text(std::string_view text, const std::string& why) {
  throw Error(Errc::invalid_argument, fmt::format("cannot read stages '{}': {}", text, why));
}

std::vector<Index> balanced(Index items, Index count) {
  std::vector<Index> dealt;
  for (Index at = 0; at < count; ++at) {
    dealt.push_back(split_range(Split{}, {0, items}, count, at).size());
  }
  return dealt;
}

Index number_of(std::string_view text, std::string_view item) {
  Index number = 0;
  const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
  if (error != std::errc() || end != item.data() + item.size() || number < 0 ||
      number > most_layers) {
    fail_text(text, fmt::format("'{}' is no number of layers from 0 to {}", item, most_layers));
  }
  return number;
}

std::vector<Index> parse_list(std::string_view text) {
  std::vector<Index> list;
  std::string_view rest = text;
  for (;;) {
    const std::size_t end = rest.find(',');
    const std::string_view item = rest.substr(0, end);
    list.push_back(item == "*" ? -1 : number_of(text, item));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (std::ranges::count(list, -1) > 1) fail_text(text, "'*' stands there twice");
  return list;
}

// The embedding and the output count as layers, and are taken off again.
std::vector<Index> with_ends(Index num_layers, Index all) {
  if (num_layers + 2 < all) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot deal {} layers, the embedding and the output to {} pipeline "
                            "stages: a stage would have none of them; at most {} are legal",
                            num_layers, all, num_layers + 2));
  }
  std::vector<Index> layers = balanced(num_layers + 2, all);
  --layers.front();
  --layers.back();
  return layers;
}

// Splits by cost. A stage has one layer at least.
class ByCost {
 public:
  ByCost(const StageCosts& costs, Index all)
      : costs_(costs), layers_(costs.layers.size()), all_(static_cast<std::size_t>(all)) {
    sums_.push_back(0);
    for (const double cost : costs.layers) sums_.push_back(sums_.back() + cost);
  }

  // The least bottleneck, and of all ways that have it the one with the least sum of squares, by
  // dynamic programming over (stages, layers that they have).
  std::vector<Index> run() const {
    const double most = bottleneck() * (1 + 1e-12);
    constexpr double impossible = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> least(all_ + 1, std::vector<double>(layers_ + 1, impossible));
    std::vector<std::vector<std::size_t>> from(all_ + 1, std::vector<std::size_t>(layers_ + 1));
    least[0][0] = 0;
    for (std::size_t stage = 1; stage <= all_; ++stage) {
      for (std::size_t end = stage; end + (all_ - stage) <= layers_; ++end) {
        for (std::size_t begin = end; begin-- > stage - 1;) {
          const double cost = cost_of(stage - 1, begin, end);
          if (cost > most) break;
          const double sum = least[stage - 1][begin] + cost * cost;
          if (sum >= least[stage][end]) continue;
          least[stage][end] = sum;
          from[stage][end] = begin;
        }
      }
    }
    std::vector<Index> layers(all_);
    std::size_t end = layers_;
    for (std::size_t stage = all_; stage > 0; --stage) {
      const std::size_t begin = from[stage][end];
      layers[stage - 1] = static_cast<Index>(end - begin);
      end = begin;
    }
    return layers;
  }

 private:
  double cost_of(std::size_t stage, std::size_t begin, std::size_t end) const {
    return sums_[end] - sums_[begin] + (stage == 0 ? costs_.first : 0) +
           (stage + 1 == all_ ? costs_.last : 0);
  }

  // The most that a stage costs if each takes what it can without costing more than `limit`,
  // leaving one layer to each that follows; nothing where the last would cost more.
  std::optional<double> filled(double limit) const {
    std::size_t begin = 0;
    double most = 0;
    for (std::size_t stage = 0; stage < all_; ++stage) {
      const bool is_last = stage + 1 == all_;
      std::size_t end = begin + 1;
      const std::size_t last_end = layers_ - (all_ - stage - 1);
      while (end < last_end && (is_last || cost_of(stage, begin, end + 1) <= limit)) ++end;
      const double cost = cost_of(stage, begin, end);
      if (cost > limit) return std::nullopt;
      most = std::max(most, cost);
      begin = end;
    }
    return most;
  }

  double bottleneck() const {
    double low = 0;
    double high = sums_.back() + costs_.first + costs_.last;
    for (int step = 0; step < 200 && high - low > high * 1e-13; ++step) {
      const double middle = low + (high - low) / 2;
      if (const auto most = filled(middle)) {
        high = *most;
      } else {
        low = middle;
      }
    }
    return high;
  }

  const StageCosts& costs_;
  const std::size_t layers_;
  const std::size_t all_;
  std::vector<double> sums_;
};

void check_stages(Index num_stages, Index virtual_stages) {
  if (num_stages <= most_stages / virtual_stages) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot deal layers to {} x {} pipeline stages: at most {} are possible",
                          num_stages, virtual_stages, most_stages));
}

void check_no_more_stages(Index num_layers, Index num_stages, Index virtual_stages) {
  const Index all = num_stages * virtual_stages;
  if (all <= num_layers) return;
  const std::string nearest = virtual_stages == 1 ? fmt::format("pp is {}", num_layers)
                              : num_stages > num_layers
                                  ? fmt::format("pp is {}, without vpp", num_layers)
                                  : fmt::format("vpp is {}", num_layers / num_stages);
  throw Error(Errc::invalid_argument,
              fmt::format("cannot deal {} layers to {} pipeline stages: a stage would be empty; "
                          "the nearest legal {}",
                          num_layers, all, nearest));
}

}  // namespace

Index Stages::num_layers() const noexcept {
  Index sum = 0;
  for (const Index count : layers) sum += count;
  return sum;
}

Index Stages::stage_of(Index layer) const {
  Index end = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    end += layers[stage];
    if (layer >= 0 && layer < end) return static_cast<Index>(stage);
  }
  throw Error(Errc::invalid_argument,
              fmt::format("layer {} is on no stage: the stages have {} layers", layer, end));
}

Stages even_stages(Index num_layers, Index num_stages, Index virtual_stages) {
  check_stages(num_stages, virtual_stages);
  check_no_more_stages(num_layers, num_stages, virtual_stages);
  return {balanced(num_layers, num_stages * virtual_stages)};
}

double StageCosts::bottleneck(const Stages& stages) const {
  double most = 0;
  auto layer = layers.begin();
  for (std::size_t stage = 0; stage < stages.layers.size(); ++stage) {
    const auto end = layer + stages.layers[stage];
    double cost = std::accumulate(layer, end, 0.0);
    if (stage == 0) cost += first;
    if (stage + 1 == stages.layers.size()) cost += last;
    most = std::max(most, cost);
    layer = end;
  }
  return most;
}

StageRule StageRule::parse(std::string_view text) {
  StageRule rule;
  rule.text_ = text;
  if (text == "even") return rule;
  if (text.empty()) fail_text(text, "it is empty; write even, balanced, cost or 5,6,6,5");
  if (text == "balanced") {
    rule.kind_ = Kind::balanced;
  } else if (text == "cost") {
    rule.kind_ = Kind::cost;
  } else if (text.find_first_not_of("0123456789,*") == std::string_view::npos) {
    rule.kind_ = Kind::list;
    rule.list_ = parse_list(text);
  } else if (text.find_first_of("|EL") != std::string_view::npos ||
             layout_letters.find(text.front()) != std::string_view::npos) {
    rule.kind_ = Kind::string;
    rule.list_ = detail::parse_layout_string(text);
  } else {
    std::string hint = did_you_mean(text, {"even", "balanced", "cost"});
    if (hint.empty()) {
      hint =
          "; even, balanced, cost, a list such as 5,6,6,5 or a layout string such as "
          "Et*5|(t*6|)*10t*5L is expected";
    }
    fail_text(text, "there is no such way" + hint);
  }
  return rule;
}

std::vector<Index> StageRule::listed(Index num_layers, Index all) const {
  std::vector<Index> layers;
  const auto star = std::ranges::find(list_, -1);
  const Index rest_stages = all - (std::ssize(list_) - 1);
  Index said = 0;
  for (const Index count : list_) said += std::max(count, Index{0});
  if (star != list_.end() && rest_stages >= 1 && num_layers - said >= rest_stages) {
    const std::vector<Index> rest = balanced(num_layers - said, rest_stages);
    layers.assign(list_.begin(), star);
    layers.insert(layers.end(), rest.begin(), rest.end());
    layers.insert(layers.end(), star + 1, list_.end());
    return layers;
  }
  if (star != list_.end()) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot deal the layers as '{}' says: it leaves {} layers to {} stages",
                            text_, num_layers - said, rest_stages));
  }
  if (std::ssize(list_) != all) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot deal the layers as '{}' says: it has {} stages, but the mesh has "
                    "{} (pp * vpp)",
                    text_, list_.size(), all));
  }
  return list_;
}

Stages StageRule::deal(Index num_layers, Index num_stages, Index virtual_stages) const {
  check_stages(num_stages, virtual_stages);
  const Index all = num_stages * virtual_stages;
  Stages stages;
  switch (kind_) {
    case Kind::even:
      return even_stages(num_layers, num_stages, virtual_stages);
    case Kind::balanced:
      stages.layers = with_ends(num_layers, all);
      break;
    case Kind::cost:
      check_no_more_stages(num_layers, num_stages, virtual_stages);
      if (!costs_ || std::ssize(costs_->layers) != num_layers) {
        throw Error(
            Errc::invalid_argument,
            fmt::format("cannot deal {} layers by cost: {}", num_layers,
                        costs_ ? fmt::format("the model map prices {}", costs_->layers.size())
                               : "no model map that fits this model prices them"));
      }
      stages.layers = ByCost(*costs_, all).run();
      break;
    case Kind::list:
    case Kind::string:
      stages.layers = listed(num_layers, all);
      break;
  }
  if (stages.num_layers() != num_layers) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot deal the layers as '{}' says: its stages have {} layers, but the "
                    "model has {}",
                    text_, stages.num_layers(), num_layers));
  }
  return stages;
}

}  // namespace remesh
