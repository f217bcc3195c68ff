#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "since.hpp"

namespace remesh::detail {
namespace {

// What no optimizer changes, by the ends of names.
constexpr std::array<std::string_view, 5> buffers{"inv_freq", "position_ids", "cos_cached",
                                                  "sin_cached", "masked_bias"};

bool is_buffer(std::string_view name) {
  return std::ranges::any_of(buffers, [&](std::string_view end) { return name.ends_with(end); });
}

// An expert gets a gradient, and a step, only where tokens were sent to it.
bool is_of_expert(std::string_view name) { return name.find("expert") != std::string_view::npos; }

bool is_master(std::string_view state) { return state == "master" || state == "fp32"; }

// A parameter that training changes, and what is kept of it in both saves.
struct Trained {
  std::size_t tensor = 0;
  bool weight_changed = false;
  bool has_master = false;
  bool master_changed = false;
  int states = 0;  // but for `step`, and for those that are zero in both saves
  int states_changed = 0;

  bool is_still() const { return !weight_changed && !master_changed && states_changed == 0; }
};

// Of each kind of state (but for masters and steps) how many there are, and how many changed.
struct KindOfState {
  Index tensors = 0;
  Index changed = 0;
};

class Movement {
 public:
  explicit Movement(const TwoSaves& saves) : saves_(saves), with_states_(saves.now.sound.size()) {
    std::map<std::size_t, Trained> all;
    bool states = false;
    for (const Kept& kept : saves.kept) {
      const std::string_view state = saves.now.state(kept.now);
      if (!state.empty() || !is_weight(kept.now)) continue;
      all[kept.now] = {.tensor = kept.now, .weight_changed = kept.changed};
    }
    for (const Kept& kept : saves.kept) {
      const std::string_view state = saves.now.state(kept.now);
      if (state.empty() || state == "step") continue;
      const auto found = all.find(static_cast<std::size_t>(saves.now.parameters[kept.now]));
      if (found == all.end()) continue;
      states = true;
      add_state(kept, state, found->second);
    }
    trained.reserve(all.size());
    for (const auto& [tensor, one] : all) {
      // Where others have states, who has none is frozen.
      if (!states || with_states_[tensor]) trained.push_back(one);
    }
  }

  bool none(bool Trained::*changed) const { return std::ranges::none_of(trained, changed); }
  bool any(bool Trained::*changed) const { return !none(changed); }
  bool any_state_changed() const {
    return std::ranges::any_of(kinds, [](const auto& kind) { return kind.second.changed > 0; });
  }
  bool nothing_changed() const { return std::ranges::all_of(trained, &Trained::is_still); }

  std::vector<Trained> trained;
  std::map<std::string_view, KindOfState> kinds;

 private:
  bool is_weight(std::size_t tensor) const {
    const TensorDesc& desc = saves_.now.desc(tensor);
    return is_counted_float(desc.dtype) && !is_buffer(desc.name);
  }

  void add_state(const Kept& kept, std::string_view state, Trained& one) {
    with_states_[one.tensor] = true;
    if (is_master(state)) {
      one.has_master = true;
      one.master_changed |= kept.changed;
      return;
    }
    const bool stays_zero = saves_.now.all_zero(kept.now) && saves_.before.all_zero(kept.before);
    if (stays_zero) return;
    ++one.states;
    one.states_changed += kept.changed ? 1 : 0;
    KindOfState& kind = kinds[state];
    ++kind.tensors;
    kind.changed += kept.changed ? 1 : 0;
  }

  const TwoSaves& saves_;
  std::vector<bool> with_states_;  // for each tensor of the later catalog
};

std::string between(const Since& since) {
  if (!since.step || !since.previous_step) return "since a save of a step that nobody says";
  return fmt::format("from step {} to step {}", *since.previous_step, *since.step);
}

class Unchanged {
 public:
  Unchanged(const TwoSaves& saves, const Since& since, const NamedSteps& named,
            std::vector<Finding>& findings)
      : saves_(saves), since_(since), named_(named), moved_(saves), findings_(findings) {}

  void run() {
    if (moved_.trained.empty()) return;
    const bool known = since_.step && since_.previous_step;
    if (known && *since_.step <= *since_.previous_step) return not_later();
    // Who does not say its step may be the same save again.
    const Severity severity = known ? Severity::error : Severity::warn;
    if (moved_.nothing_changed() && !moved_.any_state_changed()) return nothing_changed(severity);
    if (moved_.none(&Trained::weight_changed)) return still_weights(severity);
    still_states(severity);
    still_parameters();
  }

 private:
  Finding& add(Severity severity, std::string message, std::string next_step = {}) {
    Finding finding;
    finding.id = "RM501";
    finding.severity = severity;
    finding.message = std::move(message);
    finding.next_step = std::move(next_step);
    findings_.push_back(std::move(finding));
    return findings_.back();
  }

  // Every tensor but the step: the same save again, resharded perhaps, or a run that stood still.
  bool is_same_save() const { return std::ranges::none_of(saves_.kept, &Kept::changed); }

  void not_later() {
    const std::int64_t step = *since_.step;
    const std::int64_t previous = *since_.previous_step;
    if (step == previous && is_same_save()) {
      if (has_two_names(step)) return saved_twice(step);
      add(Severity::note,
          fmt::format("both are of step {}, and all {} tensors are the same: it is the same save, "
                      "copied, resharded or converted",
                      step, saves_.kept.size()));
      return;
    }
    Finding& finding = add(
        Severity::error,
        step == previous
            ? fmt::format("both are of step {}, but {} of {} tensors differ; they are of two runs, "
                          "or the step was not saved",
                          step, std::ranges::count_if(saves_.kept, &Kept::changed),
                          saves_.kept.size())
            : fmt::format("this save is of step {}, before step {} of the earlier one; they were "
                          "exchanged, or the run went back",
                          step, previous),
        "say --previous with an earlier save of the same run");
    finding.found = fmt::format("step {}", step);
    finding.expected = fmt::format("a step after {}", previous);
  }

  // One of the names is the step; a copy may be called anything else.
  bool has_two_names(std::int64_t step) const {
    if (!named_.now || !named_.previous || *named_.now == *named_.previous) return false;
    return *named_.now == step || *named_.previous == step;
  }

  void saved_twice(std::int64_t step) {
    const std::int64_t other = *named_.now == step ? *named_.previous : *named_.now;
    Finding& finding =
        add(Severity::error,
            fmt::format("both are of step {}, and all {} tensors are the same, but their "
                        "directories say steps {} and {}: one save was written under both names",
                        step, saves_.kept.size(), *named_.previous, *named_.now),
            fmt::format("go on from step {}; that of step {} is not here", step, other));
    finding.found = fmt::format("step {}", step);
    finding.expected = fmt::format("step {}", other);
  }

  void nothing_changed(Severity severity) {
    Finding& finding =
        add(severity,
            fmt::format("none of {} trained parameters, nor any of their optimizer states, changed "
                        "{}: {}; an asynchronous writer saved an old snapshot, or the learning "
                        "rate was zero",
                        moved_.trained.size(), between(since_), listed_trained(moved_.trained)),
            "go back to the last save that moved; what training did since is lost");
    name_tensors(finding, saves_.now, tensors_of(moved_.trained));
    finding.found = fmt::format("0 of {} changed", moved_.trained.size());
    finding.expected = "parameters that changed";
  }

  // Narrow weights may round to the same bits while their masters move.
  void still_weights(Severity severity) {
    const bool rounded = moved_.any(&Trained::master_changed);
    const auto is_unseen = [this](const Trained& one) { return moves_unseen(one); };
    if (!rounded && std::ranges::all_of(moved_.trained, is_unseen)) severity = Severity::warn;
    if (rounded) severity = Severity::note;
    Finding& finding =
        add(severity,
            fmt::format("none of {} trained parameters changed {}, but their {} did; {}",
                        moved_.trained.size(), between(since_), rounded ? "masters" : "states",
                        rounded ? "steps so small are lost in rounding, or the weights are an old "
                                  "snapshot: `--level deep` tells"
                                : "the weights are an old snapshot, or the learning rate was zero"),
            rounded ? "" : "go back to the last save whose weights moved");
    name_tensors(finding, saves_.now, tensors_of(moved_.trained));
    finding.found = fmt::format("0 of {} changed", moved_.trained.size());
    finding.expected = "parameters that changed";
  }

  void still_states(Severity severity) {
    for (const auto& [state, kind] : moved_.kinds) {
      if (kind.changed > 0) continue;
      Finding& finding =
          add(severity,
              fmt::format("none of {} tensors '{}' changed {}, but parameters did; the optimizer "
                          "was saved from an old snapshot",
                          kind.tensors, state, between(since_)),
              "do not resume from this save: its optimizer is of another step");
      name_tensors(finding, saves_.now, all_of(state));
      finding.found = fmt::format("0 of {} changed", kind.tensors);
      finding.expected = "states that changed";
    }
  }

  // Some of many: frozen ones, or parts of an old snapshot. What has states is stepped, and where
  // these are not zero the step changes them.
  void still_parameters() {
    std::vector<Trained> stepped;
    std::vector<Trained> others;
    for (const Trained& one : moved_.trained) {
      if (!one.is_still()) continue;
      const bool is_stepped = one.states > 0 && !is_of_expert(name(one));
      (is_stepped ? stepped : others).push_back(one);
    }
    if (!stepped.empty()) {
      still(Severity::warn, stepped,
            "nor did their optimizer states, which are not zero: a step changes those; part of "
            "the save is an old snapshot",
            "compare the shards of these tensors with the earlier save");
    }
    if (!others.empty()) {
      still(Severity::note, others,
            "they are frozen, experts that no token was sent to, or moved by less than their "
            "dtype can tell",
            "");
    }
  }

  void still(Severity severity, const std::vector<Trained>& some, std::string_view why,
             std::string next_step) {
    Finding& finding =
        add(severity,
            fmt::format("{} of {} trained parameters did not change {}: {}; {}", some.size(),
                        moved_.trained.size(), between(since_), listed_trained(some), why),
            std::move(next_step));
    name_tensors(finding, saves_.now, tensors_of(some));
    finding.found = fmt::format("{} of {} unchanged", some.size(), moved_.trained.size());
    finding.expected = "parameters that changed";
  }

  const std::string& name(const Trained& one) const { return saves_.now.desc(one.tensor).name; }

  bool moves_unseen(const Trained& one) const {
    return !one.has_master && bits(saves_.now.desc(one.tensor).dtype) < 32;
  }

  static std::vector<std::size_t> tensors_of(const std::vector<Trained>& some) {
    std::vector<std::size_t> tensors;
    tensors.reserve(some.size());
    for (const Trained& one : some) tensors.push_back(one.tensor);
    return tensors;
  }

  std::string listed_trained(const std::vector<Trained>& some) const {
    return listed(saves_.now, tensors_of(some));
  }

  std::vector<std::size_t> all_of(std::string_view state) const {
    std::vector<std::size_t> tensors;
    for (const Kept& one : saves_.kept) {
      if (saves_.now.state(one.now) == state) tensors.push_back(one.now);
    }
    return tensors;
  }

  const TwoSaves& saves_;
  const Since& since_;
  const NamedSteps& named_;
  const Movement moved_;
  std::vector<Finding>& findings_;
};

}  // namespace

void check_unchanged(const TwoSaves& saves, const Since& since, const NamedSteps& named,
                     std::vector<Finding>& findings) {
  Unchanged(saves, since, named, findings).run();
}

}  // namespace remesh::detail
