// How fast all cores together copy memory: the seconds for BYTES bytes, from touched pages to
// touched pages, in pieces of 2 MiB that each core copies over and over within 64 MiB of its own.
//
//   copy_memory BYTES

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto bytes = static_cast<std::size_t>(std::strtoull(argv[1], nullptr, 10));
  const std::size_t workers = std::max(1U, std::thread::hardware_concurrency());
  constexpr std::size_t piece = std::size_t{2} << 20;
  constexpr std::size_t window = std::size_t{64} << 20;
  std::vector<std::vector<char>> from(workers, std::vector<char>(window, 'x'));
  std::vector<std::vector<char>> to(workers, std::vector<char>(window, 'y'));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      std::size_t at = 0;
      for (std::size_t done = 0; done < bytes / workers; done += piece) {
        std::memcpy(to[worker].data() + at, from[worker].data() + at, piece);
        at = (at + piece) % window;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%.6f\n", taken.count());
  return 0;
}
