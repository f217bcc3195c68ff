#include "remesh/store/reader.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../contract/reader_contract.hpp"
#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/memory_store.hpp"
#include "write_numbered.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Bytes = std::vector<std::byte>;

struct ReadCall {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  const std::byte* into = nullptr;
};

// Files in memory that keep a record of what is asked of them.
class RecordingFiles final : public FileSystem {
 public:
  void put(const std::string& name, Bytes bytes) { files_[name] = std::move(bytes); }

  std::vector<ReadCall> take_reads() { return std::exchange(reads_, {}); }
  std::int64_t opened() const { return opened_; }
  std::int64_t most_open() const { return most_open_; }

  std::unique_ptr<File> open(const Path& path) const override {
    const auto found = files_.find(path.string());
    if (found == files_.end()) throw Error(Errc::not_found, "no file " + path.string());
    ++opened_;
    const std::int64_t now = ++open_;
    std::int64_t most = most_open_;
    while (now > most && !most_open_.compare_exchange_weak(most, now)) {
    }
    return std::make_unique<RecordedFile>(*this, found->second);
  }

  std::unique_ptr<File> create(const Path&) override { return nullptr; }
  std::unique_ptr<File> open_for_writing(const Path&) override { return nullptr; }
  std::optional<Entry> look(const Path&) const override { return std::nullopt; }
  std::vector<Entry> list(const Path&) const override { return {}; }
  void create_directory(const Path&) override {}
  void remove_all(const Path&) override {}
  void rename_no_replace(const Path&, const Path&) override {}
  bool sync_directory(const Path&) override { return true; }
  std::unique_ptr<DirectoryLock> try_lock(const Path&) override { return nullptr; }
  std::int64_t free_bytes(const Path&) const override { return 0; }

 private:
  class RecordedFile final : public File {
   public:
    RecordedFile(const RecordingFiles& home, const Bytes& bytes) : home_(home), bytes_(bytes) {}
    ~RecordedFile() override { --home_.open_; }

    void read_at(std::int64_t offset, std::span<std::byte> into) const override {
      const auto from = std::span(bytes_).subspan(static_cast<std::size_t>(offset), into.size());
      std::ranges::copy(from, into.begin());
      const std::lock_guard lock(home_.mutex_);
      home_.reads_.push_back({offset, std::ssize(into), into.data()});
    }
    void write_at(std::int64_t, std::span<const std::byte>) override {}
    std::int64_t size_bytes() const override { return std::ssize(bytes_); }
    void sync() override {}
    void forget_cache() noexcept override {}

   private:
    const RecordingFiles& home_;
    const Bytes& bytes_;
  };

  std::map<std::string, Bytes> files_;
  mutable std::mutex mutex_;
  mutable std::vector<ReadCall> reads_;
  mutable std::atomic<std::int64_t> opened_{0};
  mutable std::atomic<std::int64_t> open_{0};
  mutable std::atomic<std::int64_t> most_open_{0};
};

struct PackedBox {
  Box box;
  std::uint32_t copy = 0;
};

// One tensor, numbered, in one file, behind a header of 64 bytes.
std::unique_ptr<Reader> reader_of(RecordingFiles& files, const TensorDesc& desc,
                                  const std::vector<PackedBox>& boxes) {
  OpenCheckpoint open;
  open.catalog.tensors = {desc};
  Bytes file(64, std::byte{0xee});
  std::vector<Extent> extents;
  for (const PackedBox& each : boxes) {
    const Bytes bytes = test::numbered(desc, each.box);
    Extent extent;
    extent.copy = each.copy;
    extent.offset_bytes = std::ssize(file);
    extent.length_bytes = std::ssize(bytes);
    extent.box = each.box;
    extents.push_back(extent);
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  open.extents = ExtentMap({{"w.bin", std::ssize(file)}}, extents);
  open.paths = {"w.bin"};
  files.put("w.bin", std::move(file));
  return make_reader(files, std::move(open));
}

std::vector<std::pair<std::int64_t, std::int64_t>> places(const std::vector<ReadCall>& reads) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const ReadCall& read : reads) all.emplace_back(read.offset, read.length);
  return all;
}

using Place = std::pair<std::int64_t, std::int64_t>;

const TensorDesc weight{"w", DType::bf16, Box{{0, 8}, {0, 8}}};

TEST(Reader, ReadsWhatLiesTogetherOnBothSidesInOneGoAndIntoPlace) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{Box{{0, 4}, {0, 8}}}, {Box{{4, 8}, {0, 8}}}});
  Bytes into(6 * 8 * 2);
  reader->read(0, Box{{1, 7}, {0, 8}}, into, {});

  const std::vector<ReadCall> reads = files.take_reads();
  ASSERT_THAT(places(reads), ElementsAre(Place(64 + 16, 48), Place(64 + 64, 48)));
  EXPECT_EQ(reads[0].into, into.data());
  EXPECT_EQ(reads[1].into, into.data() + 48);
  EXPECT_EQ(test::what_differs(weight, Box{{1, 7}, {0, 8}}, into), "");
}

TEST(Reader, ReadsAWholeColumnBlockInOneGo) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{Box{{0, 8}, {0, 4}}}, {Box{{0, 8}, {4, 8}}}});
  EXPECT_EQ(test::what_differs(weight, weight.extent, test::read_box(*reader, 0, weight.extent)),
            "");
  EXPECT_THAT(places(files.take_reads()), ElementsAre(Place(64, 64), Place(128, 64)));
}

TEST(Reader, ReadsRowByRowOnlyWhatTheFileHasApart) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{weight.extent}});
  const Box box{{2, 4}, {1, 4}};
  EXPECT_EQ(test::what_differs(weight, box, test::read_box(*reader, 0, box)), "");
  EXPECT_THAT(places(files.take_reads()),
              ElementsAre(Place(64 + 2 * 16 + 2, 6), Place(64 + 3 * 16 + 2, 6)));
}

TEST(Reader, ReadsThroughAtMostOneMebibyteWhereBytesMustBeSpread) {
  const TensorDesc large{"large", DType::f64, Box{{0, 3000}, {0, 250}}};
  RecordingFiles files;
  const Box left{{0, 3000}, {0, 125}};
  const auto reader = reader_of(files, large, {{left}, {Box{{0, 3000}, {125, 250}}}});
  EXPECT_EQ(test::what_differs(large, large.extent, test::read_box(*reader, 0, large.extent)), "");

  const std::vector<ReadCall> reads = files.take_reads();
  EXPECT_THAT(reads, SizeIs(6)) << "3 MB in slabs of 1048 rows, twice";
  for (const ReadCall& read : reads) EXPECT_LE(read.length, std::int64_t{1} << 20);

  EXPECT_EQ(test::what_differs(large, left, test::read_box(*reader, 0, left)), "");
  EXPECT_THAT(places(files.take_reads()), ElementsAre(Place(64, 3'000'000)))
      << "but into place in one go";
}

TEST(Reader, ReadsCopyZero) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{weight.extent, 1}, {weight.extent, 0}});
  test::read_box(*reader, 0, weight.extent);
  EXPECT_THAT(places(files.take_reads()), ElementsAre(Place(64 + 128, 128)));
}

TEST(Reader, ReadsNothingForABoxWithoutElements) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{weight.extent}});
  reader->read(0, Box{{3, 3}, {0, 8}}, {}, {});
  EXPECT_THAT(files.take_reads(), IsEmpty());
}

TEST(Reader, NamesTheElementsThatAreNowhere) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{Box{{0, 4}, {0, 8}}}, {Box{{4, 8}, {0, 5}}}});
  test::read_box(*reader, 0, Box{{2, 8}, {0, 5}});
  files.take_reads();
  try {
    test::read_box(*reader, 0, Box{{2, 8}, {1, 8}});
    FAIL() << "read elements that are nowhere";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::incomplete);
    EXPECT_EQ(error.id(), "RM301");
    EXPECT_STREQ(error.what(),
                 "cannot read [2, 8) x [1, 8) of 'w' (bf16, [0, 8) x [0, 8)): no file holds "
                 "[4, 8) x [5, 8); is a file of the checkpoint missing?");
  }
  EXPECT_THAT(files.take_reads(), IsEmpty()) << "it says so before it reads";
}

// Another copy does not make up for it, nor does an overlap make up the count.
TEST(Reader, IsNotFooledByOverlapsAndCopies) {
  RecordingFiles files;
  const auto reader = reader_of(
      files, weight,
      {{Box{{0, 4}, {0, 8}}}, {Box{{0, 4}, {0, 4}}}, {Box{{4, 8}, {0, 4}}}, {weight.extent, 1}});
  EXPECT_THROW(test::read_box(*reader, 0, weight.extent), Error);
}

TEST(Reader, ReadsBytesAsTheyLie) {
  RecordingFiles files;
  const auto reader = reader_of(files, weight, {{weight.extent}});
  Bytes header(64);
  reader->read_bytes(0, 0, header);
  EXPECT_EQ(header, Bytes(64, std::byte{0xee}));
}

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class SideFiles : public ::testing::Test {
 protected:
  std::unique_ptr<Reader> reader_with(const std::string& stored, const SideFile& recorded) {
    OpenCheckpoint open;
    open.catalog.side = {{"a.txt", 0, {}}, recorded};
    open.side_paths = {"side/a.txt", "side/config.json"};
    files_.put("side/a.txt", {});
    files_.put("side/config.json", bytes_of(stored));
    return make_reader(files_, std::move(open));
  }

  void expect_refused(const std::string& stored, const std::string& message) {
    const auto reader = reader_with(stored, config_);
    try {
      reader->side(config_);
      FAIL() << "took a changed side file";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt);
      EXPECT_EQ(error.id(), "RM207");
      EXPECT_EQ(error.what(), message);
    }
  }

  RecordingFiles files_;
  const SideFile config_{"config.json", 9, digest_of(bytes_of("123456789"))};
};

TEST_F(SideFiles, AreReadWhole) {
  EXPECT_EQ(reader_with("123456789", config_)->side(config_), bytes_of("123456789"));
  EXPECT_THAT(reader_with("", config_)->side({"a.txt", 0, {}}), IsEmpty());
}

TEST_F(SideFiles, MustHaveTheRecordedDigest) {
  expect_refused("123456780",
                 "cannot read side file 'config.json': it hashes to crc64xz:ddd2020c23a0daf3, but "
                 "crc64xz:995dc9bbdf1939fa is recorded; the file changed after it was written");
}

TEST_F(SideFiles, MustHaveTheRecordedSizeBeforeAnyByteIsRead) {
  expect_refused("1234567890",
                 "cannot read side file 'config.json': it has 10 bytes, but 9 are recorded; the "
                 "file changed after it was written");
  EXPECT_THAT(files_.take_reads(), IsEmpty());
}

TEST_F(SideFiles, MustBeKnown) {
  const auto reader = reader_with("123456789", config_);
  try {
    reader->side({"vocab.txt", 0, {}});
    FAIL() << "read a file that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_STREQ(error.what(), "cannot read side file 'vocab.txt': the checkpoint has none");
  }
}

// As many files as wanted, each with one row.
std::unique_ptr<Reader> many_files(RecordingFiles& files, Index count) {
  const TensorDesc rows{"rows", DType::f32, Box{{0, count}, {0, 2}}};
  OpenCheckpoint open;
  open.catalog.tensors = {rows};
  std::vector<ExtentMap::FileEntry> entries;
  std::vector<Extent> extents;
  for (Index row = 0; row < count; ++row) {
    const std::string name = "f" + std::to_string(row);
    Extent extent;
    extent.file = static_cast<std::uint32_t>(row);
    extent.length_bytes = 8;
    extent.box = Box{{row, row + 1}, {0, 2}};
    extents.push_back(extent);
    entries.push_back({name, 8});
    open.paths.emplace_back(name);
    files.put(name, test::numbered(rows, extent.box));
  }
  open.extents = ExtentMap(std::move(entries), std::move(extents));
  return make_reader(files, std::move(open));
}

TEST(OpenFiles, AreOpenedWhenTheyAreReadAndThenKept) {
  RecordingFiles files;
  const auto reader = many_files(files, 100);
  EXPECT_EQ(files.opened(), 0);
  test::read_box(*reader, 0, Box{{0, 50}, {0, 2}});
  test::read_box(*reader, 0, Box{{0, 50}, {0, 1}});
  EXPECT_EQ(files.opened(), 50);
}

TEST(OpenFiles, AreAtMost512OfWhichTheLongestUnusedIsClosed) {
  RecordingFiles files;
  const auto reader = many_files(files, 600);
  const TensorDesc& desc = reader->catalog().tensors[0];
  test::read_box(*reader, 0, Box{{0, 512}, {0, 2}});
  EXPECT_EQ(files.opened(), 512);
  test::read_box(*reader, 0, Box{{0, 1}, {0, 2}});  // file 0 is now used last, file 1 first
  test::read_box(*reader, 0, Box{{512, 513}, {0, 2}});
  EXPECT_EQ(files.opened(), 513);
  test::read_box(*reader, 0, Box{{0, 1}, {0, 2}});
  EXPECT_EQ(files.opened(), 513) << "file 0 was closed";
  test::read_box(*reader, 0, Box{{1, 2}, {0, 2}});
  EXPECT_EQ(files.opened(), 514) << "file 1 was not";
  EXPECT_EQ(test::what_differs(desc, desc.extent, test::read_box(*reader, 0, desc.extent)), "");
  EXPECT_EQ(files.most_open(), 512);
}

TEST(OpenFiles, AreAtMost512ForManyThreads) {
  RecordingFiles files;
  const auto reader = many_files(files, 700);
  const TensorDesc& desc = reader->catalog().tensors[0];
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < wrong.size(); ++worker) {
    threads.emplace_back([&, worker] {
      test::Arbitrary arbitrary(worker);
      for (int draw = 0; draw < 300; ++draw) {
        const Index row = arbitrary.between(0, 699);
        const Box box{{row, row + 1}, {0, 2}};
        wrong[worker] += test::what_differs(desc, box, test::read_box(*reader, 0, box));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) EXPECT_EQ(each, "");
  EXPECT_LE(files.most_open(), 512);
}

// The contract, over files: a catalog in memory, written out byte for byte.
test::NumberedCheckpoint checkpoint_in_files(test::Arbitrary& arbitrary) {
  MemoryStore store(arbitrary.catalog());
  test::write_and_seal_numbered(*store.writer(), arbitrary);
  auto files = std::make_shared<RecordingFiles>();
  OpenCheckpoint open{store.catalog(), store.extents(), {}, {}};
  for (Rank rank = 0; rank < store.catalog().layout.mesh().num_ranks(); ++rank) {
    const auto bytes = store.bytes(rank);
    files->put("rank-" + std::to_string(rank), {bytes.begin(), bytes.end()});
    open.paths.emplace_back("rank-" + std::to_string(rank));
  }
  return {files, make_reader(*files, std::move(open))};
}

}  // namespace

namespace test {

INSTANTIATE_TEST_SUITE_P(Files, ReaderContract, ::testing::Values(&checkpoint_in_files));

}  // namespace test
}  // namespace remesh
