#include "remesh/execute/selection.hpp"

#include <algorithm>
#include <array>
#include <fnmatch.h>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/schema/states.hpp"

namespace remesh {
namespace {

constexpr std::array<std::string_view, 4> training_files{"trainer_state.json", "training_args.bin",
                                                         "scheduler.pt", "scaler.pt"};

// Patterns, and which of them matched anything so far.
class Globs {
 public:
  explicit Globs(const std::vector<std::string>& patterns)
      : patterns_(patterns), used_(patterns.size(), false) {}

  bool empty() const noexcept { return patterns_.empty(); }

  // Every pattern is tried, so that none is called unused because another one came first.
  bool match(const std::string& name, const std::string* parameter) {
    bool any = false;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      const char* const pattern = patterns_[i].c_str();
      const bool matches = fnmatch(pattern, name.c_str(), 0) == 0 ||
                           (parameter && fnmatch(pattern, parameter->c_str(), 0) == 0);
      used_[i] = used_[i] || matches;
      any = any || matches;
    }
    return any;
  }

  void require_all_used(const char* flag, const std::string& source_name) const {
    const auto unused = std::ranges::find(used_, false);
    if (unused == used_.end()) return;
    throw Error(Errc::invalid_argument,
                fmt::format("cannot use `{} '{}'`: no tensor has a name that matches it; "
                            "`remesh inspect {} '*'` lists them",
                            flag, patterns_[static_cast<std::size_t>(unused - used_.begin())],
                            source_name));
  }

 private:
  const std::vector<std::string>& patterns_;
  std::vector<bool> used_;
};

// The numbers of the tensors that stay.
std::vector<std::size_t> kept_tensors(const Selection& selection, const Catalog& catalog,
                                      const std::vector<std::int64_t>& parameters, Left& left) {
  Globs include(selection.include);
  Globs exclude(selection.exclude);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const TensorDesc& tensor = catalog.tensors[i];
    const bool is_state = parameters[i] >= 0;
    const std::string* parameter =
        is_state ? &catalog.tensors[static_cast<std::size_t>(parameters[i])].name : nullptr;
    const bool included = include.match(tensor.name, parameter) || include.empty();
    const bool excluded = exclude.match(tensor.name, parameter);
    if (included && !excluded && !(selection.weights_only && is_state)) {
      kept.push_back(i);
    } else {
      const char* const reason = excluded    ? "--exclude"
                                 : !included ? "--include"
                                             : "--weights-only";
      left.tensors.push_back({tensor.name, reason});
      left.bytes += num_bytes(tensor);
    }
  }
  include.require_all_used("--include", selection.source_name);
  exclude.require_all_used("--exclude", selection.source_name);
  return kept;
}

void keep(const std::vector<std::size_t>& kept, Catalog& catalog) {
  const Catalog whole = catalog;
  catalog.tensors.clear();
  catalog.digests.clear();
  catalog.packaging.file_of.clear();
  std::vector<Placed> placed;
  for (const std::size_t i : kept) {
    catalog.tensors.push_back(whole.tensors[i]);
    if (!whole.packaging.empty()) {
      catalog.packaging.file_of.push_back(whole.packaging.file_of[i]);
    }
    if (!whole.layout.placed().empty()) placed.push_back(whole.layout.placed()[i]);
  }
  // A mesh must suit the placements of a layout, so those that nobody has any more go.
  constexpr auto unused = ~std::uint32_t{0};
  std::vector<std::uint32_t> new_number(whole.layout.placements().size(), unused);
  std::vector<Placement> placements;
  for (Placed& tensor : placed) {
    std::uint32_t& number = new_number[tensor.placement];
    if (number == unused) {
      number = static_cast<std::uint32_t>(placements.size());
      placements.push_back(whole.layout.placements()[tensor.placement]);
    }
    tensor.placement = number;
  }
  catalog.layout =
      Layout(whole.layout.mesh(), std::move(placements), std::move(placed), whole.layout.stages());
}

void cast_parameters(DType to, Catalog& catalog, Left& left) {
  const std::vector<std::int64_t> parameters = parameters_of(catalog.tensors);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    DType& dtype = catalog.tensors[i].dtype;
    if (parameters[i] >= 0 || dtype == to) continue;
    if (!can_cast(dtype, to)) {
      ++left.uncast_tensors;
      continue;
    }
    dtype = to;
    ++left.cast_tensors;
  }
  if (left.cast_tensors == 0) return;
  catalog.packaging.index_text.clear();  // they name the bytes of all tensors
  catalog.packaging.optimizer_index_text.clear();
}

}  // namespace

Left apply(const Selection& selection, Catalog& catalog) {
  Left left;
  if (selection.is_all()) return left;
  if (selection.dtype && !can_cast(DType::f32, *selection.dtype)) {
    throw Error(Errc::unsupported,
                fmt::format("cannot cast to {}: values can become f64, f32, f16 or bf16",
                            to_string(*selection.dtype)));
  }
  const std::vector<std::int64_t> parameters = parameters_of(catalog.tensors);
  const std::vector<std::size_t> kept = kept_tensors(selection, catalog, parameters, left);
  if (std::ranges::none_of(kept, [&](std::size_t i) { return parameters[i] < 0; })) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot leave out every parameter: of {} tensors {} would be left, and "
                            "states of an optimizer are nothing without their parameters",
                            catalog.tensors.size(), kept.size()));
  }
  keep(kept, catalog);
  if (selection.dtype) cast_parameters(*selection.dtype, catalog, left);
  StrictFindings findings;
  check_states(catalog.tensors, findings);
  if (selection.weights_only) {
    std::erase_if(catalog.side, [&](const SideFile& side) {
      if (!is_training_file(side.name)) return false;
      left.side.push_back({side.name, "--weights-only"});
      return true;
    });
  }
  return left;
}

bool is_training_file(std::string_view name) noexcept {
  return std::ranges::find(training_files, name) != training_files.end();
}

}  // namespace remesh
