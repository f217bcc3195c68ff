// A disk that fails while a checkpoint is repaired: whatever call it is, there is a whole copy or
// none, and the source is as it was.

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "failing_reads.hpp"
#include "faulty_file_system.hpp"
#include "repair_fixture.hpp"

namespace remesh::test {
namespace {

using ::testing::IsEmpty;

class RepairFaultTest : public RepairTest {
 protected:
  struct Damage {
    std::string what;
    std::function<void()> make;
  };

  // Damage that is mended in every way there is.
  std::vector<Damage> damages() {
    return {{"a flipped bit",
             [this] {
               use_golden("copies");
               put(shard(1, 3), flipped(shard(1, 3), 5000, 1));
             }},
            {"a missing shard",
             [this] {
               use_golden("copies");
               fs::remove(source_ / shard(0, 3));
             }},
            {"a lost header of a packed shard",
             [this] {
               use_golden("compressed");
               put(shard(0, 2), spoiled(shard(0, 2), 0, 4096));
             }},
            {"a lost manifest", [this] {
               use_golden("compressed");
               fs::remove(source_ / "manifest.json");
             }}};
  }

  // Nothing but the source and, perhaps, the whole copy.
  void expect_whole_or_absent(bool there) {
    EXPECT_EQ(fs::exists(target_), there);
    if (there) {
      EXPECT_THAT(differing(files_in(target_), original_), IsEmpty());
    }
    fs::remove_all(target_);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1) << "a leftover";
  }
};

// The last call syncs the parent, after the rename: then the copy is there, and whole.
TEST_F(RepairFaultTest, AFailureOfAnyCallLeavesNothingVisible) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.what);
    damage.make();
    FaultyFileSystem counting(files_);
    ASSERT_TRUE(repair(/*dry_run=*/false, &counting).written);
    expect_whole_or_absent(true);
    ASSERT_GT(counting.calls(), 10);
    const Files before = files_in(source_);
    for (std::int64_t call = 0; call < counting.calls() && !HasFailure(); ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      FaultyFileSystem files(files_);
      files.fail_at(call);
      try {
        repair(/*dry_run=*/false, &files);
        ADD_FAILURE() << "it failed unnoticed";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::io) << error.what();
      }
      expect_whole_or_absent(call + 1 == counting.calls());
    }
    EXPECT_THAT(differing(files_in(source_), before), IsEmpty());
    fs::remove_all(source_);
  }
}

// What cannot be read is lost: it is mended like all else, or the copy is refused. Read again after
// it was written, the copy is to be whole.
TEST_F(RepairFaultTest, AFailureOfAnyReadLosesNothingUnseen) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.what);
    damage.make();
    FailingReads counting(files_);
    ASSERT_TRUE(repair(/*dry_run=*/false, &counting).written);
    expect_whole_or_absent(true);
    ASSERT_GT(counting.reads(), 10);
    for (std::int64_t read = 0; read < counting.reads() && !HasFailure(); ++read) {
      SCOPED_TRACE("read " + std::to_string(read));
      FailingReads files(files_);
      files.fail_at(read);
      bool written = false;
      try {
        const RepairReport report = repair(/*dry_run=*/false, &files);
        written = report.written;
        EXPECT_EQ(written, report.lost.empty());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::io) << error.what();
      }
      expect_whole_or_absent(written);
    }
    fs::remove_all(source_);
  }
}

TEST_F(RepairFaultTest, ADryRunChangesNothing) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.what);
    damage.make();
    FaultyFileSystem files(files_);
    EXPECT_FALSE(repair(/*dry_run=*/true, &files).mended.empty());
    EXPECT_EQ(files.calls(), 0);
    fs::remove_all(source_);
  }
}

}  // namespace
}  // namespace remesh::test
