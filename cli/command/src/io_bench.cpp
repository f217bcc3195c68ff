#include "io_bench.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "remesh/adapters/open.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/digest.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/catalog.hpp"
#include "remesh/store/writer.hpp"

namespace remesh {
namespace {

constexpr std::int64_t panel_bytes = std::int64_t{2} << 20;  // what a job handles at a time
constexpr int rounds = 3;
constexpr std::int64_t num_pieces = 1000;

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

StageCost timed(std::int64_t bytes, const std::function<void()>& work) {
  const double before = processor_seconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  constexpr double least = 1e-6;  // clocks may be coarse
  return {bytes, std::max(taken.count(), least), std::max(processor_seconds() - before, least)};
}

StageCost median(std::vector<StageCost> costs) {
  std::ranges::sort(costs, {}, &StageCost::seconds);
  return costs[costs.size() / 2];
}

// Removes what it made, whatever happens.
class Scratch {
 public:
  Scratch(FileSystem& files, const FileSystem::Path& directory)
      : files_(files),
        path_(directory / fmt::format(".remesh-bench-{:08x}", std::random_device{}())) {
    files_.create_directory(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { clear(); }

  const FileSystem::Path& path() const noexcept { return path_; }

 private:
  void clear() noexcept {
    try {
      files_.remove_all(path_);
    } catch (const Error&) {  // who reads the directory sees what is left
    }
  }

  FileSystem& files_;
  const FileSystem::Path path_;
};

class IoBench {
 public:
  IoBench(FileSystem& files, const FileSystem::Path& directory, std::int64_t panels,
          const Context& context)
      : files_(files),
        pool_(context.pool),
        progress_(context.progress),
        stop_(context.stop),
        panels_(panels),
        held_(context.budget.reserve(2 * panel_bytes * pool_.size(), "buffers")),
        scratch_(files, directory),
        buffers_(static_cast<std::size_t>(pool_.size())) {
    for (std::size_t worker = 0; worker < buffers_.size(); ++worker) {
      buffers_[worker] = random_bytes(2 * panel_bytes, worker);
    }
  }

  MachineRates run() {
    std::vector<StageCost> write, cached, cold, hash, copy, pieces;
    progress_.begin("measuring", std::int64_t{5} * rounds * bytes());
    for (int round = 0; round < rounds; ++round) {
      create(round);
      write.push_back(timed(bytes(), [this] { write_all(); }));
      // Not before: no page of the round before may be used again.
      files_.remove_all(scratch_.path() / fmt::format("round-{}", round - 1));
      cached.push_back(timed(bytes(), [this] { read_all(); }));
      for (const auto& file : open_) file->forget_cache();
      cold.push_back(timed(bytes(), [this] { read_all(); }));
      open_.clear();
      hash.push_back(timed(bytes(), [this] { hash_all(); }));
      copy.push_back(timed(bytes(), [this] { copy_all(); }));
      pieces.push_back(timed(1, [&] { create_pieces(round); }));
    }
    progress_.end();
    MachineRates rates{pool_.size(), median(write), median(cached), median(cold),
                       median(hash), median(copy),  num_pieces,     median(pieces).seconds};
    return rates;
  }

 private:
  std::int64_t bytes() const noexcept { return panels_ * panel_bytes * pool_.size(); }

  static Buffer random_bytes(std::int64_t count, std::size_t seed) {
    Buffer buffer(count);
    std::uint64_t state = 0x9e3779b97f4a7c15 * (seed + 1);
    for (std::byte& byte : buffer.bytes()) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      byte = static_cast<std::byte>(state);
    }
    return buffer;
  }

  void create(int round) {
    const auto directory = scratch_.path() / fmt::format("round-{}", round);
    files_.create_directory(directory);
    for (int worker = 0; worker < pool_.size(); ++worker) {
      open_.push_back(files_.create(directory / fmt::format("{}", worker)));
    }
  }

  // Every worker does its own panels, one after another.
  void for_each_panel(const std::function<void(std::size_t worker, std::int64_t panel)>& work) {
    pool_.run(static_cast<std::size_t>(pool_.size()), [&](std::size_t index, int) {
      for (std::int64_t panel = 0; panel < panels_; ++panel) {
        stop_.check();
        work(index, panel);
        progress_.advance(panel_bytes);
      }
    });
  }

  std::span<std::byte> half(std::size_t worker, std::size_t which) {
    constexpr auto size = static_cast<std::size_t>(panel_bytes);
    return buffers_[worker].bytes().subspan(which * size, size);
  }

  // No two pages that are written are equal: some storage keeps equal ones once.
  void stamp(std::span<std::byte> bytes) {
    constexpr std::size_t page = 4096;
    for (std::size_t at = 0; at < bytes.size(); at += page) {
      const std::uint64_t number = pages_.fetch_add(1, std::memory_order_relaxed);
      std::memcpy(bytes.data() + at, &number, sizeof number);
    }
  }

  void write_all() {
    for_each_panel([&](std::size_t worker, std::int64_t panel) {
      const auto bytes = half(worker, 0);
      stamp(bytes);
      open_[worker]->write_at(panel * panel_bytes, bytes);
    });
    for (const auto& file : open_) file->sync();
  }

  void read_all() {
    for_each_panel([&](std::size_t worker, std::int64_t panel) {
      open_[worker]->read_at(panel * panel_bytes, half(worker, 1));
    });
  }

  void hash_all() {
    for_each_panel([&](std::size_t worker, std::int64_t) {
      sink_.fetch_xor(digest_of(half(worker, 0)).value, std::memory_order_relaxed);
    });
  }

  void copy_all() {
    for_each_panel([&](std::size_t worker, std::int64_t panel) {
      const auto from = half(worker, panel % 2 == 0 ? 0 : 1);
      std::ranges::copy(from, half(worker, panel % 2 == 0 ? 1 : 0).begin());
    });
  }

  void create_pieces(int round) {
    Catalog catalog;
    for (std::int64_t piece = 0; piece < num_pieces; ++piece) {
      catalog.tensors.push_back({fmt::format("model.layers.{}.self_attn.q_proj.weight", piece),
                                 DType::u8, Box{{0, 8}, {0, 8}}});
    }
    catalog.format = "remesh";
    const auto writer =
        create_writer(files_, scratch_.path() / fmt::format("pieces-{}", round), catalog, {}, {});
    const std::vector<std::byte> payload(64);
    for (std::size_t piece = 0; piece < catalog.tensors.size(); ++piece) {
      writer->write(piece, catalog.tensors[piece].extent, payload, {});
    }
    const std::vector<Digest> digests(catalog.tensors.size(), digest_of(payload));
    writer->seal(digests, digests);
    writer->publish();
  }

  FileSystem& files_;
  ThreadPool& pool_;
  Progress& progress_;
  const StopFlag& stop_;
  const std::int64_t panels_;  // of each worker
  const MemoryBudget::Reservation held_;
  Scratch scratch_;
  std::vector<Buffer> buffers_;  // two panels for each worker
  std::vector<std::unique_ptr<File>> open_;
  std::atomic<std::uint64_t> sink_{0};
  std::atomic<std::uint64_t> pages_{0};
};

// Each worker writes one panel at least.
std::int64_t panels_of(std::int64_t sample_bytes, int workers) {
  return std::max(sample_bytes / panel_bytes / workers, std::int64_t{1});
}

void check_room(const FileSystem& files, const FileSystem::Path& directory, std::int64_t bytes) {
  const std::int64_t free = files.free_bytes(directory);
  if (free / 2 >= bytes) return;
  throw Error(Errc::io,
              fmt::format("cannot measure {}: two samples of {} need room there, but {} are free; "
                          "choose a smaller `--size`",
                          directory.string(), format_bytes(bytes), format_bytes(free)),
              "RM702");
}

}  // namespace

MachineRates measure_rates(FileSystem& files, const FileSystem::Path& directory,
                           std::int64_t sample_bytes, const Context& context) {
  const int workers = context.pool.size();
  const std::int64_t panels = panels_of(sample_bytes, workers);
  check_room(files, directory, panels * panel_bytes * workers);
  return IoBench(files, directory, panels, context).run();
}

}  // namespace remesh
