#include "remesh/store/signed_checkpoint.hpp"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "manifest.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"
#include "remesh/json/events.hpp"
#include "remesh/store/file_tree.hpp"
#include "remesh/store/signature.hpp"
#include "signed_files.hpp"

namespace remesh {
namespace {

using Path = FileSystem::Path;

const std::string manifest_file{native::manifest_name};
const std::string signature_file{native::signature_name};

// A file whose reading can be stopped, and tells how far it is.
class WatchedFile final : public File {
 public:
  WatchedFile(std::unique_ptr<File> inner, Progress& progress, const StopFlag& stop)
      : inner_(std::move(inner)), progress_(progress), stop_(stop) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override {
    stop_.check();
    inner_->read_at(offset, into);
    progress_.advance(std::ssize(into));
  }
  void write_at(std::int64_t offset, std::span<const std::byte> from) override {
    inner_->write_at(offset, from);
  }
  std::int64_t size_bytes() const override { return inner_->size_bytes(); }
  void sync() override { inner_->sync(); }
  void forget_cache() noexcept override { inner_->forget_cache(); }

 private:
  std::unique_ptr<File> inner_;
  Progress& progress_;
  const StopFlag& stop_;
};

class Check {
 public:
  Check(const FileSystem& files, Path directory, ThreadPool& pool, Progress& progress,
        const StopFlag& stop)
      : files_(files),
        directory_(std::move(directory)),
        pool_(pool),
        progress_(progress),
        stop_(stop) {}

  SignedCheck run(const PublicKey& key, SignedPart part) {
    const auto manifest = read_manifest(key);
    if (!manifest) return std::move(result_);
    if (part == SignedPart::all) check_files(*manifest);
    return std::move(result_);
  }

 private:
  std::optional<native::Manifest> read_manifest(const PublicKey& key);
  void check_files(const native::Manifest& manifest);
  void check_file(const std::string& name, const TreeHash& wanted);
  void add(const std::string& id, const std::string& file, std::string message);
  void add(const Error& error, const std::string& file);

  // What `action` returns; nothing if it threw what says something of the checkpoint.
  template <typename Action>
  auto attempt(const std::string& file, Action&& action) -> std::optional<decltype(action())> {
    try {
      return action();
    } catch (const Error& error) {
      const Errc code = error.code();
      if (code != Errc::unsafe && code != Errc::corrupt && code != Errc::not_found &&
          code != Errc::unsupported) {
        throw;
      }
      add(error, file);
      return std::nullopt;
    }
  }

  const FileSystem& files_;
  const Path directory_;
  ThreadPool& pool_;
  Progress& progress_;
  const StopFlag& stop_;
  SignedCheck result_;
};

void Check::add(const std::string& id, const std::string& file, std::string message) {
  Finding finding;
  finding.id = id;
  finding.file = file;
  finding.message = std::move(message);
  result_.findings.push_back(std::move(finding));
}

// What the file system throws names the path already; what a parser throws does not.
void Check::add(const Error& error, const std::string& file) {
  const std::string_view why = error.what();
  std::string id = error.id();
  if (id.empty()) id = error.code() == Errc::not_found ? "RM203" : "RM104";
  add(id, file,
      why.starts_with("cannot ")
          ? std::string(why)
          : fmt::format("cannot check the signature of '{}': {}", directory_.string(), why));
}

std::optional<native::Manifest> Check::read_manifest(const PublicKey& key) {
  auto text = attempt(manifest_file, [&] {
    return read_text(files_, directory_ / manifest_file, native::most_manifest_bytes,
                     json_padding_bytes);
  });
  if (!text) return std::nullopt;
  const auto comment = attempt(signature_file, [&] {
    return check_signature(std::as_bytes(std::span(*text)),
                           read_signature(files_, directory_ / signature_file), key);
  });
  if (!comment) return std::nullopt;
  const std::size_t size = text->size();
  text->append(json_padding_bytes, ' ');
  auto manifest = attempt(manifest_file, [&] {
    return native::parse_manifest(std::string_view(*text).substr(0, size), json_padding_bytes);
  });
  if (!manifest) return std::nullopt;
  if (!manifest->trees) {
    add("RM611", manifest_file,
        fmt::format("cannot check the signature of '{}': its manifest is signed, but has no hashes "
                    "of the files, so these are not signed",
                    directory_.string()));
    return std::nullopt;
  }
  result_.manifest_fits = true;
  result_.trusted_comment = *comment;
  result_.files = std::ssize(native::signed_files(*manifest));
  return manifest;
}

void Check::check_files(const native::Manifest& manifest) {
  std::int64_t bytes = 0;
  const auto expect = [&bytes](std::int64_t size) {
    bytes = checked_add(bytes, size).value_or(bytes);
  };
  for (const native::ShardEntry& shard : manifest.shards) expect(shard.size_bytes);
  for (const SideFile& side : manifest.catalog.side) expect(side.size_bytes);
  std::vector<TreeHash> roots = manifest.trees->files;
  roots.insert(roots.end(), manifest.trees->side.begin(), manifest.trees->side.end());

  progress_.begin("checking the signature", bytes);
  const std::vector<std::string> names = native::signed_files(manifest);
  for (std::size_t i = 0; i < names.size(); ++i) check_file(names[i], roots[i]);
  progress_.end();
}

void Check::check_file(const std::string& name, const TreeHash& wanted) {
  const auto found = attempt(name, [&] {
    return tree_of(WatchedFile(files_.open(directory_ / name), progress_, stop_), pool_);
  });
  if (!found) return;
  if (*found == wanted) {
    ++result_.files_checked;
    return;
  }
  add("RM104", name,
      fmt::format("'{}' is not the file that was signed: its tree hash is {}, but the signed "
                  "manifest records {}; it was changed after it was signed",
                  (directory_ / name).string(), to_string(*found), to_string(wanted)));
  result_.findings.back().found = to_string(*found);
  result_.findings.back().expected = to_string(wanted);
}

}  // namespace

SignedCheck check_signed(const FileSystem& files, const FileSystem::Path& directory,
                         const PublicKey& key, SignedPart part, ThreadPool& pool,
                         Progress& progress, const StopFlag& stop) {
  return Check(files, directory, pool, progress, stop).run(key, part);
}

}  // namespace remesh
