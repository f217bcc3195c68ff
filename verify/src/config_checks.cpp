#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "number_checks.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/legality.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/models/tied.hpp"

namespace remesh::detail {
namespace {

// How embeddings are called, and the outputs that may be tied to them, by the ends of their names.
constexpr std::array<std::string_view, 3> embeddings{"embed_tokens.weight", "wte.weight",
                                                     "word_embeddings.weight"};
constexpr std::array<std::string_view, 2> outputs{"lm_head.weight", "output_layer.weight"};

// What a weight's scale is called behind the weight's own name.
constexpr std::array<std::string_view, 2> scale_ends{"_scale_inv", "_scale"};

bool ends_as(std::string_view name, std::span<const std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// What says nothing about the checkpoint.
bool is_of_machine(Errc code) {
  return code == Errc::io || code == Errc::out_of_memory || code == Errc::stopped;
}

// Of a config.json that cannot be read nothing is known, and that is told.
std::optional<std::string> config_of(const Reader& reader, std::vector<Finding>& findings) {
  const auto& all = reader.catalog().side;
  const auto side = std::ranges::find(all, "config.json", &SideFile::name);
  if (side == all.end()) return std::nullopt;
  try {
    const std::vector<std::byte> bytes = reader.side(*side);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ties_embeddings(text);
    return text;
  } catch (const Error& error) {
    if (is_of_machine(error.code())) throw;
    Finding finding;
    finding.id = "RM210";
    finding.severity = Severity::warn;
    finding.file = side->name;
    finding.message = fmt::format(
        "{}; no framework loads the model with it, and what it would say of tensors, ties, the "
        "vocabulary and scales was not checked",
        error.what());
    findings.push_back(std::move(finding));
    return std::nullopt;
  }
}

std::vector<std::size_t> parameters_named(const ReadNumbers& read,
                                          std::span<const std::string_view> ends) {
  std::vector<std::size_t> found;
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    const bool is_parameter = read.parameters[tensor] < 0 && read.sound[tensor];
    if (is_parameter && ends_as(read.desc(tensor).name, ends)) found.push_back(tensor);
  }
  return found;
}

void check_tied(const ReadNumbers& read, const std::string& config,
                std::vector<Finding>& findings) {
  if (!ties_embeddings(config)) return;
  const auto inputs = parameters_named(read, embeddings);
  const auto heads = parameters_named(read, outputs);
  // Of several, nobody says which belong together.
  if (inputs.size() != 1 || heads.size() != 1) return;
  const std::size_t input = inputs.front();
  const std::size_t head = heads.front();
  const TensorDesc& left = read.desc(input);
  const TensorDesc& right = read.desc(head);
  const bool same = left.dtype == right.dtype && left.extent == right.extent &&
                    read.digests[input] == read.digests[head];
  if (same) return;
  Finding finding = about_tensor("RM308", Severity::error, read, head);
  finding.found = to_string(read.digests[head]);
  finding.expected = to_string(read.digests[input]);
  finding.message = fmt::format(
      "{}: it hashes to {}, but {}, to which config.json ties it, to {}; one of the copies is "
      "stale",
      to_string(right), finding.found, to_string(left), finding.expected);
  finding.next_step = "leave the copy out that the model does not read, most often this one";
  findings.push_back(std::move(finding));
}

// The tensors that the map of this model asks for. Empty where no map fits, or it cannot tell.
std::unordered_set<std::string> needed_by_map(const std::string& config) {
  std::unordered_set<std::string> names;
  try {
    const ModelMap* const map = shipped_map(config);
    if (map == nullptr) return names;
    for (TensorDesc& desc : map->needed_tensors(config, DType::f8_e4m3)) {
      names.insert(std::move(desc.name));
    }
  } catch (const Error& error) {
    if (is_of_machine(error.code())) throw;
    names.clear();
  }
  return names;
}

std::vector<std::size_t> weights_without_scale(const ReadNumbers& read) {
  std::unordered_set<std::string_view> names;
  for (const TensorDesc& desc : read.reader.catalog().tensors) names.insert(desc.name);
  std::vector<std::size_t> found;
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    const TensorDesc& desc = read.desc(tensor);
    const bool is_fp8 = desc.dtype == DType::f8_e4m3 || desc.dtype == DType::f8_e5m2;
    if (!is_fp8 || read.parameters[tensor] >= 0 || !desc.name.ends_with(".weight")) continue;
    const bool has_scale = std::ranges::any_of(scale_ends, [&](std::string_view end) {
      return names.contains(fmt::format("{}{}", desc.name, end));
    });
    if (!has_scale) found.push_back(tensor);
  }
  return found;
}

// A weight may be cast to fp8 as it is, if it is not too small: only a map that asks for its scale
// makes it an error.
void check_scales(const ReadNumbers& read, const std::optional<std::string>& config,
                  std::vector<Finding>& findings) {
  const std::vector<std::size_t> without = weights_without_scale(read);
  if (without.empty()) return;
  const auto needed = config ? needed_by_map(*config) : std::unordered_set<std::string>();
  for (const std::size_t tensor : without) {
    const TensorDesc& desc = read.desc(tensor);
    const std::string scale = fmt::format("{}{}", desc.name, scale_ends.front());
    const bool asked = needed.contains(scale);
    Finding finding = about_tensor("RM531", asked ? Severity::error : Severity::warn, read, tensor);
    finding.found = "no scale";
    finding.expected = fmt::format("'{}'", scale);
    finding.message = fmt::format(
        "{}: there is no {} beside it{}; without their scale, weights are hundreds of times too "
        "large",
        to_string(desc), finding.expected,
        asked ? ", which this model has by its config.json" : ", nor a scale of another name");
    finding.next_step = "export again together with the scales";
    findings.push_back(std::move(finding));
  }
}

// More rows than a vocabulary has again are padding of what was padded, or of another vocabulary.
void check_vocabulary(const ReadNumbers& read, const std::string& config,
                      std::vector<Finding>& findings) {
  const std::optional<Index> vocabulary = model_sizes(config).vocabulary;
  if (!vocabulary) return;
  std::vector<std::size_t> tensors = parameters_named(read, embeddings);
  std::ranges::copy(parameters_named(read, outputs), std::back_inserter(tensors));
  for (const std::size_t tensor : tensors) {
    const TensorDesc& desc = read.desc(tensor);
    const Index rows = desc.extent.ndim() == 2 ? desc.extent[0].size() : 0;
    if (rows <= *vocabulary) continue;
    const Index more = rows - *vocabulary;
    const bool doubled = more >= *vocabulary;
    Finding finding =
        about_tensor("RM541", doubled ? Severity::error : Severity::warn, read, tensor);
    (*finding.box)[0] = {*vocabulary, rows};
    finding.found = fmt::format("{} rows", rows);
    finding.expected = fmt::format("{} rows", *vocabulary);
    finding.message =
        fmt::format("{}: it has {}, but the vocabulary of config.json has {}; {} are padding{}",
                    to_string(desc), finding.found, finding.expected, more,
                    doubled ? ", more than the vocabulary itself; it was padded twice" : "");
    finding.next_step = "cut the rows after the vocabulary, or say their number in config.json";
    findings.push_back(std::move(finding));
  }
}

}  // namespace

bool is_embedding_or_output(std::string_view name) {
  return ends_as(name, embeddings) || ends_as(name, outputs);
}

void check_against_config(const ReadNumbers& read, std::vector<Finding>& findings) {
  const std::optional<std::string> config = config_of(read.reader, findings);
  check_scales(read, config, findings);
  if (!config) return;
  check_tied(read, *config, findings);
  check_vocabulary(read, *config, findings);
  check_model(read, *config, findings);
}

}  // namespace remesh::detail
