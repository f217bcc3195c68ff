#include "number_checks.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/schema/states.hpp"

namespace remesh::detail {
namespace {

// Whether a finding says that bytes are not there, or not what they were.
bool is_of_bytes(const Finding& finding) {
  return finding.severity == Severity::error &&
         (finding.id.starts_with("RM2") || finding.id == "RM301" || finding.id == "RM304");
}

std::vector<bool> sound_tensors(const Reader& reader, std::span<const Finding> findings) {
  std::set<std::string_view> tensors;
  std::set<std::string_view> files;
  for (const Finding& finding : findings) {
    if (!is_of_bytes(finding)) continue;
    if (!finding.tensor.empty()) {
      tensors.insert(finding.tensor);
    } else if (!finding.file.empty()) {
      files.insert(finding.file);
    }
  }
  const Catalog& catalog = reader.catalog();
  const ExtentMap& map = reader.extents();
  std::vector<bool> sound(catalog.tensors.size());
  for (std::size_t k = 0; k < sound.size(); ++k) {
    sound[k] = !tensors.contains(catalog.tensors[k].name);
  }
  for (const Extent& extent : map.extents()) {
    if (files.contains(map.files()[extent.file].name)) sound[extent.tensor] = false;
  }
  return sound;
}

}  // namespace

std::string_view ReadNumbers::state(std::size_t tensor) const {
  return parameters[tensor] < 0 ? std::string_view() : parse_state_name(desc(tensor).name)->state;
}

bool ReadNumbers::all_zero(std::size_t tensor) const {
  const NumberCounts& counts = numbers.of(tensor);
  return counts.elements > 0 && counts.zeros == counts.elements;
}

ReadNumbers read_numbers(const Reader& reader, const Numbers& numbers,
                         std::span<const Digest> digests, std::span<const Finding> findings) {
  return {reader, numbers, digests, sound_tensors(reader, findings),
          parameters_of(reader.catalog().tensors)};
}

void check_numbers(const JudgeContext& context, const ReadNumbers& read,
                   std::vector<Finding>& findings) {
  check_values(read, findings);
  check_optimizer_states(read, findings);
  check_masters(context, read, findings);
  check_against_config(read, findings);
}

Finding about_tensor(const char* id, Severity severity, const ReadNumbers& read,
                     std::size_t tensor) {
  Finding finding;
  finding.id = id;
  finding.severity = severity;
  finding.tensor = read.desc(tensor).name;
  finding.box = read.desc(tensor).extent;
  return finding;
}

Finding about_element(const char* id, Severity severity, const ReadNumbers& read,
                      std::size_t tensor, Index number) {
  Finding finding = about_tensor(id, severity, read, tensor);
  const ElementPlace place = place_of_element(read.reader, tensor, number);
  finding.file = read.reader.extents().files()[place.file].name;
  finding.bytes = place.bytes;
  finding.box = place.element;
  return finding;
}

std::string listed(const ReadNumbers& read, std::span<const std::size_t> tensors) {
  constexpr std::size_t most = 3;
  std::vector<std::string> names;
  names.reserve(most);
  for (const std::size_t tensor : tensors.first(std::min(most, tensors.size()))) {
    names.push_back(fmt::format("'{}'", read.desc(tensor).name));
  }
  const std::size_t more = tensors.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace remesh::detail
