#include "remesh/schema/states.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remesh {
namespace {

// States that have an element for each one of their parameter.
constexpr std::array<std::string_view, 5> elementwise{"master", "exp_avg", "exp_avg_sq",
                                                      "max_exp_avg_sq", "momentum_buffer"};
constexpr std::size_t most_listed = 3;

using States = std::vector<std::string_view>;  // sorted

// The states of each tensor that has some; of the others none.
std::vector<States> states_of(std::span<const TensorDesc> tensors,
                              const std::vector<std::int64_t>& parameters) {
  std::vector<States> states(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (parameters[i] < 0) continue;
    states[static_cast<std::size_t>(parameters[i])].push_back(
        parse_state_name(tensors[i].name)->state);
  }
  for (States& each : states) std::ranges::sort(each);
  return states;
}

// Those that `all` has and `some` lacks, if `some` has nothing that `all` lacks. What is already in
// f32 needs no master.
States lacking(const States& some, const States& all, DType dtype) {
  if (!std::ranges::includes(all, some)) return {};
  States missing;
  std::ranges::set_difference(all, some, std::back_inserter(missing));
  if (dtype == DType::f32) std::erase(missing, "master");
  return missing;
}

std::string listed(const std::vector<std::string>& texts) {
  const auto shown = std::span(texts).first(std::min(texts.size(), most_listed));
  const std::string more =
      texts.size() > most_listed ? fmt::format(" and {} more", texts.size() - most_listed) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), more);
}

void report(Findings& findings, const char* id, Severity severity, const std::string& first,
            std::string message) {
  Finding finding;
  finding.id = id;
  finding.severity = severity;
  finding.tensor = first;
  finding.message = std::move(message);
  findings.add(std::move(finding));
}

void check_shapes(std::span<const TensorDesc> tensors, const std::vector<std::int64_t>& parameters,
                  Findings& findings) {
  std::vector<std::string> unfit;
  std::string first;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (parameters[i] < 0) continue;
    const TensorDesc& parameter = tensors[static_cast<std::size_t>(parameters[i])];
    const auto state = parse_state_name(tensors[i].name)->state;
    if (tensors[i].extent == parameter.extent ||
        std::ranges::find(elementwise, state) == elementwise.end()) {
      continue;
    }
    if (unfit.empty()) first = tensors[i].name;
    unfit.push_back(
        fmt::format("{} of a parameter {}", to_string(tensors[i]), to_string(parameter.extent)));
  }
  if (unfit.empty()) return;
  report(findings, "RM303", Severity::error, first,
         fmt::format("cannot use the optimizer: {} of its tensors have another shape than their "
                     "parameter: {}; it is that of another model",
                     unfit.size(), listed(unfit)));
}

class Completeness {
 public:
  Completeness(std::span<const TensorDesc> tensors, const std::vector<std::int64_t>& parameters)
      : tensors_(tensors), parameters_(parameters), states_(states_of(tensors, parameters)) {
    for (const States& each : states_) {
      if (!each.empty()) ++kinds_[each];
    }
  }

  void check(Findings& findings) const {
    if (kinds_.empty()) return;
    std::vector<std::string> lacking_some;
    std::vector<std::string> lacking_all;
    std::string first_some;
    std::string first_all;
    std::size_t count = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (parameters_[i] >= 0) continue;
      ++count;
      if (states_[i].empty()) {
        if (lacking_all.empty()) first_all = tensors_[i].name;
        lacking_all.push_back(fmt::format("'{}'", tensors_[i].name));
      } else if (const States missing = missing_of(i); !missing.empty()) {
        if (lacking_some.empty()) first_some = tensors_[i].name;
        lacking_some.push_back(
            fmt::format("'{}' lacks {}", tensors_[i].name, fmt::join(missing, ", ")));
      }
    }
    if (!lacking_some.empty()) {
      report(findings, "RM309", Severity::error, first_some,
             fmt::format("cannot use the optimizer: {} of {} parameters lack states that others "
                         "have: {}",
                         lacking_some.size(), count, listed(lacking_some)));
    }
    if (!lacking_all.empty()) {
      report(findings, "RM309", Severity::warn, first_all,
             fmt::format("{} of {} parameters have no optimizer state: {}; were they frozen?",
                         lacking_all.size(), count, listed(lacking_all)));
    }
  }

 private:
  // What the parameter lacks of the fullest kind of state that contains its own. Kinds are few; of
  // more than that nobody can say which belong together.
  States missing_of(std::size_t parameter) const {
    constexpr std::size_t most_kinds = 64;
    States most;
    if (kinds_.size() > most_kinds) return most;
    for (const auto& [kind, holders] : kinds_) {
      States missing = lacking(states_[parameter], kind, tensors_[parameter].dtype);
      if (missing.size() > most.size()) most = std::move(missing);
    }
    return most;
  }

  std::span<const TensorDesc> tensors_;
  const std::vector<std::int64_t>& parameters_;
  const std::vector<States> states_;
  std::map<States, std::size_t> kinds_;  // and how many parameters have them
};

}  // namespace

std::optional<StateName> parse_state_name(std::string_view name) noexcept {
  const std::size_t at = name.rfind('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == name.size()) return std::nullopt;
  return StateName{name.substr(0, at), name.substr(at + 1)};
}

std::vector<std::int64_t> parameters_of(std::span<const TensorDesc> tensors) {
  const auto may_be_state = [](const TensorDesc& tensor) {
    return tensor.name.find('@') != std::string::npos;
  };
  std::vector<std::int64_t> parameters(tensors.size(), -1);
  // Most checkpoints have none, and many tensors.
  if (std::ranges::none_of(tensors, may_be_state)) return parameters;
  std::unordered_map<std::string_view, std::int64_t> numbers;
  numbers.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    numbers.emplace(tensors[i].name, static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto name = parse_state_name(tensors[i].name);
    if (!name) continue;
    if (const auto found = numbers.find(name->parameter); found != numbers.end()) {
      parameters[i] = found->second;
    }
  }
  return parameters;
}

void check_states(std::span<const TensorDesc> tensors, Findings& findings) {
  const std::vector<std::int64_t> parameters = parameters_of(tensors);
  check_shapes(tensors, parameters, findings);
  Completeness(tensors, parameters).check(findings);
}

}  // namespace remesh
