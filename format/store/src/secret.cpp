#include "remesh/store/secret.hpp"

#include <algorithm>
#include <cassert>
#include <sodium.h>

#include "remesh/core/error.hpp"
#include "sodium_ready.hpp"

namespace remesh {

Secret::Secret(std::size_t size_bytes) : size_(size_bytes) {
  native::sodium_ready();
  bytes_.reset(static_cast<std::byte*>(::sodium_malloc(size_bytes)));
  if (bytes_ == nullptr) throw Error(Errc::out_of_memory, "cannot set memory aside for a secret");
  std::ranges::fill(bytes(), std::byte{0});
}

Secret::Secret(std::string_view text) : Secret(text.size()) {
  std::ranges::copy(std::as_bytes(std::span(text)), bytes().begin());
}

std::span<std::byte> Secret::bytes() noexcept {
  return {bytes_.get(), bytes_ == nullptr ? 0 : size_};
}

std::span<const std::byte> Secret::bytes() const noexcept {
  return {bytes_.get(), bytes_ == nullptr ? 0 : size_};
}

void Secret::shrink(std::size_t size_bytes) noexcept {
  assert(size_bytes <= bytes().size());
  size_ = size_bytes;
}

// Wipes all that was set aside, not only what shrink() left.
void Secret::Wipe::operator()(std::byte* bytes) const noexcept { ::sodium_free(bytes); }

}  // namespace remesh
