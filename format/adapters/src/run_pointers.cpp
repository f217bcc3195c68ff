#include "run_pointers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using Path = FileSystem::Path;

constexpr std::string_view megatron = "latest_checkpointed_iteration.txt";
constexpr std::string_view conversions = "latest_universal";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

// Empty where it holds anything but one name.
std::string name_in(const FileSystem& files, const Path& path) {
  constexpr std::int64_t most_bytes = 4096;
  try {
    const std::string text = read_text(files, path, most_bytes);
    const std::string_view name = trimmed(text);
    check_component(name, path.string());
    return std::string(name);
  } catch (const Error&) {
    return {};
  }
}

// A name in the run, or the whole path of something elsewhere.
std::string name_behind(const Path& link) {
  std::error_code failed;
  Path target = std::filesystem::canonical(link, failed);
  const bool dangles = static_cast<bool>(failed);
  if (dangles) target = std::filesystem::read_symlink(link, failed);
  const Path run = std::filesystem::canonical(link.parent_path() / ".", failed);
  const bool is_inside = target.parent_path() == run || !target.has_parent_path();
  return is_inside ? target.filename().string() : target.string();
}

// Megatron's file holds a number, or the name "release".
void name_iteration(RunPointer& pointer, const std::vector<RunEntry>& entries) {
  pointer.step = step_in_name(pointer.target);
  if (!pointer.step) return;
  const auto named = std::ranges::find_if(entries, [&](const RunEntry& entry) {
    return entry.step == pointer.step && !entry.is_leftover;
  });
  pointer.target = named == entries.end() ? fmt::format("iter_{:07}", *pointer.step) : named->name;
}

bool begins_like(std::string_view name, std::string_view word) {
  return std::ranges::equal(name.substr(0, word.size()), word, [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

std::string said(const RunPointer& pointer) {
  return fmt::format("'{}' names '{}'", pointer.name, pointer.target);
}

// What is wrong with a pointer; empty if nothing is.
std::string objection(const TrainingRun& run, const RunPointer& pointer, const RunEntry* newest) {
  if (pointer.target.empty()) {
    return fmt::format("'{}' holds no name of a checkpoint", pointer.name);
  }
  const auto named = std::ranges::find(run.entries, pointer.target, &RunEntry::name);
  if (named == run.entries.end()) {
    return fmt::format("{}, but there is no such checkpoint here", said(pointer));
  }
  if (!newest || pointer.is_of_conversions || named->name == newest->name) return {};
  if (!named->step || !newest->step) {
    return fmt::format("{}, but '{}' is whole, too", said(pointer), newest->name);
  }
  if (*named->step == *newest->step) return {};
  if (*named->step < *newest->step) {
    return fmt::format("{}, but '{}' is whole and newer", said(pointer), newest->name);
  }
  return fmt::format("{}, which is not whole; the newest that is whole is '{}'", said(pointer),
                     newest->name);
}

std::string next_step_of(const RunPointer& pointer, const RunEntry* newest) {
  if (pointer.is_of_conversions) return "convert a whole checkpoint anew, or remove the pointer";
  if (newest == nullptr) return "resume from a checkpoint that `remesh verify` finds whole";
  return fmt::format("resume from '{}' by its name, or write that name into the pointer",
                     newest->name);
}

}  // namespace

bool is_pointer_name(std::string_view name, EntryKind kind) {
  if (kind == EntryKind::link) return begins_like(name, "latest") || begins_like(name, "last");
  constexpr std::array<std::string_view, 6> names{"latest", "LATEST", "last",
                                                  "LAST",   megatron, conversions};
  return kind == EntryKind::regular && std::ranges::find(names, name) != names.end();
}

RunPointer read_pointer(const FileSystem& files, const Path& path,
                        const std::vector<RunEntry>& entries) {
  RunPointer pointer{path.filename().string(), {}, {}, false};
  const auto entry = files.look(path);
  const bool is_link = entry && entry->kind == EntryKind::link;
  pointer.target = is_link ? name_behind(path) : name_in(files, path);
  pointer.is_of_conversions = pointer.name == conversions;
  if (pointer.name == megatron) {
    name_iteration(pointer, entries);
    return pointer;
  }
  const auto named = std::ranges::find(entries, pointer.target, &RunEntry::name);
  pointer.step = named == entries.end() ? step_in_name(pointer.target) : named->step;
  return pointer;
}

std::vector<Finding> check_pointers(const TrainingRun& run, std::optional<std::size_t> newest) {
  const RunEntry* const whole = newest ? &run.entries[*newest] : nullptr;
  std::vector<Finding> findings;
  for (const RunPointer& pointer : run.pointers) {
    std::string message = objection(run, pointer, whole);
    if (message.empty()) continue;
    Finding finding;
    finding.id = "RM107";
    finding.severity = Severity::warn;
    finding.message = std::move(message);
    finding.file = pointer.name;
    finding.found = pointer.target;
    if (whole && !pointer.is_of_conversions) finding.expected = whole->name;
    finding.next_step = next_step_of(pointer, whole);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace remesh
