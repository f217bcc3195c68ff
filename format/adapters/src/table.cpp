#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "followed.hpp"
#include "foreign_formats.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/core/shell_word.hpp"
#include "remesh/schema/states.hpp"
#include "remesh/store/native_store.hpp"
#include "safetensors/reader.hpp"
#include "safetensors/writer.hpp"
#include "sealed.hpp"

namespace remesh {
namespace {

struct Format {
  std::string_view name;
  bool (*recognises)(const FileSystem&, const FileSystem::Path&);
  // A foreign format is parsed, so that what a seal records can be attached to it; a native
  // checkpoint has a reader of its own. The second path is what the user calls it.
  std::optional<OpenCheckpoint> (*parse)(const FileSystem&, const FileSystem::Path&,
                                         const FileSystem::Path&, Findings&);
  std::unique_ptr<Reader> (*open)(const FileSystem&, const FileSystem::Path&, Findings&);
  std::unique_ptr<Writer> (*create)(FileSystem&, const FileSystem::Path&, Catalog,
                                    const SideSource&, const WriterOptions&);
};

// Asked in this order. A new adapter is one line here.
constexpr std::array formats{
    Format{"remesh", looks_native, nullptr, open_native, create_native},
    Format{"hf", safetensors::recognises, safetensors::parse_whole, nullptr, safetensors::create},
};

const Format& format_named(std::string_view name) {
  const auto* const found = std::ranges::find(formats, name, &Format::name);
  if (found == formats.end()) {
    throw Error(Errc::invalid_argument, fmt::format("cannot use the format '{}': there are {}",
                                                    name, fmt::join(format_names(), ", ")));
  }
  return *found;
}

const Format* format_at(const FileSystem& files, const FileSystem::Path& path) {
  const auto* const found = std::ranges::find_if(
      formats, [&](const Format& format) { return format.recognises(files, path); });
  return found != formats.end() ? &*found : nullptr;
}

// "a directory of 3 entries (a, b, c)", "a file of 12 bytes".
std::string describe_found(const FileSystem& files, const FileSystem::Path& path,
                           const Entry& entry) {
  if (entry.kind == EntryKind::regular) return fmt::format("a file of {} bytes", entry.size_bytes);
  if (entry.kind == EntryKind::link) return "a link that leads nowhere";
  if (entry.kind == EntryKind::other) return "neither a file nor a directory";
  const std::vector<Entry> inside = files.list(path);
  if (inside.empty()) return "an empty directory";
  std::vector<std::string> names;
  for (std::size_t k = 0; k < std::min<std::size_t>(inside.size(), 3); ++k) {
    names.push_back(inside[k].name);
  }
  return fmt::format("a directory of {} {} ({}{})", inside.size(),
                     inside.size() == 1 ? "entry" : "entries", fmt::join(names, ", "),
                     names.size() < inside.size() ? ", ..." : "");
}

// The first by name in a directory that is a checkpoint, or a link to one. Empty: none among the
// first of them, or none that may be seen.
std::string checkpoint_inside(const FileSystem& files, const FileSystem::Path& path,
                              const Entry& entry) {
  constexpr int most_looked_at = 64;
  if (entry.kind != EntryKind::directory) return {};
  int looked_at = 0;
  for (const Entry& inside : files.list(path)) {
    if (inside.kind != EntryKind::directory && inside.kind != EntryKind::link) continue;
    if (++looked_at > most_looked_at) break;
    try {
      const auto target = files.look(path / inside.name / ".");  // follows a link
      const bool is_directory = target && target->kind == EntryKind::directory;
      if (is_directory && detect_format(files, path / inside.name)) return inside.name;
    } catch (const Error&) {
      continue;  // "lost+found"
    }
  }
  return {};
}

// What the user may do next, or at least know; behind the refusal.
std::string hint_for(const FileSystem& files, const FileSystem::Path& path, const Entry& entry) {
  if (const std::string inside = checkpoint_inside(files, path, entry); !inside.empty()) {
    return fmt::format(
        "; '{}' in it is one: name the one that you mean, or what `remesh latest {}` prints",
        inside, shell_word(path.string()));
  }
  const std::string_view foreign = foreign_format(files, path, entry);
  if (foreign.empty()) return {};
  return fmt::format("; it looks like {}, which this version does not read", foreign);
}

[[noreturn]] void fail_unrecognised(const FileSystem& files, const FileSystem::Path& path,
                                    const Entry& entry) {
  throw Error(Errc::not_found,
              fmt::format("cannot open '{}': it is {}, but no checkpoint of a known format ({}){}",
                          path.string(), describe_found(files, path, entry),
                          fmt::join(format_names(), ", "), hint_for(files, path, entry)),
              "RM101");
}

// The format that the user names, or the detected one. Throws as open_reader documents.
const Format& format_of(const FileSystem& files, const FileSystem::Path& path,
                        const FileSystem::Path& target, std::string_view from) {
  const Format* format = from.empty() ? nullptr : &format_named(from);
  const auto entry = files.look(target);
  if (!entry) {
    throw Error(Errc::not_found,
                fmt::format("cannot open '{}': there is nothing of that name", path.string()),
                "RM101");
  }
  if (!format) format = format_at(files, target);
  if (!format) fail_unrecognised(files, target, *entry);
  return *format;
}

[[noreturn]] void refuse_seal_of_native(const FileSystem::Path& path, const Format& format) {
  throw Error(Errc::invalid_argument,
              fmt::format("cannot use a seal with '{}': it is {}, which records the digests of all "
                          "its bytes by itself; leave out `--seal`",
                          path.string(), format.name));
}

}  // namespace

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  names.reserve(formats.size());
  for (const Format& format : formats) names.push_back(format.name);
  return names;
}

std::optional<std::string> detect_format(const FileSystem& files, const FileSystem::Path& path) {
  const Format* format = format_at(files, followed(files, path));
  if (!format) return std::nullopt;
  return std::string(format->name);
}

std::unique_ptr<Reader> open_reader(const FileSystem& files, const FileSystem::Path& path,
                                    std::string_view from, Findings& findings,
                                    const FileSystem::Path& seal) {
  const FileSystem::Path target = followed(files, path);
  const Format& format = format_of(files, path, target, from);
  std::unique_ptr<Reader> reader;
  if (format.parse == nullptr) {
    if (!seal.empty()) refuse_seal_of_native(path, format);
    reader = format.open(files, target, findings);
  } else if (auto checkpoint = format.parse(files, target, path, findings)) {
    const auto found = sealed::find(files, path, seal, findings);
    reader = sealed::open(files, found, std::move(*checkpoint), findings);
  }
  if (reader) check_states(reader->catalog().tensors, findings);
  return reader;
}

FileSystem::Path seal_place(const FileSystem& files, const FileSystem::Path& path) {
  return sealed::place_of(files, path);
}

OpenCheckpoint open_to_seal(const FileSystem& files, const FileSystem::Path& path,
                            std::string_view from, Findings& findings) {
  const FileSystem::Path target = followed(files, path);
  const Format& format = format_of(files, path, target, from);
  if (format.parse == nullptr) {
    throw Error(Errc::unsupported,
                fmt::format("cannot seal '{}': it is {}, which records the digests of all its "
                            "bytes by itself; `remesh verify` checks them",
                            path.string(), format.name));
  }
  auto checkpoint = format.parse(files, target, path, findings);
  if (!checkpoint) {
    throw Error(Errc::corrupt, fmt::format("cannot seal '{}': it cannot be read", path.string()));
  }
  check_states(checkpoint->catalog.tensors, findings);
  return with_all_files(std::move(*checkpoint));
}

std::optional<SignedSeal> find_signed_seal(const FileSystem& files, const FileSystem::Path& path,
                                           const FileSystem::Path& seal) {
  StrictFindings findings;
  const auto found = sealed::find(files, path, seal, findings);
  if (!found) return std::nullopt;
  return SignedSeal{path.string(), found->path, found->signature, sealed::files_of(files, path)};
}

std::unique_ptr<Writer> create_writer(FileSystem& files, const FileSystem::Path& destination,
                                      Catalog wanted, const SideSource& side,
                                      const WriterOptions& options) {
  const Format& format = format_named(wanted.format);
  return format.create(files, destination, std::move(wanted), side, options);
}

}  // namespace remesh
