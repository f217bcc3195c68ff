#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh {

/// How the layers of a model are dealt to pipeline stages: layers[s] consecutive layers on stage s.
/// With virtual stages there are vpp * pp of them, dealt to the coordinates of pp in turn: on pp 4,
/// stages 1 and 5 lie at coordinate 1.
struct Stages {
  std::vector<Index> layers;

  Index num_layers() const noexcept;
  /// The stage that has `layer`. Throws Error(invalid_argument) if none has.
  Index stage_of(Index layer) const;

  friend bool operator==(const Stages&, const Stages&) = default;
};

/// The most stages that layers are dealt to, virtual ones included.
inline constexpr Index most_stages = 16'384;

/// `num_layers` over `num_stages` times `virtual_stages`, as even as can be, the first stages
/// larger by one. Throws Error(invalid_argument), naming both numbers, if there are more stages
/// than layers.
Stages even_stages(Index num_layers, Index num_stages, Index virtual_stages = 1);

/// What the parts of a model cost, in any one unit.
struct StageCosts {
  std::vector<double> layers;
  double first = 0;  ///< of what comes before the first layer: the embedding
  double last = 0;   ///< of what comes behind the last: the output

  /// The most that a stage costs, first and last included. Precondition: the stages have as many
  /// layers.
  double bottleneck(const Stages& stages) const;
};

/// A way to deal layers to stages, as users write it.
class StageRule {
 public:
  /// even_stages.
  StageRule() = default;

  /// "even"; "balanced": the embedding and the output count as a layer each; "cost": no stage costs
  /// more than need be, and of those ways the most even one; "5,6,6,5": the layers of each stage,
  /// of which one may be "*": as many stages as are not listed, as even as can be; or a layout
  /// string as Megatron has it, "Et*3|(tt|)*29,m|L": E the embedding, t a layer, m a layer of
  /// multi-token prediction (layers too, behind all others), L the loss, | the next stage.
  ///
  /// Throws Error(invalid_argument), which says what is wrong where.
  static StageRule parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }
  bool wants_costs() const noexcept { return kind_ == Kind::cost; }
  void set_costs(StageCosts costs) { costs_ = std::move(costs); }

  /// Throws Error(invalid_argument), naming both numbers, if the rule has other stages or other
  /// layers than asked; if, for "even" and "cost", a stage would be empty, and for "balanced" have
  /// neither a layer nor the embedding nor the output; and, for "cost", if no costs of as many
  /// layers are set. Lists and layout strings may leave stages empty. The result has all layers,
  /// each once.
  Stages deal(Index num_layers, Index num_stages, Index virtual_stages) const;

 private:
  enum class Kind { even, balanced, cost, list, string };

  std::vector<Index> listed(Index num_layers, Index all) const;

  Kind kind_ = Kind::even;
  std::string text_ = "even";
  std::vector<Index> list_;  // -1: the "*"
  std::optional<StageCosts> costs_;
};

}  // namespace remesh
