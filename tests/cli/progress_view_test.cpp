#include "progress_view.hpp"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const ProgressState half{"reading", std::int64_t{512} << 20, std::int64_t{1} << 30, 2.0};

TEST(ProgressState, KnowsShareRateAndRest) {
  EXPECT_EQ(half.percent(), 50);
  EXPECT_EQ(half.bytes_per_second(), static_cast<double>(std::int64_t{256} << 20));
  EXPECT_EQ(half.seconds_left(), 2.0);
}

TEST(ProgressState, DividesByNothing) {
  const ProgressState empty{"reading", 0, 0, 0};
  EXPECT_EQ(empty.percent(), 100);
  EXPECT_EQ(empty.bytes_per_second(), 0);
  EXPECT_EQ(empty.seconds_left(), 0);
}

TEST(ProgressText, SaysStageBytesRateAndTime) {
  EXPECT_EQ(plain_text(half), "reading 50% 512.0 MiB/1.0 GiB 256.0 MiB/s ETA 0:02");
  EXPECT_EQ(bar_text(half),
            "reading [############............]  50%  512.0 MiB/1.0 GiB  256.0 MiB/s  ETA 0:02");
}

TEST(ProgressText, IsOneObjectAsJson) {
  EXPECT_EQ(json_text(half),
            R"({"event":"progress","stage":"reading","bytes":536870912,"total_bytes":1073741824,)"
            R"("seconds":2.0,"bytes_per_second":268435456})");
}

std::string shown(std::string_view mode, bool quiet) {
  testing::internal::CaptureStderr();
  {
    const auto progress = make_progress(mode, quiet);
    progress->begin("reading", 100);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 25; ++k) progress->advance(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    progress->end();
  }
  return testing::internal::GetCapturedStderr();
}

TEST(MakeProgress, SaysNothingWhenItIsOffOrQuiet) {
  EXPECT_THAT(shown("off", /*quiet=*/false), IsEmpty());
  EXPECT_THAT(shown("auto", /*quiet=*/true), IsEmpty());
}

TEST(MakeProgress, DoesNotTroubleWhoIsDoneWithinASecond) {
  EXPECT_THAT(shown("plain", /*quiet=*/false), IsEmpty());
  EXPECT_THAT(shown("bar", /*quiet=*/false), IsEmpty());
}

TEST(MakeProgress, EndsEachStageWithALineOfJson) {
  EXPECT_THAT(shown("json", /*quiet=*/false), HasSubstr(R"("bytes":100,"total_bytes":100)"));
}

}  // namespace
}  // namespace remesh
