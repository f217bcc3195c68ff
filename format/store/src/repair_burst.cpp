#include "repair_burst.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace remesh::native {

std::optional<Burst> undo_burst(std::span<std::byte> bytes, Digest recorded) {
  const std::int64_t length = std::ssize(bytes);
  if (length > most_searched_bytes) return std::nullopt;
  const auto burst = locate_burst(recorded, digest_of(bytes), length);
  if (!burst) return std::nullopt;
  flip(*burst, bytes);
  if (digest_of(bytes) == recorded) return burst;
  flip(*burst, bytes);
  return std::nullopt;
}

std::optional<Burst> undo_burst(std::string& text, Digest recorded) {
  return undo_burst(std::as_writable_bytes(std::span(text)), recorded);
}

bool differ_by_burst(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) return false;
  std::size_t first = 8 * left.size();
  std::size_t last = 0;
  for (std::size_t at = 0; at < left.size(); ++at) {
    const auto flipped = static_cast<unsigned char>(left[at] ^ right[at]);
    if (flipped == 0) continue;
    first = std::min(first, 8 * at + static_cast<std::size_t>(std::countr_zero(flipped)));
    last = 8 * at + static_cast<std::size_t>(std::bit_width(flipped)) - 1;
  }
  return first <= last && last - first < static_cast<std::size_t>(most_burst_bits);
}

ByteRange bytes_of_burst(const Burst& burst, std::int64_t offset) noexcept {
  const std::int64_t last_bit = burst.first_bit + std::bit_width(burst.pattern) - 1;
  return {offset + burst.first_bit / 8, offset + last_bit / 8 + 1};
}

std::string flipped_back(const Burst& burst, std::int64_t offset) {
  const std::int64_t byte = offset + burst.first_bit / 8;
  const std::int64_t bit = burst.first_bit % 8;
  const int flipped = std::popcount(burst.pattern);
  if (flipped == 1) return fmt::format("1 bit flipped back: bit {} of byte {}", bit, byte);
  return fmt::format("{} bits flipped back, among {} from bit {} of byte {} on", flipped,
                     std::bit_width(burst.pattern), bit, byte);
}

}  // namespace remesh::native
