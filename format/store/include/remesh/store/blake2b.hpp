#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace remesh {

/// BLAKE2b-256 of bytes that come one after the other: what `b2sum -l 256` prints of a file that
/// holds them. Unlike a CRC it holds against intent.
class Blake2b {
 public:
  using Hash = std::array<std::byte, 32>;

  /// Throws Error(internal) if libsodium does not start.
  Blake2b();
  ~Blake2b();
  Blake2b(Blake2b&&) noexcept;
  Blake2b& operator=(Blake2b&&) noexcept;

  void add(std::span<const std::byte> bytes) noexcept;

  /// To be called once, and nothing after it.
  Hash end() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace remesh
