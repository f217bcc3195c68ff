#include "diff_report.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/core/budget.hpp"
#include "remesh/core/dtype.hpp"
#include "text.hpp"

namespace remesh {
namespace {

const TensorDesc& left_of(const Differences& all, const TensorDiff& tensor) {
  return all.left.reader.catalog().tensors[tensor.left];
}

const TensorDesc& right_of(const Differences& all, const TensorDiff& tensor) {
  return all.right.reader.catalog().tensors[tensor.right];
}

std::string kind_text(const TensorDesc& desc) {
  return fmt::format("{} {}", to_string(desc.dtype), format_shape(desc.extent));
}

std::string kind_text(const TensorDesc& left, const TensorDesc& right) {
  const std::string kind = kind_text(left);
  const std::string other = kind_text(right);
  return kind == other ? kind : fmt::format("{} against {}", kind, other);
}

std::string ulps_text(std::uint64_t ulps) {
  return fmt::format("{} {}", ulps, ulps == 1 ? "ulp" : "ulps");
}

std::string bits_text(DType dtype, std::uint64_t bits) {
  return fmt::format("0x{:0{}x}", bits, (remesh::bits(dtype) + 3) / 4);
}

std::string element_text(DType dtype, const std::string& value, std::uint64_t bits) {
  const std::string hex = bits_text(dtype, bits);
  return value.empty() ? hex : fmt::format("{} ({})", value, hex);
}

// How far apart it is at most, in one figure.
std::string worst_text(const TensorDiff& tensor) {
  if (tensor.not_finite > 0) return "max unknown";
  if (tensor.histogram.empty()) return {};
  if (tensor.max_ulps) return "max " + ulps_text(*tensor.max_ulps);
  if (tensor.max_difference) return fmt::format("max {}", *tensor.max_difference);
  return {};
}

std::vector<std::string> row_of(const Differences& all, const TensorDiff& tensor,
                                const Output& out) {
  const TensorDesc& left = left_of(all, tensor);
  const TensorDesc& right = right_of(all, tensor);
  const std::string name = escaped(left.name);
  const std::string kind = kind_text(left, right);
  if (tensor.likeness == Likeness::not_compared) return {out.bad("!"), name, kind, "not compared"};
  const std::string sign = tensor.likeness == Likeness::within ? out.warned("~") : out.bad("*");
  if (tensor.differing == 0) return {sign, name, kind, "the same values"};
  return {sign, name, kind, fmt::format("{} of {} differ", tensor.differing, tensor.elements),
          worst_text(tensor)};
}

// "0: 1, 1: 20, 2-3: 4".
std::string histogram_text(const TensorDiff& tensor) {
  std::vector<std::string> bins;
  for (std::size_t k = 0; k < tensor.histogram.size(); ++k) {
    if (tensor.histogram[k] == 0) continue;
    const std::uint64_t from = k == 0 ? 0 : std::uint64_t{1} << (k - 1);
    const std::uint64_t to = k == 0 ? 0 : from + (from - 1);
    bins.push_back(from == to ? fmt::format("{}: {}", from, tensor.histogram[k])
                              : fmt::format("{}-{}: {}", from, to, tensor.histogram[k]));
  }
  return joined(bins);
}

std::string figure(std::string_view name, const std::optional<double>& value) {
  return value ? fmt::format("{} {:.6g}", name, *value) : std::string();
}

void add_if_any(std::vector<std::string>& parts, std::string part) {
  if (!part.empty()) parts.push_back(std::move(part));
}

// Of cosines only what they lack to 1 can be told apart.
std::string cosine_text(const TensorDiff& tensor) {
  if (!tensor.cosine) return {};
  return *tensor.cosine > 0.99 ? fmt::format("cosine 1 - {:.3g}", 1 - *tensor.cosine)
                               : fmt::format("cosine {:.6g}", *tensor.cosine);
}

void print_figures(const TensorDiff& tensor, Output& out) {
  std::vector<std::string> parts;
  if (tensor.not_finite > 0) {
    parts.push_back(fmt::format("no figures: {} NaN or infinite",
                                tensor.not_finite == 1
                                    ? "1 element is"
                                    : fmt::format("{} elements are", tensor.not_finite)));
  }
  add_if_any(parts, figure("|difference| max", tensor.max_absolute));
  const char* const mean = tensor.max_absolute ? "mean" : "mean |difference|";
  add_if_any(parts, figure(mean, tensor.mean_absolute));
  add_if_any(parts, figure("relative L2", tensor.relative_l2));
  add_if_any(parts, cosine_text(tensor));
  if (tensor.nans > 0) parts.push_back(fmt::format("NaN on one side {}", tensor.nans));
  if (tensor.infinite > 0) parts.push_back(fmt::format("infinite on one side {}", tensor.infinite));
  if (!parts.empty()) out.detail("       " + joined(parts));
  const std::string histogram = histogram_text(tensor);
  if (histogram.empty()) return;
  out.detail(
      fmt::format("       {}  {}", tensor.max_difference ? "differences" : "ulps", histogram));
}

void print_details(const Differences& all, const TensorDiff& tensor, Output& out) {
  if (!tensor.first) return;
  const ElementPair& first = *tensor.first;
  out.detail(fmt::format("       first at [{}]: {} against {}", fmt::join(first.index, ", "),
                         element_text(left_of(all, tensor).dtype, first.left, first.left_bits),
                         element_text(right_of(all, tensor).dtype, first.right, first.right_bits)));
  print_figures(tensor, out);
}

std::string side_text(const DiffSide& side) {
  const Catalog& catalog = side.reader.catalog();
  return fmt::format("{} ({}, {})", escaped(side.path), catalog.format,
                     counted(std::ssize(catalog.tensors), "tensor"));
}

std::string verdict_word(const Differences& all, const Output& out) {
  const std::string_view status = status_of(all);
  if (status == "different") return out.bad("DIFFERENT");
  if (status == "ignored") return out.warned("different, which is ignored");
  return out.good(status == "within" ? "within the tolerance" : "equal");
}

void print_head(const Differences& all, Output& out) {
  const Diff& diff = all.diff;
  out.line(fmt::format("{}  against  {}", describe(all.left.reader.catalog().layout.mesh()),
                       describe(all.right.reader.catalog().layout.mesh())));
  out.line(fmt::format("{}  {}  against  {}  {}", verdict_word(all, out), side_text(all.left),
                       side_text(all.right), format_seconds(all.seconds)));
  std::vector<std::string> counts{fmt::format("= {} equal", diff.count(Likeness::equal))};
  counts.reserve(6);
  if (all.tolerance.any()) {
    counts.push_back(fmt::format("~ {} within the tolerance", diff.count(Likeness::within)));
  }
  counts.push_back(fmt::format("* {} different", diff.count(Likeness::different)));
  if (const auto n = diff.count(Likeness::not_compared); n > 0) {
    counts.push_back(fmt::format("! {} not compared", n));
  }
  counts.push_back(fmt::format("- {} only left", diff.only_left.size()));
  counts.push_back(fmt::format("+ {} only right", diff.only_right.size()));
  out.line(fmt::format("  {}", fmt::join(counts, "   ")));
  if (diff.left_out > 0) {
    out.detail(fmt::format("  left out: {}", counted(diff.left_out, "tensor")));
  }
}

// The tensors that are not equal, at most so many.
std::vector<const TensorDiff*> listed_of(const Diff& diff, std::size_t most) {
  std::vector<const TensorDiff*> listed;
  for (const TensorDiff& tensor : diff.tensors) {
    if (listed.size() == most) break;
    if (tensor.likeness != Likeness::equal) listed.push_back(&tensor);
  }
  return listed;
}

std::size_t num_unequal(const Diff& diff) {
  return diff.tensors.size() - static_cast<std::size_t>(diff.count(Likeness::equal));
}

// How much further the list would go on.
void print_rest(std::size_t all, std::size_t most, std::string_view what, Output& out) {
  if (all <= most) return;
  out.line(fmt::format("  ... and {} more {}; `--limit 0` lists them all", all - most, what));
}

void print_tensors(const Differences& all, std::size_t most, Output& out) {
  const std::vector<const TensorDiff*> listed = listed_of(all.diff, most);
  Table table;
  for (const TensorDiff* tensor : listed) table.add(row_of(all, *tensor, out));
  const std::vector<std::string> lines = table.lines("  ");
  for (std::size_t i = 0; i < listed.size(); ++i) {
    out.line(lines[i]);
    print_details(all, *listed[i], out);
  }
  print_rest(num_unequal(all.diff), most, "that are not equal", out);
}

void print_single(std::string_view sign, const DiffSide& side,
                  const std::vector<std::size_t>& numbers, std::size_t most, Output& out) {
  Table table;
  for (std::size_t i = 0; i < std::min(most, numbers.size()); ++i) {
    const TensorDesc& desc = side.reader.catalog().tensors[numbers[i]];
    table.add({std::string(sign), escaped(desc.name), kind_text(desc)});
  }
  for (const std::string& line : table.lines("  ")) out.line(line);
  print_rest(numbers.size(), most, sign == "-" ? "only left" : "only right", out);
}

template <typename Figure>
const TensorDiff* worst_by(const Diff& diff, std::optional<Figure> TensorDiff::*figure) {
  const TensorDiff* worst = nullptr;
  for (const TensorDiff& tensor : diff.tensors) {
    const auto& value = tensor.*figure;
    if (value && *value > (worst == nullptr ? Figure{} : *(worst->*figure))) {
      worst = &tensor;
    }
  }
  return worst;
}

// "3 NaN or infinite of 'w'": nothing is further away.
std::string most_infinite(const Differences& all) {
  const auto count = [](const TensorDiff& tensor) { return tensor.nans + tensor.infinite; };
  const auto worst = std::ranges::max_element(all.diff.tensors, {}, count);
  if (count(*worst) == 0) return {};
  return fmt::format("{} NaN or infinite of '{}'", count(*worst),
                     escaped(left_of(all, *worst).name));
}

// Where to look first, in a list that is in the order of names.
void print_worst(const Differences& all, Output& out) {
  if (num_unequal(all.diff) < 2) return;
  std::vector<std::string> parts;
  add_if_any(parts, most_infinite(all));
  if (const TensorDiff* worst = worst_by(all.diff, &TensorDiff::relative_l2)) {
    parts.push_back(fmt::format("relative L2 {:.6g} of '{}'", *worst->relative_l2,
                                escaped(left_of(all, *worst).name)));
  }
  if (const TensorDiff* worst = worst_by(all.diff, &TensorDiff::max_ulps)) {
    parts.push_back(
        fmt::format("{} of '{}'", ulps_text(*worst->max_ulps), escaped(left_of(all, *worst).name)));
  }
  if (!parts.empty()) out.detail("  largest: " + joined(parts));
}

// Whether a tolerance of 0 would call them the same.
bool is_dtype_all(const Differences& all) {
  const Diff& diff = all.diff;
  return !all.tolerance.any() && diff.count(Likeness::different) > 0 &&
         std::ranges::none_of(diff.tensors, [](const TensorDiff& tensor) {
           return tensor.likeness == Likeness::not_compared || tensor.differing > 0;
         });
}

Json side_json(const DiffSide& side) {
  const Catalog& catalog = side.reader.catalog();
  return {{"path", side.path},
          {"format", catalog.format},
          {"mesh", json_of(catalog.layout.mesh())},
          {"tensors", catalog.tensors.size()}};
}

Json kind_json(const TensorDesc& desc) {
  return {{"dtype", to_string(desc.dtype)}, {"shape", shape_json(desc.extent)}};
}

template <typename Figure>
Json figure_json(const std::optional<Figure>& figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

Json first_json(const Differences& all, const TensorDiff& tensor) {
  if (!tensor.first) return nullptr;
  const ElementPair& first = *tensor.first;
  return {{"index", first.index},
          {"left", text_or_null(first.left)},
          {"right", text_or_null(first.right)},
          {"left_bits", bits_text(left_of(all, tensor).dtype, first.left_bits)},
          {"right_bits", bits_text(right_of(all, tensor).dtype, first.right_bits)}};
}

Json tensor_json(const Differences& all, const TensorDiff& tensor) {
  return {{"name", left_of(all, tensor).name},
          {"likeness", to_string(tensor.likeness)},
          {"left", kind_json(left_of(all, tensor))},
          {"right", kind_json(right_of(all, tensor))},
          {"elements", tensor.elements},
          {"differing", tensor.differing},
          {"beyond_tolerance", tensor.beyond},
          {"nan", tensor.nans},
          {"infinite", tensor.infinite},
          {"not_finite", tensor.not_finite},
          {"max_ulps", figure_json(tensor.max_ulps)},
          {"max_difference", figure_json(tensor.max_difference)},
          {"max_absolute", figure_json(tensor.max_absolute)},
          {"mean_absolute", figure_json(tensor.mean_absolute)},
          {"relative_l2", figure_json(tensor.relative_l2)},
          {"cosine", figure_json(tensor.cosine)},
          {"histogram", tensor.histogram},
          {"first", first_json(all, tensor)}};
}

Json single_json(const DiffSide& side, const std::vector<std::size_t>& numbers, std::size_t most) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(most, numbers.size()); ++i) {
    const TensorDesc& desc = side.reader.catalog().tensors[numbers[i]];
    Json one{{"name", desc.name}};
    one.update(kind_json(desc));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::string_view status_of(const Differences& differences) {
  const Diff& diff = differences.diff;
  if (differences.failed) return "different";
  if (!diff.same()) return "ignored";
  return diff.count(Likeness::within) > 0 ? "within" : "equal";
}

void print_differences(const Differences& differences, std::size_t most, Output& out) {
  print_head(differences, out);
  const Diff& diff = differences.diff;
  if (diff.tensors.empty()) out.line("  no tensor has the same name on both sides");
  print_tensors(differences, most, out);
  print_single("-", differences.left, diff.only_left, most, out);
  print_single("+", differences.right, diff.only_right, most, out);
  print_worst(differences, out);
  if (is_dtype_all(differences)) {
    out.line(
        "  hint: the values are the same, only dtypes are not; `--atol 0` asks for values alone");
  }
  if (!diff.hint.empty()) out.line(fmt::format("  hint: {}", escaped(diff.hint)));
  if (differences.failed && !differences.next_step.empty()) {
    out.detail(fmt::format("  hint: {}", escaped(differences.next_step)));
  }
}

Json differences_json(const Differences& differences, std::size_t most) {
  const Diff& diff = differences.diff;
  const Tolerance& tolerance = differences.tolerance;
  Json document = new_document("diff");
  document["status"] = status_of(differences);
  document["left"] = side_json(differences.left);
  document["right"] = side_json(differences.right);
  document["tolerance"] = {{"atol", figure_json(tolerance.absolute)},
                           {"rtol", figure_json(tolerance.relative)},
                           {"max_ulps", figure_json(tolerance.ulps)}};
  document["counts"] = {{"equal", diff.count(Likeness::equal)},
                        {"within", diff.count(Likeness::within)},
                        {"different", diff.count(Likeness::different)},
                        {"not_compared", diff.count(Likeness::not_compared)},
                        {"only_left", diff.only_left.size()},
                        {"only_right", diff.only_right.size()},
                        {"left_out", diff.left_out},
                        {"ignored", differences.ignored}};
  document["bytes_read"] = diff.bytes_read;
  document["seconds"] = differences.seconds;
  Json tensors = Json::array();
  for (const TensorDiff* tensor : listed_of(diff, most)) {
    tensors.push_back(tensor_json(differences, *tensor));
  }
  document["tensors"] = std::move(tensors);
  document["only_left"] = single_json(differences.left, diff.only_left, most);
  document["only_right"] = single_json(differences.right, diff.only_right, most);
  document["hint"] = text_or_null(diff.hint);
  document["next_step"] = text_or_null(differences.next_step);
  return document;
}

}  // namespace remesh
