#include "signed_files.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "remesh/core/thread_pool.hpp"
#include "remesh/store/file_tree.hpp"
#include "remesh/store/signature.hpp"

namespace remesh::native {

std::vector<std::string> signed_files(const Manifest& manifest) {
  std::vector<std::string> names;
  names.reserve(manifest.shards.size() + manifest.catalog.side.size());
  const Index ranks = manifest.catalog.layout.mesh().num_ranks();
  for (const ShardEntry& shard : manifest.shards) names.push_back(shard_name(shard.rank, ranks));
  for (const SideFile& side : manifest.catalog.side) {
    names.push_back(fmt::format("{}/{}", side_directory, side.name));
  }
  return names;
}

Trees trees_of(const FileSystem& files, const FileSystem::Path& directory, const Manifest& manifest,
               int threads, const StopFlag* stop) {
  ThreadPool pool(threads);
  std::vector<TreeHash> roots;
  const std::vector<std::string> names = signed_files(manifest);
  roots.reserve(names.size());
  for (const std::string& name : names) {
    roots.push_back(tree_of(*files.open(directory / name), pool, stop));
  }
  const auto side = roots.begin() + std::ssize(manifest.shards);
  return {{roots.begin(), side}, {side, roots.end()}};
}

void write_signature(FileSystem& files, const FileSystem::Path& directory,
                     std::string_view manifest, const std::string& save_id, const SecretKey& key) {
  const std::string text =
      sign(std::as_bytes(std::span(manifest)), key, fmt::format("save {}", save_id));
  write_whole(files, directory / signature_name, std::as_bytes(std::span(text)));
}

}  // namespace remesh::native
