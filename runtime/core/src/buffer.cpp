#include "remesh/core/buffer.hpp"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

// What direct I/O and pinning ask for. Larger pages are aligned to it too.
constexpr std::size_t page_bytes = 4096;

}  // namespace

Buffer::Buffer(std::int64_t size_bytes) : size_(static_cast<std::size_t>(size_bytes)) {
  if (size_bytes == 0) return;
  void* data = nullptr;
  if (posix_memalign(&data, page_bytes, size_) != 0) {
    throw Error(Errc::out_of_memory,
                fmt::format("cannot allocate a buffer of {} bytes: the system has no memory left",
                            size_bytes));
  }
  data_.reset(static_cast<std::byte*>(data));
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  data_ = std::move(other.data_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void Buffer::Free::operator()(std::byte* data) const noexcept { std::free(data); }

}  // namespace remesh
