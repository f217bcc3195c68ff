#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "faulty_file_system.hpp"
#include "faulty_reader.hpp"
#include "faulty_writer.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/memory_store.hpp"
#include "remesh/store/tally.hpp"
#include "temporary_directory.hpp"
#include "write_numbered.hpp"

// The tests of remesh rest on ends that make mistakes. Here they are shown to make exactly the
// mistake that they are named for.

namespace remesh {
namespace {

using test::Fault;

// Two pieces of four rows.
Catalog two_pieces() {
  Split over_tp;
  over_tp.over = {"tp"};
  Catalog catalog;
  catalog.tensors = {{"w", DType::bf16, Box{{0, 8}, {0, 3}}}, {"one row", DType::u8, Box{{0, 1}}}};
  catalog.layout = Layout(Mesh({{"tp", 2}}), {{{over_tp}, {}}, {}}, {{0, -1}, {1, -1}}, {});
  return catalog;
}

std::vector<std::byte> rows(const TensorDesc& desc, const std::vector<Index>& numbers) {
  std::vector<std::byte> bytes;
  for (const Index row : numbers) {
    const auto one = test::numbered(desc, Box{{row, row + 1}, {0, 3}});
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

Tap into(Tally& tally) {
  return [&tally](auto file, auto offset, auto bytes) { tally.add(file, offset, bytes); };
}

class Faulty : public ::testing::Test {
 protected:
  test::FaultyReader reader(Fault fault, std::int64_t at_call = 0) {
    test::Arbitrary arbitrary(0);
    test::write_and_seal_numbered(*store_.writer(), arbitrary);
    return {store_.reader(), fault, at_call};
  }

  // Writes both pieces of the first tensor, row by row or whole.
  void write_all(test::FaultyWriter& writer, Index rows_at_once) {
    for (Index row = 0; row < 8; row += rows_at_once) {
      const Box box{{row, row + rows_at_once}, {0, 3}};
      writer.write(0, box, test::numbered(weight(), box), into(tally_));
    }
  }

  const TensorDesc& weight() const { return store_.catalog().tensors[0]; }
  bool sent_digest_is_true() const {
    return tally_.sum(0).digest == digest_of(test::numbered(weight()));
  }

  MemoryStore store_{two_pieces()};
  Tally tally_{store_.catalog().tensors, store_.extents(), /*with_blocks=*/false};
};

TEST_F(Faulty, ReaderOffByOneRowReadsEachElementOnceAndTellsTheTruth) {
  const test::FaultyReader reader = this->reader(Fault::off_by_one_row);
  std::vector<std::byte> bytes(8 * 6);
  reader.read(0, Box{{0, 5}, {0, 3}}, std::span(bytes).first(30), into(tally_));
  reader.read(0, Box{{5, 8}, {0, 3}}, std::span(bytes).subspan(30), into(tally_));
  EXPECT_EQ(bytes, rows(weight(), {1, 2, 3, 4, 5, 6, 7, 0}));
  EXPECT_TRUE(tally_.sum(0).complete);
  EXPECT_TRUE(sent_digest_is_true()) << "the tap hears the true places, so S is right";
  EXPECT_TRUE(reader.struck());
}

TEST_F(Faulty, ReaderOffByOneRowLeavesATensorOfOneRowAlone) {
  const test::FaultyReader reader = this->reader(Fault::off_by_one_row);
  std::vector<std::byte> byte(1);
  reader.read(1, Box{{0, 1}}, byte, {});
  EXPECT_EQ(byte, test::numbered(store_.catalog().tensors[1]));
  EXPECT_FALSE(reader.struck());
}

TEST_F(Faulty, ReaderFlipsABitOfWhatItHandsOverInOneCall) {
  const test::FaultyReader reader = this->reader(Fault::flipped_byte, /*at_call=*/1);
  int wrong = 0;
  for (int call = 0; call < 3; ++call) {
    std::vector<std::byte> bytes(8 * 6);
    reader.read(0, weight().extent, bytes, call == 1 ? into(tally_) : Tap{});
    const auto right = test::numbered(weight());
    for (std::size_t k = 0; k < bytes.size(); ++k) wrong += bytes[k] != right[k] ? 1 : 0;
    EXPECT_EQ(reader.struck(), call >= 1);
  }
  EXPECT_EQ(wrong, 1);
  EXPECT_TRUE(sent_digest_is_true()) << "what was read was right";
}

TEST_F(Faulty, ReaderSkipsOneCall) {
  const test::FaultyReader reader = this->reader(Fault::skipped);
  std::vector<std::byte> bytes(8 * 6, std::byte{0xcc});
  reader.read(0, weight().extent, bytes, into(tally_));
  EXPECT_EQ(bytes, std::vector<std::byte>(8 * 6, std::byte{0xcc}));
  EXPECT_EQ(tally_.bytes(), 0);
  reader.read(0, weight().extent, bytes, into(tally_));
  EXPECT_EQ(test::what_differs(weight(), weight().extent, bytes), "");
}

TEST_F(Faulty, WriterOffByOneRowWritesEachElementOnceAndTellsTheTruth) {
  for (const Index rows_at_once : {1, 2, 4}) {
    SCOPED_TRACE(rows_at_once);
    test::FaultyWriter writer(store_.writer(), Fault::off_by_one_row);
    Tally tally(store_.catalog().tensors, store_.extents(), /*with_blocks=*/false);
    for (Index row = 0; row < 8; row += rows_at_once) {
      const Box box{{row, row + rows_at_once}, {0, 3}};
      writer.write(0, box, test::numbered(weight(), box), into(tally));
    }
    std::vector<std::byte> bytes(8 * 6);
    store_.reader()->read(0, weight().extent, bytes, {});
    EXPECT_EQ(bytes, rows(weight(), {3, 0, 1, 2, 7, 4, 5, 6})) << "each piece by itself";
    EXPECT_TRUE(tally.sum(0).complete);
    EXPECT_EQ(tally.sum(0).digest, digest_of(bytes)) << "T is that of what was written";
    EXPECT_TRUE(writer.struck());
  }
}

TEST_F(Faulty, WriterFlipsABitOfWhatItHandsOverInOneCall) {
  test::FaultyWriter writer(store_.writer(), Fault::flipped_byte, /*at_call=*/3);
  write_all(writer, 1);
  EXPECT_TRUE(writer.struck());
  EXPECT_EQ(writer.calls(), 8);
  EXPECT_TRUE(tally_.sum(0).complete);
  EXPECT_FALSE(sent_digest_is_true());
}

TEST_F(Faulty, WriterSkipsOneCall) {
  test::FaultyWriter writer(store_.writer(), Fault::skipped, /*at_call=*/3);
  write_all(writer, 1);
  EXPECT_TRUE(writer.struck());
  EXPECT_FALSE(tally_.sum(0).complete);
  EXPECT_EQ(tally_.sum(0).bytes, 7 * 6);
}

class FaultyFileSystem : public ::testing::Test {
 protected:
  // Five calls that change something.
  void work() {
    files_.create_directory(home_ / "d");
    const auto file = files_.create(home_ / "d/f");
    file->write_at(0, std::vector<std::byte>(3));
    file->sync();
    files_.sync_directory(home_ / "d");
  }

  test::TemporaryDirectory home_;
  test::FaultyFileSystem files_{posix_file_system()};
};

TEST_F(FaultyFileSystem, CountsTheCallsThatChangeSomething) {
  work();
  EXPECT_EQ(files_.calls(), 5);
  EXPECT_EQ(files_.open(home_ / "d/f")->size_bytes(), 3);
  EXPECT_EQ(files_.list(home_ / "d").size(), 1U);
  EXPECT_EQ(files_.calls(), 5) << "reading changes nothing";
}

TEST_F(FaultyFileSystem, FailsTheCallThatItIsToldToAndNoOther) {
  files_.fail_at(2);
  try {
    work();
    FAIL() << "did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
    EXPECT_STREQ(error.what(), "write_at: injected failure of call 2");
  }
  EXPECT_EQ(files_.open(home_ / "d/f")->size_bytes(), 0) << "the write was not done";
  files_.remove_all(home_ / "d");
  work();
}

TEST_F(FaultyFileSystem, FailsEverythingAfterItStopped) {
  files_.stop_at(1);
  EXPECT_THROW(work(), Error);
  EXPECT_THROW(files_.remove_all(home_ / "d"), Error);
  EXPECT_TRUE(files_.look(home_ / "d")) << "what was done stays";
}

}  // namespace
}  // namespace remesh
