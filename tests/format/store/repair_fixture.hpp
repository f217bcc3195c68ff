#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "native_fixture.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/repair.hpp"
#include "temporary_directory.hpp"

namespace remesh::test {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

inline Files files_in(const fs::path& directory) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), directory).string()] = content_of(entry.path());
  }
  return files;
}

// What is on the medium does not matter here, and tens of thousands of syncs take minutes.
class UnsyncedFileSystem final : public FileSystem {
 public:
  std::unique_ptr<File> open(const Path& path) const override { return inner_.open(path); }
  std::unique_ptr<File> create(const Path& path) override {
    return std::make_unique<Unsynced>(inner_.create(path));
  }
  std::unique_ptr<File> open_for_writing(const Path& path) override {
    return std::make_unique<Unsynced>(inner_.open_for_writing(path));
  }
  std::optional<Entry> look(const Path& path) const override { return inner_.look(path); }
  std::vector<Entry> list(const Path& path) const override { return inner_.list(path); }
  void create_directory(const Path& path) override { inner_.create_directory(path); }
  void remove_all(const Path& path) override { inner_.remove_all(path); }
  void rename_no_replace(const Path& from, const Path& to) override {
    inner_.rename_no_replace(from, to);
  }
  bool sync_directory(const Path&) override { return true; }
  std::unique_ptr<DirectoryLock> try_lock(const Path& path) override {
    return inner_.try_lock(path);
  }
  std::int64_t free_bytes(const Path& path) const override { return inner_.free_bytes(path); }

 private:
  class Unsynced final : public File {
   public:
    explicit Unsynced(std::unique_ptr<File> inner) : inner_(std::move(inner)) {}
    void read_at(std::int64_t offset, std::span<std::byte> into) const override {
      inner_->read_at(offset, into);
    }
    void write_at(std::int64_t offset, std::span<const std::byte> from) override {
      inner_->write_at(offset, from);
    }
    std::int64_t size_bytes() const override { return inner_->size_bytes(); }
    void sync() override {}
    void forget_cache() noexcept override {}

   private:
    std::unique_ptr<File> inner_;
  };

  FileSystem& inner_ = posix_file_system();
};

// The names of the files that are not the same in both.
inline std::vector<std::string> differing(const Files& left, const Files& right) {
  std::vector<std::string> names;
  for (const auto& [name, content] : left) {
    const auto other = right.find(name);
    if (other == right.end() || other->second != content) names.push_back(name);
  }
  for (const auto& [name, content] : right) {
    if (!left.contains(name)) names.push_back(name);
  }
  return names;
}

class RepairTest : public ::testing::Test {
 protected:
  // `golden`: a checkpoint of fixtures/golden/v1.
  void use_golden(const std::string& golden) {
    fs::copy(fs::path(REMESH_SOURCE_DIR) / "fixtures/golden/v1" / golden, source_,
             fs::copy_options::recursive);
    original_ = files_in(source_);
  }
  void use(const Catalog& catalog, std::int64_t copies, std::optional<int> level = {}) {
    write_checkpoint(source_, catalog,
                     {.copies = copies, .compress_level = level, .job_id = "test"});
    original_ = files_in(source_);
  }

  void put(const std::string& file, const std::string& content) {
    set_content(source_ / file, content);
  }
  void restore(const std::string& file) { put(file, original_.at(file)); }

  RepairReport repair(bool dry_run = false, FileSystem* files = nullptr) {
    return repair_native(files != nullptr ? *files : files_, source_, target_,
                         {.job_id = "0123456789abcdef", .dry_run = dry_run},
                         {pool_, budget_, progress_, stop_});
  }

  // A dry run, which must say what the repair said and leave nothing.
  void expect_foretold(const RepairReport& report) {
    const RepairReport dry = repair(/*dry_run=*/true);
    EXPECT_EQ(dry.mended, report.mended);
    EXPECT_EQ(dry.lost, report.lost);
    EXPECT_EQ(dry.notes, report.notes);
    EXPECT_EQ(dry.proven, report.proven);
    EXPECT_FALSE(dry.written);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1) << "it was written";
  }

  // The report, after the result was compared with the original, if there is one.
  RepairReport repair_and_compare() {
    const Files before = files_in(source_);
    RepairReport report = repair();
    EXPECT_THAT(differing(files_in(source_), before), ::testing::IsEmpty())
        << "the source was changed";
    EXPECT_EQ(fs::exists(target_), report.written);
    if (report.written) {
      EXPECT_TRUE(report.proven);
      EXPECT_THAT(differing(files_in(target_), original_), ::testing::IsEmpty());
      fs::remove_all(target_);
    }
    EXPECT_EQ(report.written, report.lost.empty() && !report.mended.empty());
    return report;
  }

  // Repairs, and expects the original.
  RepairReport expect_repaired() {
    RepairReport report = repair_and_compare();
    EXPECT_TRUE(report.written);
    EXPECT_THAT(report.lost, ::testing::IsEmpty()) << report.lost.front().message;
    return report;
  }

  RepairReport expect_refused() {
    RepairReport report = repair_and_compare();
    EXPECT_FALSE(report.written);
    EXPECT_FALSE(report.lost.empty());
    return report;
  }

  std::string flipped(const std::string& file, std::size_t at, int mask) const {
    std::string content = original_.at(file);
    content.at(at) = static_cast<char>(content.at(at) ^ mask);
    return content;
  }

  // Nothing of [begin, end) is as it was.
  std::string spoiled(const std::string& file, std::size_t begin, std::size_t end) const {
    std::string content = original_.at(file);
    for (std::size_t at = begin; at < end; ++at) content.at(at) = static_cast<char>(~content[at]);
    return content;
  }

  // The extent of copy `copy` of the first piece of a tensor, and its file.
  std::pair<Extent, std::string> piece(std::size_t tensor, std::uint32_t copy = 0) const {
    const auto reader = open_strict(source_);
    for (const std::uint32_t number : reader->extents().of(tensor)) {
      const Extent& extent = reader->extents().extents()[number];
      if (extent.copy == copy) return {extent, reader->extents().files()[extent.file].name};
    }
    throw std::logic_error("there is no such copy");
  }

  UnsyncedFileSystem files_;
  ThreadPool pool_{1};
  MemoryBudget budget_{MemoryBudget::least_bytes};
  Progress progress_;
  StopFlag stop_;
  TemporaryDirectory directory_;
  const fs::path source_ = directory_ / "source";
  const fs::path target_ = directory_ / "target";
  Files original_;
};

inline std::string shard(int rank, int ranks) {
  return "shard-0000" + std::to_string(rank) + "-of-0000" + std::to_string(ranks) + ".h5";
}

std::size_t begin_of(const Extent& extent) { return static_cast<std::size_t>(extent.offset_bytes); }
inline std::size_t end_of(const Extent& extent) {
  return static_cast<std::size_t>(extent.offset_bytes + extent.length_bytes);
}

}  // namespace remesh::test
