#include "remesh/adapters/run.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "remesh/adapters/open.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/staging.hpp"
#include "run_pointers.hpp"
#include "safetensors/trainer_state.hpp"

namespace remesh {
namespace {

using Path = FileSystem::Path;

constexpr std::string_view separators = "-_=.";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

// By how much "2k" and "2m" are more than 2; `behind` is what follows the digits, in small letters.
std::int64_t scale_of(std::string_view behind) {
  if (behind.empty()) return 1;
  const bool ends = behind.size() == 1 || separators.find(behind[1]) != std::string_view::npos;
  if (ends && behind.front() == 'k') return 1'000;
  if (ends && behind.front() == 'm') return 1'000'000;
  return 1;
}

// The number with which `text`, in small letters, begins: 12000 for "12000", "12k" and "12k-best".
std::optional<std::int64_t> leading_number(std::string_view text) {
  constexpr std::ptrdiff_t most_digits = 18;
  const auto end = std::ranges::find_if_not(text, is_digit);
  const std::ptrdiff_t digits = end - text.begin();
  if (digits == 0 || digits > most_digits) return std::nullopt;
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + digits, number);
  return checked_multiply(number, scale_of(text.substr(static_cast<std::size_t>(digits))));
}

/// A number in a name, and where its word begins.
struct Numbered {
  std::size_t at = 0;
  std::int64_t number = 0;
};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// The number behind the last place where `word` has one. A word is no part of another one.
std::optional<Numbered> number_behind(std::string_view name, std::string_view word) {
  for (std::size_t at = name.rfind(word); at != std::string_view::npos;) {
    std::string_view rest = name.substr(at + word.size());
    if (!rest.empty() && separators.find(rest.front()) != std::string_view::npos) {
      rest.remove_prefix(1);
    }
    const bool begins = at == 0 || !is_letter(name[at - 1]);
    const auto number = leading_number(rest);
    if (begins && number) return Numbered{at, *number};
    if (at == 0) break;
    at = name.rfind(word, at - 1);
  }
  return std::nullopt;
}

// That of the word which stands last.
std::optional<std::int64_t> number_behind_any(std::string_view name,
                                              std::span<const std::string_view> words) {
  std::optional<Numbered> last;
  for (const std::string_view word : words) {
    const auto found = number_behind(name, word);
    if (found && (!last || found->at > last->at)) last = found;
  }
  return last ? std::optional(last->number) : std::nullopt;
}

// Whether a name, in small letters, is what training programs give to checkpoints and to nothing
// else; "eval_step_100" may hold pictures.
bool is_of_checkpoint(std::string_view name) {
  constexpr std::array<std::string_view, 8> words{"step",       "iter", "iteration", "global_step",
                                                  "checkpoint", "ckpt", "epoch",     "globalstep"};
  const auto begins_with = [&](std::string_view word) {
    return name.starts_with(word) && name.size() > word.size() && !is_letter(name[word.size()]);
  };
  return std::ranges::all_of(name, is_digit) || std::ranges::any_of(words, begins_with);
}

// Whether a name, in small letters, is what programs give to what they are still writing (Hugging
// Face's trainer "tmp-checkpoint-20", others "step-20.tmp" or "iter_20.partial"), or people to what
// they put aside ("checkpoint-20_corrupt", "step-20.bak").
bool is_set_apart(std::string_view name) {
  constexpr std::array<std::string_view, 13> words{
      "tmp",     "temp", "partial", "incomplete", "corrupt", "corrupted", "old",
      "deleted", "bak",  "backup",  "trash",      "broken",  "failed"};
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of(separators), name.size());
    if (std::ranges::find(words, name.substr(0, end)) != words.end()) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

// Whether a format recognises it. What may not be looked into ("lost+found") is none.
bool is_recognised(const FileSystem& files, const Path& path) {
  try {
    const auto inside = files.look(path / ".");  // follows a link
    return inside && inside->kind == EntryKind::directory && detect_format(files, path);
  } catch (const Error&) {
    return false;
  }
}

// Whether a link leads to an entry of the same directory, which is listed already, or to a file.
bool leads_to_no_other(const Path& link) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(link, failed)) return true;
  const Path target = std::filesystem::canonical(link, failed);
  if (failed) return false;
  return target.parent_path() == std::filesystem::canonical(link.parent_path() / ".", failed);
}

// "step-10" for ".step-10.remesh-0123456789abcdef".
std::string_view name_of_leftover(std::string_view name) {
  return name.substr(1, name.rfind(".remesh-") - 1);
}

std::optional<std::int64_t> step_inside(const FileSystem& files, const Path& directory) {
  using safetensors::trainer_state_name;
  if (const auto step = safetensors::step_of_trainer(files, directory / trainer_state_name)) {
    return step;
  }
  return safetensors::step_of_trainer(files, directory / "side" / trainer_state_name);
}

std::optional<RunEntry> entry_of(const FileSystem& files, const Path& directory,
                                 const Entry& entry) {
  const Path path = directory / entry.name;
  if (is_staging_name(entry.name)) {
    return RunEntry{entry.name, step_in_name(name_of_leftover(entry.name)), true, true};
  }
  if (entry.name.starts_with('.')) return std::nullopt;
  if (entry.kind == EntryKind::link && leads_to_no_other(path)) return std::nullopt;
  const std::string name = lower_case(entry.name);
  const bool is_meant = is_of_checkpoint(name);
  if (const auto step = step_in_name(entry.name)) {
    const bool apart = is_set_apart(name);
    return RunEntry{entry.name, step, apart, is_meant || apart};
  }
  if (!is_meant && !is_recognised(files, path)) return std::nullopt;
  return RunEntry{entry.name, step_inside(files, path), is_set_apart(name), true};
}

// What has no step comes before all that has one.
std::int64_t rank_of(const RunEntry& entry) { return entry.step.value_or(-1); }

}  // namespace

std::optional<std::int64_t> step_in_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> of_steps{"step", "iteration", "iter", "globalstep"};
  constexpr std::array<std::string_view, 2> of_checkpoints{"checkpoint", "ckpt"};
  const std::string lower = lower_case(name);
  if (const auto step = number_behind_any(lower, of_steps)) return step;
  if (const auto step = number_behind_any(lower, of_checkpoints)) return step;
  if (const auto epoch = number_behind(lower, "epoch")) return epoch->number;
  return std::ranges::all_of(lower, is_digit) ? leading_number(lower) : std::nullopt;
}

TrainingRun read_run(const FileSystem& files, const Path& directory) {
  TrainingRun run;
  std::vector<Path> pointers;
  for (const Entry& entry : files.list(directory)) {
    if (is_pointer_name(entry.name, entry.kind)) {
      pointers.push_back(directory / entry.name);
    } else if (entry.kind == EntryKind::directory || entry.kind == EntryKind::link) {
      if (auto found = entry_of(files, directory, entry)) {
        run.entries.push_back(*std::move(found));
      }
    }
  }
  std::ranges::sort(run.entries, {}, [](const RunEntry& entry) {
    return std::tuple(rank_of(entry), entry.is_leftover, std::string_view(entry.name));
  });
  run.pointers.reserve(pointers.size());
  for (const Path& path : pointers) {
    run.pointers.push_back(read_pointer(files, path, run.entries));
  }
  return run;
}

std::vector<std::size_t> newest_first(const TrainingRun& run) {
  std::vector<std::size_t> order(run.entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t k) { return rank_of(run.entries[k]); });
  return order;
}

Finding unfinished(const RunEntry& leftover) {
  Finding finding;
  finding.id = "RM105";
  if (is_staging_name(leftover.name)) {
    finding.next_step = "its command with `--resume` completes it";
    finding.message = fmt::format(
        "cannot use '{}': the job that writes '{}' did not finish, or is still at it; {}",
        leftover.name, name_of_leftover(leftover.name), finding.next_step);
  } else {
    finding.next_step = "wait for the job that writes it, or use the save before it";
    finding.message = fmt::format(
        "cannot use '{}': by its name it is still being written, was never finished, or was put "
        "aside",
        leftover.name);
  }
  finding.file = leftover.name;
  return finding;
}

}  // namespace remesh
