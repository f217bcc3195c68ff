#include "defect.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace remesh::safetensors {
namespace {

constexpr std::size_t longest_shown = 120;
constexpr std::size_t most_listed = 10;

const char* id_of(Errc code) noexcept {
  switch (code) {
    case Errc::not_found:
      return "RM203";
    case Errc::unsafe:
      return "RM604";
    case Errc::out_of_memory:
      return "RM605";
    default:
      return "RM703";
  }
}

}  // namespace

Defect defect(std::string id, std::string what, std::string next_step) {
  Defect finding;
  finding.id = std::move(id);
  finding.message = std::move(what);
  finding.next_step = std::move(next_step);
  return finding;
}

void report(Findings& findings, std::string_view file, Defect defect) {
  Finding& finding = defect;
  finding.message = fmt::format("cannot read '{}': {}", shown(file), finding.message);
  if (!finding.next_step.empty()) finding.message += "; " + finding.next_step;
  finding.file = file;
  try {
    findings.add(std::move(finding));
  } catch (const Error& error) {
    throw Error(defect.code.value_or(error.code()), error.what(), error.id());
  }
}

std::optional<Defect> no_content(std::string_view begin, std::int64_t file_bytes) {
  if (file_bytes == 0) return defect("RM201", "it is empty", "copy or download it again");
  if (!begin.starts_with("version https://git-lfs")) return std::nullopt;
  return defect("RM201",
                fmt::format("it is a git-lfs pointer of {} bytes, not the file itself", file_bytes),
                "run `git lfs pull` in the repository that it came from");
}

Finding as_finding(const Error& error, std::string_view file) {
  Finding finding;
  finding.id = error.id().empty() ? id_of(error.code()) : error.id();
  finding.message = error.what();
  finding.file = file;
  return finding;
}

std::string shown(std::string_view name) {
  std::string text(name.substr(0, longest_shown));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  if (name.size() > longest_shown) text += "...";
  return text;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < std::min(names.size(), most_listed); ++k) {
    if (k > 0) text += ", ";
    text += shown(names[k]);
  }
  if (names.size() > most_listed) text += fmt::format(" and {} more", names.size() - most_listed);
  return text;
}

}  // namespace remesh::safetensors
