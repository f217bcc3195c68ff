#include "diff_pairs.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

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
  bool match(const std::string& name, const std::string* parameter) {
    bool any = false;
    for (std::size_t i = 0; i < globs_.size(); ++i) {
      const auto fits = [&](const std::string& text) {
        return fnmatch(globs_[i].c_str(), text.c_str(), 0) == 0;
      };
      if (!fits(name) && (parameter == nullptr || !fits(*parameter))) continue;
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
  explicit Selecting(const DiffOptions& options)
      : include_(options.include), exclude_(options.exclude), all_(options.include.empty()) {}

  std::vector<bool> chosen(const Catalog& catalog) {
    const std::vector<std::int64_t> parameters = parameters_of(catalog.tensors);
    std::vector<bool> chosen(catalog.tensors.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::string* const parameter =
          parameters[i] < 0 ? nullptr
                            : &catalog.tensors[static_cast<std::size_t>(parameters[i])].name;
      const std::string& name = catalog.tensors[i].name;
      const bool included = include_.match(name, parameter) || all_;
      chosen[i] = !exclude_.match(name, parameter) && included;
    }
    return chosen;
  }

  void require_all_used() const {
    include_.require_all_used("--include");
    exclude_.require_all_used("--exclude");
  }

 private:
  Patterns include_;
  Patterns exclude_;
  bool all_;
};

}  // namespace

Pairing pair_up(const Catalog& left, const Catalog& right, const DiffOptions& options) {
  Selecting selecting(options);
  const std::vector<bool> lefts = selecting.chosen(left);
  const std::vector<bool> rights = selecting.chosen(right);
  selecting.require_all_used();

  std::unordered_map<std::string_view, std::size_t> named;
  named.reserve(right.tensors.size());
  for (std::size_t r = 0; r < rights.size(); ++r) named.emplace(right.tensors[r].name, r);
  Pairing pairing;
  std::vector<bool> met(rights.size());
  // A name may be a state on one side alone, and so be wanted on that side alone.
  for (std::size_t l = 0; l < lefts.size(); ++l) {
    const auto found = named.find(left.tensors[l].name);
    const bool both = found != named.end();
    if (both) met[found->second] = true;
    if (!lefts[l] && !(both && rights[found->second])) {
      ++pairing.left_out;
    } else if (both) {
      pairing.pairs.push_back({l, found->second});
    } else {
      pairing.only_left.push_back(l);
    }
  }
  for (std::size_t r = 0; r < rights.size(); ++r) {
    if (met[r]) continue;
    if (rights[r]) {
      pairing.only_right.push_back(r);
    } else {
      ++pairing.left_out;
    }
  }
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
