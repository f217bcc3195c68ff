#include "values.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Index Values::evaluate(const Expression& expression) const {
  try {
    return expression.evaluate([this](const std::string& name) { return size(name); });
  } catch (const Error& error) {
    if (error.code() != Errc::invalid_argument) throw;
    throw Error(Errc::corrupt, fmt::format("cannot use config.json for model '{}': {}", rules_.name,
                                           error.what()));
  }
}

Index Values::size(const std::string& name) const {
  const auto known = sizes_.find(name);
  if (known != sizes_.end()) return known->second;
  const Index size = new_size(name);
  sizes_.emplace(name, size);
  return size;
}

Index Values::new_size(const std::string& name) const {
  const SizeRule& rule = *std::ranges::find(rules_.sizes, name, &SizeRule::name);
  if (rule.number) return *rule.number;
  if (!rule.flag.empty()) return count(flag(rule.flag) ? *rule.then : *rule.fallback);
  if (rule.key.empty()) return count(*rule.fallback);
  if (const auto said = config_.size(rule.key, rule.least)) return *said;
  if (!rule.fallback) fail_missing(rule.key);
  return rule.least == 0 ? evaluate(*rule.fallback) : count(*rule.fallback);
}

Index Values::count(const Expression& expression) const {
  const Index value = evaluate(expression);
  if (value < 1) fail_value(expression, value, "a positive number");
  return value;
}

void Values::fail_missing(const std::string& key) const {
  const auto* const found =
      config_.present() ? "config.json does not say it" : "there is no config.json";
  throw Error(Errc::incomplete,
              fmt::format("cannot use model '{}': it needs '{}', but {}", rules_.name, key, found));
}

bool Values::flag(const std::string& name) const {
  const FlagRule& rule = *std::ranges::find(rules_.flags, name, &FlagRule::name);
  const std::string type = config_.text("model_type").value_or("");
  if (has(rule.always, type)) return true;
  if (has(rule.never, type)) return false;
  if (!rule.present.empty()) return config_.says(rule.present);
  if (rule.key.empty()) return rule.fallback;
  return config_.flag(rule.key).value_or(rule.fallback);
}

bool Values::holds(const Condition& condition) const {
  if (condition.flag.empty()) return condition.constant;
  return flag(condition.flag) != condition.negated;
}

bool Values::holds(const std::vector<Condition>& all) const {
  return std::ranges::all_of(all, [this](const Condition& one) { return holds(one); });
}

Range Values::layers(const TensorRule& rule, Index layers) const {
  if (!rule.layers) return {0, layers};
  const Range range{evaluate(rule.layers->first), evaluate(rule.layers->second)};
  if (range.begin < 0 || range.end < range.begin || range.end > layers) {
    throw Error(
        Errc::corrupt,
        fmt::format("cannot use config.json for model '{}': layers {} to {} of {} have '{}'",
                    rules_.name, range.begin, range.end, layers, rule.name.name(0, 0)));
  }
  return range;
}

std::optional<PinTo> Values::pin(const StageRule& stage) const {
  if (stage.flag.empty() || flag(stage.flag)) return stage.pin;
  return stage.otherwise;
}

std::vector<Index> Values::shape(const std::vector<Expression>& dims) const {
  std::vector<Index> shape;
  for (const Expression& dim : dims) {
    shape.push_back(evaluate(dim));
    if (shape.back() < 0) fail_value(dim, shape.back(), "the size of a dim");
  }
  return shape;
}

void Values::fail_value(const Expression& expression, Index value,
                        std::string_view expected) const {
  throw Error(Errc::corrupt,
              fmt::format("cannot use config.json for model '{}': '{}' is {}, but {} is "
                          "expected",
                          rules_.name, expression.text(), value, expected));
}

}  // namespace remesh::detail
