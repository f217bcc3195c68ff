#include "remesh/execute/transfer.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "faulty_reader.hpp"
#include "faulty_writer.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/store/memory_store.hpp"
#include "seeds.hpp"

namespace remesh {
namespace {

using ::testing::HasSubstr;

struct Machine {
  explicit Machine(int threads = 2) : pool(threads) {}

  Outcome transfer(const Reader& source, Writer& target, bool read_back = false) {
    Context context{pool, budget, progress, log, stop};
    return remesh::transfer(context, source, target, {.read_back = read_back});
  }

  ThreadPool pool;
  MemoryBudget budget{MemoryBudget::least_bytes};
  Progress progress;
  Log log;
  StopFlag stop;
};

std::span<std::byte> bytes_of(MemoryStore& store, const Extent& extent) {
  return store.bytes(extent.rank)
      .subspan(static_cast<std::size_t>(extent.offset_bytes),
               static_cast<std::size_t>(extent.length_bytes));
}

// Gives every element the value that its tensor's name and its global index say.
void fill(MemoryStore& store) {
  for (const Extent& extent : store.extents().extents()) {
    const TensorDesc& desc = store.catalog().tensors[extent.tensor];
    std::ranges::copy(test::numbered(desc, extent.box), bytes_of(store, extent).begin());
  }
}

// Whether every rank, replicas included, holds just that.
::testing::AssertionResult holds_numbers(MemoryStore& store) {
  for (const Extent& extent : store.extents().extents()) {
    const TensorDesc& desc = store.catalog().tensors[extent.tensor];
    const std::string differs = test::what_differs(desc, extent.box, bytes_of(store, extent));
    if (!differs.empty()) {
      return ::testing::AssertionFailure() << "rank " << extent.rank << ": " << differs;
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<std::byte> contents(MemoryStore& store) {
  std::vector<std::byte> all;
  for (Rank rank = 0; rank < store.catalog().layout.mesh().num_ranks(); ++rank) {
    const auto bytes = store.bytes(rank);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

Catalog on_another_layout(const Catalog& catalog, test::Arbitrary& arbitrary) {
  Catalog other = catalog;
  other.layout = arbitrary.layout(other.tensors);
  return other;
}

// Every rank's every element holds what its tensor's name and global index say, whatever the two
// layouts; the way back gives the first bytes again; and no layout changes a digest.
TEST(Transfer, CarriesEveryElementOfRandomLayoutsThereAndBack) {
  Machine machine;
  for (unsigned seed = 0; seed < test::num_seeds(1000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const Catalog catalog = arbitrary.catalog();
    MemoryStore first(catalog);
    fill(first);
    MemoryStore second(on_another_layout(catalog, arbitrary));
    MemoryStore third(catalog);
    const std::vector<std::byte> before = contents(first);

    auto there = second.writer();
    machine.transfer(*first.reader(), *there);
    ASSERT_TRUE(holds_numbers(second));
    auto back = third.writer();
    machine.transfer(*second.reader(), *back);
    ASSERT_EQ(contents(third), before);
  }
}

TEST(Transfer, GivesTheSameBytesForAnyNumberOfWorkers) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const Catalog catalog = arbitrary.catalog();
    const Catalog wanted = on_another_layout(catalog, arbitrary);
    MemoryStore source(catalog);
    fill(source);
    std::vector<std::byte> first;
    for (const int threads : {1, 2, 7}) {
      Machine machine(threads);
      MemoryStore target(wanted);
      auto writer = target.writer();
      machine.transfer(*source.reader(), *writer);
      if (first.empty()) first = contents(target);
      ASSERT_EQ(contents(target), first);
    }
  }
}

// A store with one matrix, split over two ranks.
class Matrix : public MemoryStore {
 public:
  explicit Matrix(Split split, std::vector<Digest> digests = {})
      : MemoryStore(one_matrix(std::move(split), std::move(digests))) {
    fill(*this);
  }

 private:
  static Catalog one_matrix(Split split, std::vector<Digest> digests) {
    Catalog catalog;
    catalog.tensors.push_back({"matrix", DType::f32, Box{{0, 8}, {0, 6}}});
    catalog.digests = std::move(digests);
    catalog.layout = Layout(Mesh({{"tp", 2}}), {Placement{{std::move(split)}, {}}}, {Placed{}}, {});
    return catalog;
  }
};

const Split rows{.dim = 0, .over = {"tp"}};
const Split columns{.dim = 1, .over = {"tp"}};

// A Writer that tells how far it was taken.
class WatchedWriter final : public Writer {
 public:
  struct Progress {
    bool sealed = false;
    bool caches_forgotten = false;  // when it was opened again
    bool published = false;
  };

  WatchedWriter(std::unique_ptr<Writer> inner, Progress& progress)
      : inner_(std::move(inner)), progress_(progress) {}

  const Catalog& catalog() const noexcept override { return inner_->catalog(); }
  const ExtentMap& extents() const noexcept override { return inner_->extents(); }
  ExtentMap extents_on_medium() const override { return inner_->extents_on_medium(); }
  void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
             const Tap& tap) override {
    inner_->write(tensor, box, from, tap);
  }
  void seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) override {
    progress_.sealed = true;
    inner_->seal(digests, block_crcs);
  }
  void forget_caches() override {
    forgotten_ = true;
    if (after_forgetting) after_forgetting();
  }
  std::unique_ptr<Reader> reopen() const override {
    progress_.caches_forgotten = forgotten_;
    return inner_->reopen();
  }
  void certify(const std::string& text) override { inner_->certify(text); }
  std::optional<Digest> manifest_digest() const override { return inner_->manifest_digest(); }
  bool publish() override {
    progress_.published = true;
    return inner_->publish();
  }

  std::function<void()> after_forgetting;

 private:
  std::unique_ptr<Writer> inner_;
  Progress& progress_;
  bool forgotten_ = false;
};

void expect_refused(const Reader& source, Writer& target, Errc code, const char* text) {
  Machine machine;
  try {
    machine.transfer(source, target);
    ADD_FAILURE() << "published it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_THAT(error.what(), HasSubstr("'matrix'"));
  }
}

// Each mistake that a Reader or a Writer can make, caught before anything is even sealed.
void expect_caught(test::Fault fault, bool reader, Errc code, const char* text) {
  Matrix source(rows);
  Matrix target(columns);
  WatchedWriter::Progress progress;
  auto watched = std::make_unique<WatchedWriter>(target.writer(), progress);
  if (reader) {
    const test::FaultyReader faulty(source.reader(), fault);
    expect_refused(faulty, *watched, code, text);
    EXPECT_TRUE(faulty.struck());
  } else {
    test::FaultyWriter faulty(std::move(watched), fault);
    expect_refused(*source.reader(), faulty, code, text);
    EXPECT_TRUE(faulty.struck());
  }
  EXPECT_FALSE(progress.sealed || progress.published);
}

TEST(Transfer, CatchesAReaderThatIsOffByOneRow) {
  expect_caught(test::Fault::off_by_one_row, /*reader=*/true, Errc::internal, "cannot publish");
}

TEST(Transfer, CatchesAWriterThatIsOffByOneRow) {
  expect_caught(test::Fault::off_by_one_row, /*reader=*/false, Errc::internal, "cannot publish");
}

TEST(Transfer, CatchesAByteThatChangesBehindTheReader) {
  expect_caught(test::Fault::flipped_byte, /*reader=*/true, Errc::internal, "cannot publish");
}

TEST(Transfer, CatchesAByteThatChangesBeforeTheFile) {
  expect_caught(test::Fault::flipped_byte, /*reader=*/false, Errc::internal, "cannot publish");
}

TEST(Transfer, CatchesAReadThatIsLeftOut) {
  expect_caught(test::Fault::skipped, /*reader=*/true, Errc::corrupt, "exactly once");
}

TEST(Transfer, CatchesAWriteThatIsLeftOut) {
  expect_caught(test::Fault::skipped, /*reader=*/false, Errc::internal, "cannot publish");
}

TEST(Transfer, RefusesASourceThatDoesNotHashToWhatItRecords) {
  Matrix source(rows, {Digest{1}});
  Matrix target(columns);
  const auto reader = source.reader();
  const auto writer = target.writer();
  expect_refused(*reader, *writer, Errc::corrupt, "crc64xz:0000000000000001 is recorded");
}

// A Writer whose second copies are not what its first ones are.
class UnequalCopies final : public Writer {
 public:
  explicit UnequalCopies(std::unique_ptr<Writer> inner) : inner_(std::move(inner)) {}

  const Catalog& catalog() const noexcept override { return inner_->catalog(); }
  const ExtentMap& extents() const noexcept override { return inner_->extents(); }
  ExtentMap extents_on_medium() const override { return inner_->extents_on_medium(); }
  void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
             const Tap& tap) override {
    inner_->write(tensor, box, from, [&](auto file, auto offset, auto bytes) {
      std::vector<std::byte> written(bytes.begin(), bytes.end());
      if (extents().at(file, offset)->copy > 0) written.front() ^= std::byte{1};
      tap(file, offset, written);
    });
  }
  void seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) override {
    inner_->seal(digests, block_crcs);
  }
  void forget_caches() override {}
  std::unique_ptr<Reader> reopen() const override { return inner_->reopen(); }
  void certify(const std::string& text) override { inner_->certify(text); }
  std::optional<Digest> manifest_digest() const override { return inner_->manifest_digest(); }
  bool publish() override { return inner_->publish(); }

 private:
  std::unique_ptr<Writer> inner_;
};

TEST(Transfer, CatchesACopyThatIsNotWhatTheFirstIs) {
  Matrix source(rows);
  Catalog twice = Matrix(rows).catalog();
  twice.layout = Layout(Mesh({{"tp", 2}, {"dp", 2}}), {Placement{{columns}, {}}}, {Placed{}}, {});
  MemoryStore target(twice);
  ASSERT_EQ(target.extents().copies(), 2U);
  UnequalCopies unequal(target.writer());
  expect_refused(*source.reader(), unequal, Errc::internal, "copy 1 of");
}

// Copy 0 is not what was recorded: whoever did not look at the others hears how to have them taken.
TEST(Transfer, NamesTheWayToOtherCopiesUnlessItWasGone) {
  Machine machine;
  Context context{machine.pool, machine.budget, machine.progress, machine.log, machine.stop};
  for (const bool chosen : {false, true}) {
    for (const bool several : {false, true}) {
      Catalog catalog = Matrix(columns).catalog();
      const Mesh mesh = several ? Mesh({{"tp", 2}, {"dp", 2}}) : Mesh({{"tp", 2}});
      catalog.layout = Layout(mesh, {Placement{{columns}, {}}}, {Placed{}}, {});
      catalog.digests = {Digest{1}};
      MemoryStore source(catalog);
      Matrix target(rows);
      const auto reader = source.reader();
      const auto writer = target.writer();
      try {
        transfer(context, *reader, *writer, {.source_name = "src", .copies_chosen = chosen});
        FAIL() << "believed the wrong bytes";
      } catch (const Error& error) {
        EXPECT_EQ(error.id(), "RM207");
        EXPECT_THAT(error.what(), HasSubstr("`remesh verify src`"));
        const bool is_told = std::string(error.what()).find("--replicas") != std::string::npos;
        EXPECT_EQ(is_told, several && !chosen) << error.what();
      }
    }
  }
}

// What was written and synced is not what the medium gives back.
TEST(Transfer, ReadingBackCatchesAMediumThatLies) {
  Machine machine;
  Matrix source(rows);
  Matrix target(columns);
  WatchedWriter::Progress progress;
  WatchedWriter writer(target.writer(), progress);
  writer.after_forgetting = [&target] { target.bytes(1)[5] ^= std::byte{0x20}; };
  try {
    machine.transfer(*source.reader(), writer, /*read_back=*/true);
    FAIL() << "believed the medium";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
    EXPECT_EQ(error.id(), "RM207");
    EXPECT_THAT(error.what(), HasSubstr("bytes [0, 96) of rank-1 ('matrix'"));
  }
  EXPECT_TRUE(progress.sealed && progress.caches_forgotten);
  EXPECT_FALSE(progress.published);
}

// Rows of f32 to columns of bf16: every value as the book has it, wherever it lies.
TEST(Transfer, CastsAndProvesTheCastByRecomputingIt) {
  Machine machine;
  Matrix source(rows);
  Catalog half = Matrix(columns).catalog();
  half.tensors[0].dtype = DType::bf16;
  MemoryStore target(half);
  Context context{machine.pool, machine.budget, machine.progress, machine.log, machine.stop};
  const auto reader = source.reader();
  const auto writer = target.writer();
  const Outcome outcome = transfer(context, *reader, *writer, {.may_change = true});
  EXPECT_EQ(outcome.cast_tensors, 1);
  EXPECT_EQ(outcome.read_bytes, 8 * 6 * 4);
  EXPECT_EQ(outcome.written_bytes, 8 * 6 * 2);

  const TensorDesc& wide = source.catalog().tensors[0];
  const std::vector<std::byte> values = test::numbered(wide);
  std::vector<std::byte> expected(values.size() / 2);
  const CastResult cast = cast_by_the_book(DType::f32, values, DType::bf16, expected);
  EXPECT_EQ(outcome.rounded_values, cast.rounded);
  std::vector<std::byte> found(expected.size());
  target.reader()->read(0, wide.extent, found, {});
  EXPECT_EQ(found, expected);
  EXPECT_EQ(target.catalog().digests[0], digest_of(expected));
}

TEST(Transfer, PublishesNothingThatItsCallerRefusesAtTheEnd) {
  Machine machine;
  Matrix source(rows);
  Matrix target(columns);
  WatchedWriter::Progress progress;
  WatchedWriter writer(target.writer(), progress);
  Context context{machine.pool, machine.budget, machine.progress, machine.log, machine.stop};
  TransferOptions options;
  options.before_publish = [&] {
    EXPECT_TRUE(progress.sealed && !progress.published);
    throw Error(Errc::unsafe, "as wanted");
  };
  EXPECT_THROW(transfer(context, *source.reader(), writer, options), Error);
  EXPECT_TRUE(progress.sealed && !progress.published);
  options.before_publish = {};
  transfer(context, *source.reader(), writer, options);
  EXPECT_TRUE(progress.published);
}

TEST(Transfer, CatchesAWriterThatIsOffByOneRowAfterACastToo) {
  Matrix source(rows);
  Catalog half = Matrix(columns).catalog();
  half.tensors[0].dtype = DType::bf16;
  MemoryStore target(half);
  test::FaultyWriter faulty(target.writer(), test::Fault::off_by_one_row);
  Machine machine;
  Context context{machine.pool, machine.budget, machine.progress, machine.log, machine.stop};
  EXPECT_THROW(transfer(context, *source.reader(), faulty, {.may_change = true}), Error);
  EXPECT_TRUE(faulty.struck());
}

TEST(Transfer, NeitherDropsNorCastsUnlessToldTo) {
  Matrix source(rows);
  Catalog half = Matrix(columns).catalog();
  half.tensors[0].dtype = DType::bf16;
  MemoryStore target(half);
  const auto writer = target.writer();
  expect_refused(*source.reader(), *writer, Errc::invalid_argument, "cannot write");
}

TEST(Transfer, RefusesATargetWithOtherTensors) {
  Matrix source(rows);
  Catalog other = source.catalog();
  other.tensors[0].dtype = DType::i32;
  MemoryStore target(other);
  const auto reader = source.reader();
  const auto writer = target.writer();
  expect_refused(*reader, *writer, Errc::invalid_argument, "cannot write");
}

TEST(Transfer, StopsWhenAskedAndPublishesNothing) {
  Machine machine;
  machine.stop.request(15);
  Matrix source(rows);
  Matrix target(columns);
  WatchedWriter::Progress progress;
  WatchedWriter guarded(target.writer(), progress);
  try {
    machine.transfer(*source.reader(), guarded);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::stopped);
  }
  EXPECT_FALSE(progress.sealed || progress.published);
}

TEST(Transfer, SaysHowManyWorkersTheBudgetIsFor) {
  Machine machine(200);
  Matrix source(rows);
  Matrix target(columns);
  const auto writer = target.writer();
  try {
    machine.transfer(*source.reader(), *writer);
    FAIL() << "gave 200 workers a panel each of 64 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("200 workers"));
  }
}

TEST(Transfer, ReportsWhatItMovedAndProved) {
  Machine machine;
  Matrix source(rows);
  Matrix target(columns);
  const auto writer = target.writer();
  const Outcome sent = machine.transfer(*source.reader(), *writer);
  EXPECT_EQ(sent.tensors, 1);
  EXPECT_EQ(sent.read_bytes, 8 * 6 * 4);
  EXPECT_EQ(sent.written_bytes, 8 * 6 * 4);
  EXPECT_EQ(sent.recorded, 0);
  EXPECT_EQ(sent.proved, Proved::sent);
  const auto again = target.writer();
  EXPECT_EQ(machine.transfer(*source.reader(), *again, /*read_back=*/true).proved,
            Proved::read_back);
}

}  // namespace
}  // namespace remesh
