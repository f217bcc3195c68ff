#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::test {

/// A file system in memory that promises no more than POSIX does, so that a crash can be tried at
/// any moment. What was written is seen at once, but is on the medium only
/// - after File::sync(): the pages and the size of that file, though not its name;
/// - after sync_directory(): the entries of that directory, though not what they name.
/// Of the rest, crash() decides piece by piece what came through. For one thread.
class TornFileSystem final : public FileSystem {
 public:
  /// The one directory that is there from the start; all paths lie in it.
  static const Path& root() {
    static const Path path = "/torn";
    return path;
  }

  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t sector_bytes = 512;

  /// Is called after every call that changes something or syncs.
  void after_each(std::function<void()> look) { look_ = std::move(look); }

  /// Sync `number` (of files and directories together; the first is 0) does nothing.
  void drop_sync(std::int64_t number) { dropped_sync_ = number; }
  std::int64_t num_syncs() const noexcept { return syncs_; }
  /// What was synced, in order.
  const std::vector<Path>& synced() const noexcept { return synced_; }

  /// What a reboot could find. The same seed and history give the same.
  TornFileSystem crash(unsigned seed) const {
    Chance chance(seed);
    TornFileSystem found;
    found.root_ = surviving(*root_, chance);
    return found;
  }

  /// Copies all that is there into a new directory of the machine's own file system.
  void copy_to(const Path& directory) const { copy(*root_, directory); }

  std::unique_ptr<File> open(const Path& path) const override {
    return std::make_unique<TornFile>(regular(path), path, const_cast<TornFileSystem&>(*this));
  }
  std::unique_ptr<File> create(const Path& path) override {
    auto file = std::make_shared<Inode>();
    link(path, file);
    changed();
    return std::make_unique<TornFile>(std::move(file), path, *this);
  }
  std::unique_ptr<File> open_for_writing(const Path& path) override { return open(path); }

  std::optional<Entry> look(const Path& path) const override {
    const auto found = find(path);
    if (!found) return std::nullopt;
    return entry(path.filename().string(), *found);
  }
  std::vector<Entry> list(const Path& path) const override {
    std::vector<Entry> entries;
    const auto found = directory(path);
    entries.reserve(found->entries.size());
    for (const auto& [name, inode] : found->entries) entries.push_back(entry(name, *inode));
    return entries;
  }

  void create_directory(const Path& path) override {
    auto made = std::make_shared<Inode>();
    made->is_directory = true;
    link(path, std::move(made));
    changed();
  }
  void remove_all(const Path& path) override {
    if (const auto found = find(path)) {
      unlink_all(*found);
      perform(*directory(path.parent_path()), {path.filename().string(), {}, nullptr});
    }
    changed();
  }
  void rename_no_replace(const Path& from, const Path& to) override {
    const auto parent = directory(from.parent_path());
    if (parent != directory(to.parent_path())) throw std::logic_error("renamed elsewhere");
    const auto moved = find(from);
    if (!moved) fail(Errc::not_found, "rename", from);
    if (find(to)) fail(Errc::exists, "rename to", to);
    perform(*parent, {from.filename().string(), to.filename().string(), moved});
    changed();
  }
  bool sync_directory(const Path& path) override {
    const auto found = directory(path);
    if (counts_sync(path)) {
      found->durable_entries = found->entries;
      found->unsynced.clear();
    }
    changed();
    return true;
  }

  std::unique_ptr<DirectoryLock> try_lock(const Path& path) override {
    (void)directory(path);
    return std::make_unique<DirectoryLock>();
  }
  std::int64_t free_bytes(const Path& /*directory*/) const override {
    return std::numeric_limits<std::int64_t>::max();
  }

 private:
  using Page = std::vector<std::byte>;
  struct Inode;

  // One name goes, one comes, or both at once.
  struct Operation {
    std::string removed;
    std::string added;
    std::shared_ptr<Inode> inode;
  };

  struct Inode {
    bool is_directory = false;
    // Of a directory.
    std::map<std::string, std::shared_ptr<Inode>> entries;
    std::map<std::string, std::shared_ptr<Inode>> durable_entries;
    std::vector<Operation> unsynced;
    // Of a file: what has been of it since the last sync, oldest first, for the system writes when
    // it likes.
    std::vector<std::byte> content;
    std::vector<std::byte> durable_content;
    std::map<std::size_t, std::vector<Page>> pages;
    std::vector<std::size_t> sizes;
  };

  // What one crash makes of everything: some lose nearly all, some nearly nothing, so that each
  // single loss comes to be seen alone.
  class Chance {
   public:
    explicit Chance(unsigned seed)
        : engine_(seed), keep_page_(percent()), keep_size_(percent()), keep_operation_(percent()) {}

    bool keeps_page() { return below(100) < keep_page_; }
    bool keeps_size() { return below(100) < keep_size_; }
    bool keeps_operation() { return below(100) < keep_operation_; }
    std::size_t below(std::size_t end) { return engine_() % end; }

   private:
    std::size_t percent() {
      constexpr std::size_t moods[] = {0, 30, 60, 80, 90, 100};
      return moods[below(std::size(moods))];
    }

    std::mt19937 engine_;
    std::size_t keep_page_;
    std::size_t keep_size_;
    std::size_t keep_operation_;
  };

  class TornFile final : public File {
   public:
    TornFile(std::shared_ptr<Inode> inode, Path path, TornFileSystem& system)
        : inode_(std::move(inode)), path_(std::move(path)), system_(system) {}

    void read_at(std::int64_t offset, std::span<std::byte> into) const override {
      const auto begin = static_cast<std::size_t>(offset);
      const std::vector<std::byte>& content = inode_->content;
      if (begin > content.size() || into.size() > content.size() - begin) {
        throw Error(Errc::corrupt, "cannot read '" + path_.string() + "': it is cut short",
                    "RM202");
      }
      std::ranges::copy(std::span(content).subspan(begin, into.size()), into.begin());
    }
    void write_at(std::int64_t offset, std::span<const std::byte> from) override {
      const auto begin = static_cast<std::size_t>(offset);
      const std::size_t end = begin + from.size();
      if (end > inode_->content.size()) {
        inode_->content.resize(end);
        inode_->sizes.push_back(end);
      }
      std::ranges::copy(from, inode_->content.begin() + offset);
      for (std::size_t page = begin / page_bytes; page * page_bytes < end; ++page) {
        inode_->pages[page].push_back(page_of(inode_->content, page));
      }
      system_.changed();
    }
    std::int64_t size_bytes() const override { return std::ssize(inode_->content); }
    void sync() override {
      if (system_.counts_sync(path_)) {
        inode_->durable_content = inode_->content;
        inode_->pages.clear();
        inode_->sizes.clear();
      }
      system_.changed();
    }
    void forget_cache() noexcept override {}

   private:
    std::shared_ptr<Inode> inode_;
    Path path_;
    TornFileSystem& system_;
  };

  [[noreturn]] static void fail(Errc code, const char* verb, const Path& path) {
    throw Error(code, std::string("cannot ") + verb + " '" + path.string() + "'");
  }

  static Entry entry(const std::string& name, const Inode& inode) {
    return {name, inode.is_directory ? EntryKind::directory : EntryKind::regular,
            std::ssize(inode.content)};
  }

  std::shared_ptr<Inode> find(const Path& path) const {
    std::shared_ptr<Inode> at = root_;
    for (const Path& name : path.lexically_relative(root()).lexically_normal()) {
      if (name.empty() || name == ".") continue;
      const auto found = at->entries.find(name.string());
      if (found == at->entries.end()) return nullptr;
      at = found->second;
    }
    return at;
  }
  std::shared_ptr<Inode> directory(const Path& path) const {
    auto found = find(path);
    if (!found || !found->is_directory) fail(Errc::not_found, "find directory", path);
    return found;
  }
  std::shared_ptr<Inode> regular(const Path& path) const {
    auto found = find(path);
    if (!found || found->is_directory) fail(Errc::not_found, "open", path);
    return found;
  }

  void link(const Path& path, std::shared_ptr<Inode> inode) {
    if (find(path)) fail(Errc::exists, "create", path);
    perform(*directory(path.parent_path()), {{}, path.filename().string(), std::move(inode)});
  }
  static void unlink_all(Inode& from) {
    while (!from.entries.empty()) {
      const auto [name, inode] = *from.entries.begin();
      unlink_all(*inode);
      perform(from, {name, {}, nullptr});
    }
  }
  static void perform(Inode& in, Operation operation) {
    apply(operation, in.entries);
    in.unsynced.push_back(std::move(operation));
  }
  static void apply(const Operation& operation,
                    std::map<std::string, std::shared_ptr<Inode>>& entries) {
    if (!operation.removed.empty()) entries.erase(operation.removed);
    if (!operation.added.empty()) entries[operation.added] = operation.inode;
  }

  bool counts_sync(const Path& path) {
    synced_.push_back(path);
    return syncs_++ != dropped_sync_;
  }
  void changed() const {
    if (look_) look_();
  }

  static Page page_of(std::span<const std::byte> content, std::size_t number) {
    Page page(page_bytes);
    const std::size_t begin = std::min(number * page_bytes, content.size());
    const auto there = content.subspan(begin, std::min(page_bytes, content.size() - begin));
    std::ranges::copy(there, page.begin());
    return page;
  }

  static std::shared_ptr<Inode> surviving(const Inode& from, Chance& chance) {
    auto found = std::make_shared<Inode>();
    found->is_directory = from.is_directory;
    if (!from.is_directory) {
      found->content = found->durable_content = surviving_content(from, chance);
      return found;
    }
    // Nothing says in which order operations reach the medium.
    auto entries = from.durable_entries;
    for (const Operation& operation : from.unsynced) {
      if (chance.keeps_operation()) apply(operation, entries);
    }
    for (const auto& [name, inode] : entries) found->entries[name] = surviving(*inode, chance);
    found->durable_entries = found->entries;
    return found;
  }

  static std::vector<std::byte> surviving_content(const Inode& from, Chance& chance) {
    std::vector<std::byte> content = from.durable_content;
    content.resize((from.content.size() + page_bytes - 1) / page_bytes * page_bytes);
    for (const auto& [number, versions] : from.pages) {
      const Page page = surviving_page(page_of(from.durable_content, number), versions, chance);
      std::ranges::copy(page, content.begin() + static_cast<std::ptrdiff_t>(number * page_bytes));
    }
    content.resize(surviving_size(from, chance));
    return content;
  }

  // The last version, one before it, or the first sectors of one over another that is older.
  static Page surviving_page(const Page& durable, const std::vector<Page>& versions,
                             Chance& chance) {
    if (chance.keeps_page()) return versions.back();
    const std::size_t newer = chance.below(versions.size() + 1);
    const std::size_t older = chance.below(newer + 1);
    const auto version = [&](std::size_t at) -> const Page& {
      return at == 0 ? durable : versions[at - 1];
    };
    Page page = version(older);
    const std::size_t sectors = chance.below(page_bytes / sector_bytes + 1);
    std::ranges::copy(std::span(version(newer)).first(sectors * sector_bytes), page.begin());
    return page;
  }

  static std::size_t surviving_size(const Inode& from, Chance& chance) {
    if (chance.keeps_size() || from.sizes.empty()) return from.content.size();
    const std::size_t which = chance.below(from.sizes.size() + 1);
    return which == 0 ? from.durable_content.size() : from.sizes[which - 1];
  }

  static void copy(const Inode& from, const Path& into) {
    if (from.is_directory) {
      std::filesystem::create_directory(into);
      for (const auto& [name, inode] : from.entries) copy(*inode, into / name);
      return;
    }
    std::ofstream stream(into, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(from.content.data()), std::ssize(from.content));
    if (!stream.flush()) throw std::runtime_error("cannot write " + into.string());
  }

  static std::shared_ptr<Inode> empty_directory() {
    auto made = std::make_shared<Inode>();
    made->is_directory = true;
    return made;
  }

  std::shared_ptr<Inode> root_ = empty_directory();
  std::function<void()> look_;
  std::int64_t syncs_ = 0;
  std::int64_t dropped_sync_ = -1;
  std::vector<Path> synced_;
};

}  // namespace remesh::test
