#include "reader.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "defect.hpp"
#include "directory.hpp"
#include "header.hpp"
#include "json.hpp"
#include "optimizer.hpp"
#include "remesh/core/error.hpp"
#include "side_files.hpp"
#include "weights.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::string_view ending = ".safetensors";

// A plausible length word, and the brace of the JSON behind it.
bool begins_like_one(const FileSystem& files, const FileSystem::Path& path) {
  std::array<std::byte, length_word_bytes + 1> head{};
  try {
    const auto file = files.open(path);
    if (file->size_bytes() < static_cast<std::int64_t>(head.size())) return false;
    file->read_at(0, head);
  } catch (const Error&) {
    return false;
  }
  CollectedFindings ignored;
  return head.back() == std::byte{'{'} &&
         header_bytes(head, max_json_bytes + length_word_bytes, "", ignored).has_value();
}

}  // namespace

bool recognises(const FileSystem& files, const FileSystem::Path& path) {
  const auto entry = files.look(path);
  if (!entry) return false;
  if (entry->kind == EntryKind::regular) {
    return path.filename().string().ends_with(ending) || begins_like_one(files, path);
  }
  return entry->kind == EntryKind::directory &&
         std::ranges::any_of(files.list(path), [](const Entry& inside) {
           return inside.kind != EntryKind::directory &&
                  (inside.name == index_name || inside.name.ends_with(ending));
         });
}

std::optional<OpenCheckpoint> parse(const FileSystem& files, const FileSystem::Path& path,
                                    const FileSystem::Path& called, bool with_side_files,
                                    Findings& findings) {
  const std::string name = called.has_filename() ? called.filename().string() : called.string();
  const auto entry = files.look(path);
  if (!entry) {
    report(findings, name, defect("RM101", "there is nothing of that name"));
    return std::nullopt;
  }
  if (entry->kind != EntryKind::directory) {
    WeightSet weights;
    weights.files = {{name, path, entry->size_bytes}};
    return open_weights(files, std::move(weights), std::nullopt, findings);
  }
  const Directory directory = list_directory(files, path, findings);
  auto checkpoint = open_weights(files, choose_weights(files, directory, name, findings),
                                 choose_optimizer(files, directory, findings), findings);
  if (!checkpoint) return checkpoint;
  for (const std::string_view index : {index_name, optimizer_index_name}) {
    const FoundFile* const found = directory.find(index);
    if (found) checkpoint->others.push_back({found->name, found->path, found->size_bytes});
  }
  if (with_side_files) add_side_files(files, directory, *checkpoint, findings);
  return checkpoint;
}

std::optional<OpenCheckpoint> parse_whole(const FileSystem& files, const FileSystem::Path& path,
                                          const FileSystem::Path& called, Findings& findings) {
  auto checkpoint = parse(files, path, called, /*with_side_files=*/true, findings);
  if (checkpoint) check_optimizer(files, *checkpoint, findings);
  return checkpoint;
}

std::unique_ptr<Reader> open(const FileSystem& files, const FileSystem::Path& path,
                             Findings& findings) {
  auto checkpoint = parse_whole(files, path, path, findings);
  return checkpoint ? make_reader(files, std::move(*checkpoint)) : nullptr;
}

}  // namespace remesh::safetensors
