// A machine that stops at any moment leaves no checkpoint or a whole one, on a medium that keeps
// what was synced and of the rest what it likes.

#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chunked_content.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/native_store.hpp"
#include "seeds.hpp"
#include "shard_reader.hpp"
#include "temporary_directory.hpp"
#include "torn_file_system.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using test::TornFileSystem;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

const std::string temporary_name = ".ckpt.remesh-test";

Catalog catalog() {
  Catalog catalog = test::small_catalog({{{"rows", DType::f32, Box{{0, 80}, {0, 32}}}, 1},
                                         {{"smooth.rows", DType::bf16, Box{{0, 90}, {0, 64}}}, 1},
                                         {{"smooth.all", DType::u8, Box{{0, 5000}}}, 0},
                                         {{"bias", DType::bf16, Box{{0, 3}}}, 3}});
  catalog.side = {test::side_file("config.json"), test::side_file("tokenizer.model")};
  return catalog;
}

std::string certificate() {
  std::string text = R"({"proved":"sent")";
  const Digest digest = digest_of(std::as_bytes(std::span(text)));
  text += certificate_end;
  text += to_string(digest);
  text += "\"}";
  return text;
}

// Judges what is open. What is said about a certificate keeps nobody from reading, and is written
// behind the rest.
std::string wrong_with_content(const Reader& reader, bool certified) {
  std::string wrong = test::damage_in(reader);
  return !certified && wrong == "certificate of proof.json" ? "" : wrong;
}

std::string wrong_with_block(const File& file, const native::ShardIndex& index,
                             const Extent& extent, std::int64_t k) {
  const bool chunked = is_chunked(extent);
  const Frame frame =
      chunked ? index.frames[static_cast<std::size_t>(extent.first_frame + k)] : Frame{};
  const std::int64_t begin =
      chunked ? frame.offset_bytes : extent.offset_bytes + k * ExtentMap::block_bytes;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(chunked ? frame.length_bytes : extent.length_bytes));
  file.read_at(begin, bytes);
  const Digest recorded = index.block_crcs[static_cast<std::size_t>(extent.first_block + k)];
  return digest_of(bytes) == recorded ? "" : "calls itself sealed, but its payload is not there";
}

// A shard calls itself sealed only once its payload is on the medium.
std::string wrong_with_shard(const FileSystem& files, const fs::path& path) {
  CollectedFindings findings;
  const std::string name = path.filename().string();
  const auto file = files.open(path);
  const auto read = native::read_header(*file, path, name, findings);
  if (!read || !read->header.sealed) return {};
  const auto index = native::read_index(*file, read->header, path, name, findings);
  if (!index) return {};
  for (const Extent& extent : index->extents) {
    for (std::int64_t k = 0; k < num_blocks(extent); ++k) {
      if (auto wrong = wrong_with_block(*file, *index, extent, k); !wrong.empty()) return wrong;
    }
  }
  return {};
}

// A directory of this name is no checkpoint, but nothing in it may look like what it is not.
std::string wrong_with_temporary(const FileSystem& files, const fs::path& path) {
  for (const Entry& entry : files.list(path)) {
    if (!entry.name.ends_with(".h5")) continue;
    if (auto wrong = wrong_with_shard(files, path / entry.name); !wrong.empty()) return wrong;
  }
  CollectedFindings findings;
  const auto reader = open_native(files, path, findings);
  return findings.all.empty() ? wrong_with_content(*reader, /*certified=*/false) : "";
}

std::string wrong_with_published(const FileSystem& files, const fs::path& path) {
  CollectedFindings findings;
  const auto reader = open_native(files, path, findings);
  if (!findings.all.empty()) return "refused: " + findings.all.front().message;
  if (!files.look(path / certificate_name)) return "has no certificate";
  return wrong_with_content(*reader, /*certified=*/true);
}

// Judges what a reboot finds in a directory. Empty if it keeps the promise.
std::string wrong_with(const FileSystem& files, const fs::path& medium, bool published) {
  try {
    if (files.look(medium / temporary_name)) {
      const auto wrong = wrong_with_temporary(files, medium / temporary_name);
      if (!wrong.empty()) return "under the temporary name: " + wrong;
    }
    if (files.look(medium / "ckpt")) return wrong_with_published(files, medium / "ckpt");
    return published ? "lost after it was published" : "";
  } catch (const Error& error) {
    return error.what();
  }
}

// One save, with crashes after each of its calls.
class Save {
 public:
  Save(std::optional<int> level, unsigned seeds) : level_(level), seeds_(seeds) {
    files_.after_each([this] { crash(); });
  }

  // Leaves out a sync. Crashes before it are those of any save.
  void drop_sync(std::int64_t number) {
    files_.drop_sync(number);
    first_sync_ = number;
  }

  const TornFileSystem& files() const noexcept { return files_; }
  // What the first state that breaks the promise is; empty if none does.
  const std::string& wrong() const noexcept { return wrong_; }
  unsigned states() const noexcept { return states_; }
  int whole() const noexcept { return whole_; }

  void run() {
    const auto writer =
        create_native(files_, TornFileSystem::root() / "ckpt", catalog(), test::side_bytes,
                      {.compress_level = level_, .job_id = "test"});
    test::write_and_seal(*writer);
    writer->certify(certificate());
    published_ = writer->publish();
    ASSERT_TRUE(published_);
    crash();
  }

 private:
  void crash() {
    if (files_.num_syncs() <= first_sync_) return;
    for (unsigned seed = 0; seed < seeds_ && wrong_.empty(); ++seed) {
      const TornFileSystem found = files_.crash(seed + 1000 * states_);
      wrong_ = wrong_with(found, TornFileSystem::root(), published_);
      if (states_ % 64 == 0 && wrong_.empty()) wrong_ = wrong_on_this_machine(found);
      if (!wrong_.empty()) wrong_ += fmt::format(" (state {}, seed {})", states_, seed);
      if (found.look(TornFileSystem::root() / "ckpt")) ++whole_;
      ++states_;
    }
  }

  std::string wrong_on_this_machine(const TornFileSystem& found) const {
    const test::TemporaryDirectory directory;
    found.copy_to(directory / "medium");
    return wrong_with(posix_file_system(), directory / "medium", published_);
  }

  std::optional<int> level_;
  unsigned seeds_;
  std::int64_t first_sync_ = -1;
  TornFileSystem files_;
  bool published_ = false;
  std::string wrong_;
  unsigned states_ = 0;
  int whole_ = 0;
};

class Torn : public ::testing::TestWithParam<std::optional<int>> {};

TEST_P(Torn, ACrashLeavesNothingOrTheWholeCheckpoint) {
  Save save(GetParam(), test::num_seeds(12));
  save.run();
  EXPECT_THAT(save.wrong(), IsEmpty());
  EXPECT_GT(save.states(), 200u);
  EXPECT_GT(save.whole(), 4) << "of the crashes in publish() some came after the rename";
  RecordProperty("states", static_cast<int>(save.states()));
}

TEST_P(Torn, NoSyncCanBeLeftOut) {
  Save intact(GetParam(), 0);
  intact.run();
  ASSERT_GT(intact.files().num_syncs(), 12);
  for (std::int64_t number = 0; number < intact.files().num_syncs(); ++number) {
    Save save(GetParam(), 128);
    save.drop_sync(number);
    save.run();
    RecordProperty(fmt::format("sync_{}", number), save.wrong());
    EXPECT_THAT(save.wrong(), Not(IsEmpty()))
        << "sync " << number << ", of "
        << intact.files().synced()[static_cast<std::size_t>(number)];
  }
}

INSTANTIATE_TEST_SUITE_P(Native, Torn, ::testing::Values(std::nullopt, 1),
                         [](const auto& param) { return param.param ? "compressed" : "plain"; });

// ---- The medium itself

// What crashes leave of a file, and how often nothing of it.
struct Left {
  std::set<std::string> contents;
  int absent = 0;
};

Left left_by_crashes(const TornFileSystem& files, const fs::path& name) {
  Left left;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const TornFileSystem found = files.crash(seed);
    const fs::path path = TornFileSystem::root() / name;
    if (found.look(path)) {
      left.contents.insert(read_text(found, path, 10'000));
    } else {
      ++left.absent;
    }
  }
  return left;
}

void write(File& file, std::int64_t offset, const std::string& text) {
  file.write_at(offset, test::bytes_of(text));
}

TEST(TornFileSystem, KeepsWhatWasSynced) {
  TornFileSystem files;
  const auto file = files.create(TornFileSystem::root() / "file");
  write(*file, 0, std::string(5000, 'a'));
  file->sync();
  EXPECT_GT(left_by_crashes(files, "file").absent, 0) << "its name was not synced";
  files.sync_directory(TornFileSystem::root());
  const Left left = left_by_crashes(files, "file");
  EXPECT_EQ(left.absent, 0);
  EXPECT_EQ(left.contents, std::set{std::string(5000, 'a')});
}

TEST(TornFileSystem, LosesTearsAndKeepsPages) {
  TornFileSystem files;
  const auto file = files.create(TornFileSystem::root() / "file");
  files.sync_directory(TornFileSystem::root());
  write(*file, 0, std::string(8192, 'a'));
  file->sync();
  write(*file, 0, std::string(8192, 'b'));
  const Left left = left_by_crashes(files, "file");
  const std::string a(4096, 'a');
  const std::string b(4096, 'b');
  std::string torn = b + b;
  torn.replace(4096 + 512, 4096 - 512, 4096 - 512, 'a');
  EXPECT_THAT(left.contents, IsSupersetOf({a + a, a + b, b + a, b + b, torn}));
  EXPECT_THAT(left.contents, Each(SizeIs(8192)));
}

TEST(TornFileSystem, LosesSizesAndLeavesZerosWherePagesDidNotCome) {
  TornFileSystem files;
  const auto file = files.create(TornFileSystem::root() / "file");
  files.sync_directory(TornFileSystem::root());
  write(*file, 0, std::string(100, 'a'));
  const Left left = left_by_crashes(files, "file");
  EXPECT_EQ(left.contents,
            (std::set{std::string(), std::string(100, '\0'), std::string(100, 'a')}));
}

TEST(TornFileSystem, DoesDirectoryOperationsInAnyOrderButEachWhole) {
  TornFileSystem files;
  const fs::path root = TornFileSystem::root();
  files.create_directory(root / "a");
  files.create(root / "a" / "file");
  files.rename_no_replace(root / "a", root / "b");
  std::set<std::vector<std::string>> found;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const TornFileSystem after = files.crash(seed);
    std::vector<std::string> names;
    for (const Entry& entry : after.list(root)) {
      names.push_back(entry.name);
      for (const Entry& inner : after.list(root / entry.name)) names.push_back(inner.name);
    }
    found.insert(names);
  }
  const std::set<std::vector<std::string>> possible{{}, {"a"}, {"a", "file"}, {"b"}, {"b", "file"}};
  EXPECT_EQ(found, possible);
}

}  // namespace
}  // namespace remesh
