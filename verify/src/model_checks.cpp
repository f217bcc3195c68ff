#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "number_checks.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh.hpp"
#include "remesh/schema/states.hpp"

namespace remesh::detail {
namespace {

constexpr DType any_dtype = DType::bf16;

// The first number among the parts of a name: its layer, where it has one.
std::optional<Index> layer_of(std::string_view name) {
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view part = name.substr(0, dot);
    Index number = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == part.data() + part.size()) return number;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return std::nullopt;
}

bool is_placeholder(const TensorDesc& desc) {
  return desc.extent.ndim() == 1 && desc.extent.empty() && is_counted_float(desc.dtype);
}

// The tensors that a model must have and has not, or not so.
struct Misfits {
  std::vector<TensorDesc> missing;
  std::vector<std::pair<std::size_t, TensorDesc>> reshaped;  // a tensor, and what it should be
  Index layers_there = 0;
};

// More rows than the vocabulary are another finding's.
bool has_other_rows(const TensorDesc& desc, const TensorDesc& needed) {
  return desc.extent.ndim() == 2 && needed.extent.ndim() == 2 &&
         desc.extent[1] == needed.extent[1] && is_embedding_or_output(desc.name);
}

// "model.layers.0.self_attn" of "model.layers.0.self_attn.q_proj.weight".
std::string_view parent_of(std::string_view name) {
  for (int levels = 0; levels < 2; ++levels) {
    const std::size_t dot = name.rfind('.');
    name = name.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return name;
}

// Where tensors are that nobody asked for, others of the same parent may be parts of them: of q, k
// and v as one.
std::unordered_set<std::string_view> parents_of_unknown(const ReadNumbers& read,
                                                        std::span<const TensorDesc> needed) {
  std::unordered_set<std::string_view> known;
  for (const TensorDesc& desc : needed) known.insert(desc.name);
  std::unordered_set<std::string_view> parents;
  for (std::size_t k = 0; k < read.sound.size(); ++k) {
    const std::string_view name = read.desc(k).name;
    const bool is_parameter = read.parameters[k] < 0;
    if (is_parameter && !known.contains(name)) parents.insert(parent_of(name));
  }
  return parents;
}

Misfits misfits_of(const ReadNumbers& read, std::span<const TensorDesc> needed) {
  const auto unknown = parents_of_unknown(read, needed);
  std::unordered_map<std::string_view, std::size_t> numbers;
  const auto& all = read.reader.catalog().tensors;
  for (std::size_t k = 0; k < all.size(); ++k) numbers.emplace(all[k].name, k);
  Misfits misfits;
  for (const TensorDesc& wanted : needed) {
    const auto found = numbers.find(wanted.name);
    if (found == numbers.end()) {
      if (!unknown.contains(parent_of(wanted.name))) misfits.missing.push_back(wanted);
      continue;
    }
    const TensorDesc& desc = all[found->second];
    misfits.layers_there = std::max(misfits.layers_there, layer_of(wanted.name).value_or(-1) + 1);
    if (desc.extent == wanted.extent || is_placeholder(desc) || has_other_rows(desc, wanted)) {
      continue;
    }
    misfits.reshaped.emplace_back(found->second, wanted);
  }
  return misfits;
}

// Whether all that is missing are the layers behind those that are there.
bool lacks_last_layers(const Misfits& misfits) {
  return misfits.layers_there > 0 && !misfits.missing.empty() &&
         std::ranges::all_of(misfits.missing, [&](const TensorDesc& desc) {
           return layer_of(desc.name).value_or(-1) >= misfits.layers_there;
         });
}

void report_layers(const Misfits& misfits, std::vector<Finding>& findings) {
  Index layers = misfits.layers_there;
  for (const TensorDesc& desc : misfits.missing) {
    layers = std::max(layers, layer_of(desc.name).value_or(0) + 1);
  }
  Finding finding;
  finding.id = "RM305";
  finding.tensor = misfits.missing.front().name;
  for (const TensorDesc& desc : std::span(misfits.missing).subspan(1)) {
    finding.more_tensors.push_back(desc.name);
  }
  finding.found = fmt::format("{} layers", misfits.layers_there);
  finding.expected = fmt::format("{} layers", layers);
  finding.message = fmt::format(
      "layers 0 to {} are there, but config.json has {}; each stage of a pipeline numbered its own "
      "from 0, or the last stages were not saved",
      misfits.layers_there - 1, finding.expected);
  finding.next_step = "save again with global layer numbers";
  findings.push_back(std::move(finding));
}

// A part that somebody chose, or what is left of a model: nothing here tells which.
void report_part(const Misfits& misfits, std::size_t needed, std::vector<Finding>& findings) {
  Finding finding;
  finding.id = "RM302";
  finding.severity = Severity::warn;
  finding.tensor = misfits.missing.front().name;
  for (const TensorDesc& desc : std::span(misfits.missing).subspan(1)) {
    finding.more_tensors.push_back(desc.name);
  }
  finding.found = fmt::format("{} tensors", needed - misfits.missing.size());
  finding.expected = fmt::format("{} tensors", needed);
  finding.message =
      fmt::format("{} of {} tensors of the model that config.json describes are here; '{}' is not",
                  needed - misfits.missing.size(), needed, finding.tensor);
  finding.next_step =
      "if it was not meant to be a part, look for the others in the checkpoint from which this one "
      "was made";
  findings.push_back(std::move(finding));
}

void report_missing(const Misfits& misfits, std::vector<Finding>& findings) {
  for (const TensorDesc& desc : misfits.missing) {
    Finding finding;
    finding.id = "RM302";
    finding.tensor = desc.name;
    finding.expected = to_string(desc.extent);
    finding.message = fmt::format("'{}' is missing; a model with this config.json has it, {}",
                                  desc.name, finding.expected);
    finding.next_step = "look for it in the checkpoint from which this one was made";
    findings.push_back(std::move(finding));
  }
}

void report_reshaped(const ReadNumbers& read, const Misfits& misfits,
                     std::vector<Finding>& findings) {
  for (const auto& [tensor, wanted] : misfits.reshaped) {
    Finding finding = about_tensor("RM303", Severity::error, read, tensor);
    finding.found = to_string(read.desc(tensor).extent);
    finding.expected = to_string(wanted.extent);
    finding.message = fmt::format(
        "{}: by config.json it should be {}; the rest of it is missing, or it is of "
        "another model",
        to_string(read.desc(tensor)), finding.expected);
    finding.next_step = "look for the whole of it in the checkpoint from which this one was made";
    findings.push_back(std::move(finding));
  }
}

// What the map itself has against the parameters as they are. Which of its objections there are
// others may say better; here it counts that there is one.
bool is_refused(const ModelMap& map, const ReadNumbers& read, const std::string& config) {
  std::vector<TensorDesc> parameters;
  parameters.reserve(read.sound.size());
  for (std::size_t k = 0; k < read.sound.size(); ++k) {
    if (read.parameters[k] < 0) parameters.push_back(read.desc(k));
  }
  try {
    (void)map.place(parameters, config, Mesh({{"tp", 1}}));
    return false;
  } catch (const Error& error) {
    return error.id() == "RM302" || error.id() == "RM303" || error.id() == "RM310";
  }
}

// Then tensors are missing because of that, which was told.
bool lacks_files(std::span<const Finding> findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.severity == Severity::error && finding.id.starts_with("RM2");
  });
}

}  // namespace

void check_placeholders(std::span<const TensorDesc> tensors, Findings& findings) {
  if (std::ranges::none_of(tensors, is_placeholder)) return;
  const std::vector<std::int64_t> parameters = parameters_of(tensors);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const std::string_view name = tensors[k].name;
    const bool is_of_module = name.ends_with(".weight") || name.ends_with(".bias");
    if (parameters[k] >= 0 || !is_of_module || !is_placeholder(tensors[k])) continue;
    Finding finding;
    finding.id = "RM306";
    finding.tensor = tensors[k].name;
    finding.found = "shape [0]";
    finding.expected = "the parameter's elements";
    finding.message = fmt::format(
        "{}: it has no element; what ZeRO 3 leaves on a rank was saved in place of the parameter",
        to_string(tensors[k]));
    finding.next_step = "gather the parameters before they are saved";
    findings.add(std::move(finding));
  }
}

void check_model(const ReadNumbers& read, const std::string& config,
                 std::vector<Finding>& findings) {
  if (lacks_files(findings)) return;
  std::vector<TensorDesc> needed;
  try {
    const ModelMap* const map = shipped_map(config);
    if (map == nullptr || !is_refused(*map, read, config)) return;
    needed = map->needed_tensors(config, any_dtype);
  } catch (const Error& error) {
    if (error.code() == Errc::stopped || error.code() == Errc::out_of_memory) throw;
    return;  // a config.json that says too little
  }
  const Misfits misfits = misfits_of(read, needed);
  if (lacks_last_layers(misfits)) {
    report_layers(misfits, findings);
  } else if (2 * misfits.missing.size() > needed.size()) {
    report_part(misfits, needed.size(), findings);
  } else {
    report_missing(misfits, findings);
  }
  report_reshaped(read, misfits, findings);
}

}  // namespace remesh::detail
