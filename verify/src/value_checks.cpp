#include <fmt/format.h>

#include "number_checks.hpp"

namespace remesh::detail {
namespace {

constexpr Index least_elements_of_a_flood = 16;

void check_finite(const ReadNumbers& read, std::size_t tensor, std::vector<Finding>& findings) {
  const NumberCounts& counts = read.numbers.of(tensor);
  if (counts.nans + counts.infinities == 0) return;
  Finding finding = about_element("RM511", Severity::error, read, tensor, counts.first_not_finite);
  finding.found = fmt::format("{} NaN and {} infinite", counts.nans, counts.infinities);
  finding.expected = "finite numbers";
  finding.message = fmt::format(
      "{}: {} of {} elements, the first at {}; weights and optimizer states are finite "
      "numbers in a run that is well",
      to_string(read.desc(tensor)), finding.found, counts.elements, to_string(*finding.box));
  finding.next_step = "go back to the last save without them";
  findings.push_back(std::move(finding));
}

// Moments shrink towards zero where no gradient comes, and narrow floats have few normal numbers.
bool may_have_denormals(const ReadNumbers& read, std::size_t tensor) {
  const DType dtype = read.desc(tensor).dtype;
  const bool narrow = dtype != DType::f64 && dtype != DType::f32 && dtype != DType::bf16;
  return narrow || (read.parameters[tensor] >= 0 && read.state(tensor) != "master");
}

void check_denormals(const ReadNumbers& read, std::size_t tensor, std::vector<Finding>& findings) {
  const NumberCounts& counts = read.numbers.of(tensor);
  const Index others = counts.elements - counts.zeros;
  if (counts.elements < least_elements_of_a_flood || 2 * counts.denormals <= others) return;
  const bool doubtful = may_have_denormals(read, tensor);
  Finding finding =
      about_tensor("RM511", doubtful ? Severity::warn : Severity::error, read, tensor);
  finding.found = fmt::format("{} denormals", counts.denormals);
  finding.expected = fmt::format("at most half of {} elements that are not zero", others);
  finding.message = fmt::format(
      "{}: {} of {} elements that are not zero are denormal, smaller than any normal {}; {}",
      to_string(read.desc(tensor)), counts.denormals, others, to_string(read.desc(tensor).dtype),
      doubtful ? "moments that no gradient reached, or a dtype too narrow, look so"
               : "trained weights are not: these bytes are of something else");
  finding.next_step = "compare with the save before it";
  findings.push_back(std::move(finding));
}

void check_zeros(const ReadNumbers& read, std::size_t tensor, std::vector<Finding>& findings) {
  const TensorDesc& desc = read.desc(tensor);
  const bool is_matrix = read.parameters[tensor] < 0 && desc.extent.ndim() >= 2 &&
                         desc.name.ends_with(".weight") && is_counted_float(desc.dtype);
  if (!is_matrix || !read.all_zero(tensor)) return;
  Finding finding = about_tensor("RM511", Severity::warn, read, tensor);
  finding.found = fmt::format("{} zeros", desc.extent.num_elements());
  finding.expected = "some number that is not zero";
  finding.message = fmt::format(
      "{}: all {} elements are zero; weights that were never written look so, and matrices that "
      "training starts from zero: the second of a LoRA pair, the last of a new branch",
      to_string(desc), desc.extent.num_elements());
  finding.next_step = "compare with another save, if this matrix was trained";
  findings.push_back(std::move(finding));
}

}  // namespace

void check_finite(const ReadNumbers& read, std::vector<Finding>& findings) {
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    if (read.sound[tensor]) check_finite(read, tensor, findings);
  }
}

void check_values(const ReadNumbers& read, std::vector<Finding>& findings) {
  for (std::size_t tensor = 0; tensor < read.sound.size(); ++tensor) {
    if (!read.sound[tensor]) continue;
    check_finite(read, tensor, findings);
    check_denormals(read, tensor, findings);
    check_zeros(read, tensor, findings);
  }
}

}  // namespace remesh::detail
