#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace remesh {

/// Owned bytes in host memory, aligned to a page, not initialised. Move-only.
class Buffer {
 public:
  Buffer() = default;

  /// Throws Error(out_of_memory). Precondition: size_bytes >= 0.
  explicit Buffer(std::int64_t size_bytes);

  /// The other buffer is empty afterwards.
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() = default;

  std::span<std::byte> bytes() noexcept { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  std::int64_t size_bytes() const noexcept { return static_cast<std::int64_t>(size_); }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };

  std::unique_ptr<std::byte, Free> data_;  // the first of them
  std::size_t size_ = 0;
};

}  // namespace remesh
