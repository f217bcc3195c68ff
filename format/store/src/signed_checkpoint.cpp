#include "remesh/store/signed_checkpoint.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "manifest.hpp"
#include "remesh/json/events.hpp"
#include "remesh/store/seal.hpp"
#include "seal_format.hpp"
#include "signed_check.hpp"
#include "signed_files.hpp"

namespace remesh {
namespace {

using native::SignedFile;
using Path = FileSystem::Path;

// The text came with room for padding.
std::optional<std::vector<SignedFile>> files_of_manifest(std::string text, const Path& directory) {
  const std::size_t size = text.size();
  text.append(json_padding_bytes, ' ');
  const native::Manifest manifest =
      native::parse_manifest(std::string_view(text).substr(0, size), json_padding_bytes);
  if (!manifest.trees) return std::nullopt;
  std::vector<std::string> names = native::signed_files(manifest);
  std::vector<SignedFile> listed;
  listed.reserve(names.size());
  const std::size_t shards = manifest.shards.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_shard = i < shards;
    Path path = directory / names[i];
    listed.push_back(
        {std::move(names[i]), std::move(path),
         is_shard ? manifest.shards[i].size_bytes : manifest.catalog.side[i - shards].size_bytes,
         is_shard ? manifest.trees->files[i] : manifest.trees->side[i - shards]});
  }
  return listed;
}

std::optional<std::vector<SignedFile>> files_of_seal(
    const std::string& text, const std::function<Path(const std::string&)>& path_of) {
  const Seal seal = parse_seal(text);
  const auto files = seal.extents.files();
  if (seal.trees.size() != files.size()) return std::nullopt;
  std::vector<SignedFile> listed;
  listed.reserve(files.size());
  for (std::size_t file = 0; file < files.size(); ++file) {
    listed.push_back(
        {files[file].name, path_of(files[file].name), files[file].size_bytes, seal.trees[file]});
  }
  return listed;
}

}  // namespace

SignedCheck check_signed(const FileSystem& files, const FileSystem::Path& directory,
                         const PublicKey& key, SignedPart part, ThreadPool& pool,
                         Progress& progress, const StopFlag& stop) {
  native::SignedList list;
  list.name = native::manifest_name;
  list.path = directory / native::manifest_name;
  list.signature = directory / native::signature_name;
  list.checkpoint = directory.string();
  list.what = "manifest";
  list.most_bytes = native::most_manifest_bytes;
  return native::SignedChecking(files, std::move(list), pool, progress, stop)
      .run(key, part,
           [&](std::string text) { return files_of_manifest(std::move(text), directory); });
}

SignedCheck check_signed_seal(const FileSystem& files, const SignedSeal& signed_seal,
                              const PublicKey& key, SignedPart part, ThreadPool& pool,
                              Progress& progress, const StopFlag& stop) {
  native::SignedList list;
  list.name = signed_seal.seal.filename().string();
  list.path = signed_seal.seal;
  list.signature = signed_seal.signature;
  list.checkpoint = signed_seal.checkpoint;
  list.what = "seal";
  list.most_bytes = native::most_seal_bytes;
  return native::SignedChecking(files, std::move(list), pool, progress, stop)
      .run(key, part,
           [&](const std::string& text) { return files_of_seal(text, signed_seal.path_of); });
}

}  // namespace remesh
