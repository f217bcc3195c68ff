#include "diff_pairs.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "natural_order.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/states.hpp"

namespace remesh::detail {
namespace {

// Patterns, and which of them matched anything on either side.
class Patterns {
 public:
  explicit Patterns(const std::vector<std::string>& globs)
      : globs_(globs), used_(globs.size(), false) {}

  // Every pattern is tried, so that none is called unused because another one came first.
  bool match(const std::string& name, const std::optional<std::string>& parameter) {
    bool any = false;
    for (std::size_t i = 0; i < globs_.size(); ++i) {
      const auto fits = [&](const std::string& text) {
        return fnmatch(globs_[i].c_str(), text.c_str(), 0) == 0;
      };
      if (!fits(name) && !(parameter && fits(*parameter))) continue;
      used_[i] = true;
      any = true;
    }
    return any;
  }

  void require_all_used(const char* flag) const {
    const auto unused = std::ranges::find(used_, false);
    if (unused == used_.end()) return;
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot use `{} '{}'`: no tensor of either side has a name that matches "
                    "it; `remesh inspect CHECKPOINT '*'` lists them",
                    flag, globs_[static_cast<std::size_t>(unused - used_.begin())]));
  }

 private:
  const std::vector<std::string>& globs_;
  std::vector<bool> used_;
};

class Selecting {
 public:
  Selecting(const Catalog& left, const Catalog& right, const DiffOptions& options)
      : include_(options.include), exclude_(options.exclude), all_(options.include.empty()) {
    for (const Catalog* side : {&left, &right}) {
      for (const TensorDesc& tensor : side->tensors) names_.insert(tensor.name);
    }
  }

  // A name means the same on both sides: one that lost a parameter may still have its states.
  bool chooses(const std::string& name) {
    const std::optional<std::string> parameter = parameter_of(name);
    const bool included = include_.match(name, parameter) || all_;
    return !exclude_.match(name, parameter) && included;
  }

  void require_all_used() const {
    include_.require_all_used("--include");
    exclude_.require_all_used("--exclude");
  }

  // Every pattern may match and yet nothing be left.
  void require_any_left(std::int64_t left_out) const {
    if (left_out == 0 || left_out < std::ssize(names_)) return;
    const char* const flags = all_ ? "--exclude leaves" : "--include and --exclude leave";
    throw Error(Errc::invalid_argument,
                fmt::format("cannot compare anything: {} out all {} tensors of both sides; "
                            "`remesh inspect CHECKPOINT '*'` lists them",
                            flags, left_out));
  }

 private:
  std::optional<std::string> parameter_of(const std::string& name) const {
    const auto state = parse_state_name(name);
    if (!state || !names_.contains(state->parameter)) return std::nullopt;
    return std::string(state->parameter);
  }

  std::unordered_set<std::string_view> names_;  // of both sides
  Patterns include_;
  Patterns exclude_;
  bool all_;
};

}  // namespace

Pairing pair_up(const Catalog& left, const Catalog& right, const DiffOptions& options) {
  Selecting selecting(left, right, options);
  std::unordered_map<std::string_view, std::size_t> named;
  named.reserve(right.tensors.size());
  for (std::size_t r = 0; r < right.tensors.size(); ++r) named.emplace(right.tensors[r].name, r);
  Pairing pairing;
  std::vector<bool> met(right.tensors.size());
  for (std::size_t l = 0; l < left.tensors.size(); ++l) {
    const auto found = named.find(left.tensors[l].name);
    const bool both = found != named.end();
    if (both) met[found->second] = true;
    if (!selecting.chooses(left.tensors[l].name)) {
      ++pairing.left_out;
    } else if (both) {
      pairing.pairs.push_back({l, found->second});
    } else {
      pairing.only_left.push_back(l);
    }
  }
  for (std::size_t r = 0; r < met.size(); ++r) {
    if (met[r]) continue;
    if (selecting.chooses(right.tensors[r].name)) {
      pairing.only_right.push_back(r);
    } else {
      ++pairing.left_out;
    }
  }
  selecting.require_all_used();
  selecting.require_any_left(pairing.left_out);
  const auto name_of = [](const Catalog& catalog) {
    return [&catalog](std::size_t i) { return std::string_view(catalog.tensors[i].name); };
  };
  std::ranges::sort(pairing.pairs, comes_before,
                    [&](const Pair& pair) { return name_of(left)(pair.left); });
  std::ranges::sort(pairing.only_left, comes_before, name_of(left));
  std::ranges::sort(pairing.only_right, comes_before, name_of(right));
  return pairing;
}

}  // namespace remesh::detail
