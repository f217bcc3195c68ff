#include "remesh/store/limited_file_system.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "native_fixture.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

double seconds_to_read(std::int64_t bytes_per_second, int threads) {
  test::TemporaryDirectory directory;
  test::set_content(directory / "file", std::string(60'000, 'x'));
  LimitedFileSystem files(posix_file_system(), bytes_per_second);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> readers;
  for (int reader = 0; reader < threads; ++reader) {
    readers.emplace_back([&] {
      const auto file = files.open(directory / "file");
      std::vector<std::byte> bytes(20'000);
      for (const int part : {0, 1, 2}) file->read_at(20'000 * part, bytes);
      EXPECT_EQ(bytes.front(), std::byte{'x'});
    });
  }
  for (std::thread& reader : readers) reader.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Only that it is not faster: a busy machine may always be slower.
TEST(LimitedFileSystem, ReadsNoFasterThanItMayAllThreadsTogether) {
  EXPECT_GE(seconds_to_read(600'000, 1), 0.1);
  EXPECT_GE(seconds_to_read(600'000, 3), 0.3);
}

TEST(LimitedFileSystem, ARateOfZeroIsNoLimit) { EXPECT_LT(seconds_to_read(0, 1), 10.0); }

// Its turn would come in 20 s.
TEST(LimitedFileSystem, AReadThatWaitsHearsAStop) {
  test::TemporaryDirectory directory;
  test::set_content(directory / "file", std::string(10'000, 'x'));
  StopFlag stop;
  LimitedFileSystem files(posix_file_system(), 500, &stop);
  const auto file = files.open(directory / "file");
  std::vector<std::byte> bytes(10'000);
  std::thread other([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request(2);
  });
  const auto begin = std::chrono::steady_clock::now();
  file->read_at(0, bytes);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  other.join();
}

TEST(LimitedFileSystem, EverythingElsePassesThrough) {
  test::TemporaryDirectory directory;
  LimitedFileSystem files(posix_file_system(), 1'000'000);
  test::write_checkpoint(directory / "ckpt", test::tiny_catalog(), {.job_id = "test"}, files);
  EXPECT_EQ(test::what_differs(*test::open_strict(directory / "ckpt")), "");
}

}  // namespace
}  // namespace remesh
