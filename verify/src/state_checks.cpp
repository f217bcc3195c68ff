#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "number_checks.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/trainer_step.hpp"

namespace remesh::detail {
namespace {

constexpr std::string_view trainer_state = "trainer_state.json";
constexpr std::int64_t most_state_bytes = 100'000'000;

// A step, and who says it: a tensor, or a file of the source.
struct SaidStep {
  std::int64_t step = 0;
  std::string where;
  std::string tensor;
};

template <typename T>
std::optional<std::int64_t> whole(std::span<const std::byte, 8> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  const auto real = static_cast<double>(value);
  constexpr double exact = 9007199254740992.0;  // 2^53: beyond it, a double is no count
  if (!(std::abs(real) <= exact) || real != std::floor(real)) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::optional<std::int64_t> step_of(DType dtype, std::span<const std::byte, 8> bytes) {
  switch (dtype) {
    case DType::f32:
      return whole<float>(bytes);
    case DType::f64:
      return whole<double>(bytes);
    case DType::i32:
      return whole<std::int32_t>(bytes);
    case DType::i64:
      return whole<std::int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

std::vector<SaidStep> steps_of_files(const Catalog& catalog) {
  std::vector<SaidStep> said;
  for (const Packaging::File& file : catalog.packaging.files) {
    for (const auto& [key, value] : file.metadata) {
      if (key != "step") continue;
      SaidStep step{.where = fmt::format("'{}'", file.name)};
      const char* const end = value.data() + value.size();
      const auto parsed = std::from_chars(value.data(), end, step.step);
      if (parsed.ec == std::errc() && parsed.ptr == end) said.push_back(std::move(step));
    }
  }
  return said;
}

// A side file that is damaged, or cannot be read, is told of elsewhere.
std::optional<std::int64_t> step_of_trainer(const Reader& reader) {
  const auto& all = reader.catalog().side;
  const auto side = std::ranges::find(all, trainer_state, &SideFile::name);
  if (side == all.end() || side->size_bytes > most_state_bytes) return std::nullopt;
  try {
    const std::vector<std::byte> bytes = reader.side(*side);
    return step_of_trainer_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    if (error.code() == Errc::stopped) throw;
    return std::nullopt;
  }
}

std::vector<SaidStep> said_steps(const ReadNumbers& read) {
  std::vector<SaidStep> said = steps_of_files(read.reader.catalog());
  if (const auto step = step_of_trainer(read.reader)) {
    said.push_back({*step, fmt::format("'{}'", trainer_state), {}});
  }
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    const TensorDesc& desc = read.desc(tensor);
    const bool is_step = read.state(tensor) == "step" && desc.extent.num_elements() == 1;
    std::array<std::byte, 8> bytes{};
    if (!read.sound[tensor] || !is_step || num_bytes(desc) > std::ssize(bytes)) continue;
    read.reader.read(tensor, desc.extent,
                     std::span(bytes).first(static_cast<std::size_t>(num_bytes(desc))), {});
    if (const auto step = step_of(desc.dtype, bytes)) {
      said.push_back({*step, fmt::format("'{}'", desc.name), desc.name});
    }
  }
  return said;
}

// The step that most say; of several such the least.
std::int64_t usual_step(const std::vector<SaidStep>& said) {
  std::map<std::int64_t, std::size_t> times;
  for (const SaidStep& step : said) ++times[step.step];
  return std::ranges::max_element(times, {}, [](const auto& each) { return each.second; })->first;
}

void check_steps(const std::vector<SaidStep>& said, std::vector<Finding>& findings) {
  const bool known = std::ranges::find(findings, "RM502", &Finding::id) != findings.end();
  if (said.empty() || known) return;
  const std::int64_t usual = usual_step(said);
  const auto is_usual = [&](const SaidStep& step) { return step.step == usual; };
  const auto other = std::ranges::find_if_not(said, is_usual);
  if (other == said.end()) return;
  Finding finding;
  finding.id = "RM502";
  finding.tensor = other->tensor;
  finding.found = std::to_string(other->step);
  finding.expected = std::to_string(usual);
  finding.message = fmt::format(
      "{} is of step {}, but {} is of step {}; {} of {} that say a step are of another than {}; "
      "two "
      "saves were mixed",
      other->where, other->step, std::ranges::find_if(said, is_usual)->where, usual,
      std::ranges::count_if(said, [&](const SaidStep& step) { return !is_usual(step); }),
      said.size(), usual);
  finding.next_step = "use another save";
  findings.push_back(std::move(finding));
}

// Parameters with both moments, and those of them of which neither has a number but zero.
struct Moments {
  std::vector<std::size_t> parameters;
  std::vector<std::size_t> zeroed;
};

Moments moments_of(const ReadNumbers& read) {
  struct Pair {
    int moments = 0;
    int zeroed = 0;
  };
  std::map<std::size_t, Pair> pairs;
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    const std::string_view state = read.state(tensor);
    const bool is_moment = state == "exp_avg" || state == "exp_avg_sq";
    if (!is_moment || !read.sound[tensor] || read.numbers.of(tensor).elements == 0) continue;
    Pair& pair = pairs[static_cast<std::size_t>(read.parameters[tensor])];
    ++pair.moments;
    pair.zeroed += read.all_zero(tensor) ? 1 : 0;
  }
  Moments moments;
  moments.parameters.reserve(pairs.size());
  for (const auto& [parameter, pair] : pairs) {
    if (pair.moments != 2) continue;
    moments.parameters.push_back(parameter);
    if (pair.zeroed == 2) moments.zeroed.push_back(parameter);
  }
  return moments;
}

std::string when(const std::optional<std::int64_t>& step) {
  return step ? fmt::format("at step {}", *step) : std::string("at a step that nobody says");
}

// At step 0 moments are zero. Some may stay so: those of experts that no token was sent to.
void check_moments(const ReadNumbers& read, const std::optional<std::int64_t>& step,
                   std::vector<Finding>& findings) {
  const Moments moments = moments_of(read);
  if (moments.zeroed.empty() || (step && *step <= 0)) return;
  const bool all = moments.zeroed.size() == moments.parameters.size();
  Finding finding;
  finding.id = "RM503";
  finding.severity = all && step ? Severity::error : Severity::note;
  name_tensors(finding, read, moments.zeroed);
  finding.found = fmt::format("{} of {}", moments.zeroed.size(), moments.parameters.size());
  finding.expected = all ? "moments that are not zero" : "none, or parameters that get no gradient";
  finding.message = fmt::format(
      "exp_avg and exp_avg_sq are all zero for {} of {} parameters {}: {}; {}",
      moments.zeroed.size(), moments.parameters.size(), when(step), listed(read, moments.zeroed),
      all ? "the optimizer was not loaded before it was saved, or never made a step"
          : "no gradient reached them, or they were added later");
  if (all) finding.next_step = "use the last save before the run was resumed";
  findings.push_back(std::move(finding));
}

void check_squares(const ReadNumbers& read, std::vector<Finding>& findings) {
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    const std::string_view state = read.state(tensor);
    const NumberCounts& counts = read.numbers.of(tensor);
    const bool of_squares = state == "exp_avg_sq" || state == "max_exp_avg_sq";
    if (!of_squares || !read.sound[tensor] || counts.negatives == 0) continue;
    Finding finding = about_element("RM505", Severity::error, read, tensor, counts.first_negative);
    finding.found = fmt::format("{} below zero", counts.negatives);
    finding.expected = "none";
    finding.message = fmt::format(
        "{}: {} of {} elements are below zero, the first at {}; a mean of squares is not, and the "
        "next step takes its root",
        to_string(read.desc(tensor)), counts.negatives, counts.elements, to_string(*finding.box));
    finding.next_step = "use another copy of this save, or another save";
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void check_named_step(const Reader& reader, std::int64_t named, Findings& findings) {
  const auto step = step_of_trainer(reader);
  if (!step || *step == named) return;
  Finding finding;
  finding.id = "RM502";
  finding.severity = Severity::warn;
  finding.file = trainer_state;
  finding.found = fmt::format("step {}", *step);
  finding.expected = fmt::format("step {}", named);
  finding.message = fmt::format(
      "the name of its directory says step {}, but '{}' says step {}; it is a copy of another "
      "save, "
      "or was renamed",
      named, trainer_state, *step);
  finding.next_step = fmt::format("go on from step {}, or from another save", *step);
  findings.add(std::move(finding));
}

std::optional<std::int64_t> said_step(const ReadNumbers& read) {
  const std::vector<SaidStep> said = said_steps(read);
  if (said.empty()) return std::nullopt;
  return usual_step(said);
}

void check_optimizer_states(const ReadNumbers& read, std::vector<Finding>& findings) {
  const std::vector<SaidStep> said = said_steps(read);
  check_steps(said, findings);
  std::optional<std::int64_t> step;
  if (!said.empty()) step = std::ranges::max(said, {}, &SaidStep::step).step;
  check_moments(read, step, findings);
  check_squares(read, findings);
}

}  // namespace remesh::detail
