#include "remesh/execute/machine_rates.hpp"

#include <gtest/gtest.h>

namespace remesh {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

// For a GiB: writing 2 s (1 s of processor), reading 0.5 s (0.2) cached and 4 s (0.3) cold, hashing
// 0.1 s (0.2), copying 0.05 s (0.1); 1000 pieces in 0.5 s; two workers.
MachineRates rates() {
  return {.workers = 2,
          .write = {gib, 2, 1},
          .read_cached = {gib, 0.5, 0.2},
          .read_cold = {gib, 4, 0.3},
          .hash = {gib, 0.1, 0.2},
          .copy = {gib, 0.05, 0.1},
          .pieces = 1000,
          .pieces_seconds = 0.5};
}

TEST(Predict, ASlowMediumDecides) {
  const JobCost job{.read_bytes = 3 * gib, .write_bytes = 3 * gib, .workers = 2};
  EXPECT_DOUBLE_EQ(predict(job, rates()).cached, 3 * 2.0);
  EXPECT_DOUBLE_EQ(predict(job, rates()).cold, 3 * (2.0 + 4.0));
}

// For a GiB: 0.2 read, 0.2 and 0.2 hashed, 0.1 copied, 1 written: 1.7 s of processor.
TEST(Predict, TheProcessorsDecideWhereTheMediumIsFast) {
  MachineRates fast = rates();
  fast.write.seconds = fast.read_cold.seconds = 0.01;
  const JobCost job{.read_bytes = gib, .write_bytes = gib, .workers = 2};
  EXPECT_DOUBLE_EQ(predict(job, fast).cached, 1.7 / 2);
  EXPECT_DOUBLE_EQ(predict(job, fast).cold, 1.8 / 2);
}

TEST(Predict, MoreWorkersThanWereMeasuredAreNoHelp) {
  MachineRates fast = rates();
  fast.write.seconds = 0.01;
  JobCost job{.read_bytes = gib, .write_bytes = gib, .workers = 1};
  EXPECT_DOUBLE_EQ(predict(job, fast).cached, 1.7);
  job.workers = 64;
  EXPECT_DOUBLE_EQ(predict(job, fast).cached, 1.7 / 2);
}

TEST(Predict, CopiesAreWrittenAndHashed) {
  MachineRates fast = rates();
  fast.write.seconds = 0.01;
  const JobCost job{.read_bytes = gib, .write_bytes = 2 * gib, .workers = 1};
  EXPECT_DOUBLE_EQ(predict(job, fast).cached, 1.7 + 1.2);
}

TEST(Predict, NoJobReadsFasterThanItMay) {
  JobCost job{.read_bytes = gib, .write_bytes = gib, .workers = 2, .read_limit = gib / 100};
  EXPECT_NEAR(predict(job, rates()).cached, 100, 1e-3);
  job.read_limit = 1000 * gib;
  EXPECT_DOUBLE_EQ(predict(job, rates()).cached, 2);
}

TEST(Predict, PiecesAreCreatedBefore) {
  const JobCost job{.read_bytes = 0, .write_bytes = 0, .pieces = 3000, .workers = 2};
  EXPECT_DOUBLE_EQ(predict(job, rates()).cached, 1.5);
}

TEST(Predict, WhatIsReadBackComesFromTheMedium) {
  JobCost job{.read_bytes = gib, .write_bytes = gib, .workers = 2};
  const double without = predict(job, rates()).cached;
  job.read_back = true;
  EXPECT_DOUBLE_EQ(predict(job, rates()).cached, without + 4);
}

// For a GiB: 0.3 read and 0.2 hashed.
TEST(Predict, WhatIsReadBackIsHashed) {
  MachineRates fast = rates();
  fast.write.seconds = fast.read_cold.seconds = 0.01;
  JobCost job{.read_bytes = gib, .write_bytes = gib, .workers = 2};
  const double without = predict(job, fast).cached;
  job.read_back = true;
  EXPECT_DOUBLE_EQ(predict(job, fast).cached, without + 0.5 / 2);
}

}  // namespace
}  // namespace remesh
