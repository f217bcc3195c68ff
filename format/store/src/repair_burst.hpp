#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "remesh/core/burst.hpp"
#include "remesh/core/digest.hpp"
#include "remesh/store/repair.hpp"

namespace remesh::native {

/// What is longer is not searched for a burst: each MiB costs some 20 ms.
inline constexpr std::int64_t most_searched_bytes = std::int64_t{64} << 20;

/// Undoes the burst that explains why the bytes do not have the recorded digest. Afterwards they
/// have it; nothing, and nothing changed, if no single burst explains it.
std::optional<Burst> undo_burst(std::span<std::byte> bytes, Digest recorded);

/// The same for a text.
std::optional<Burst> undo_burst(std::string& text, Digest recorded);

/// Whether two texts of one length differ in no more than most_burst_bits consecutive bits.
bool differ_by_burst(std::string_view left, std::string_view right) noexcept;

/// The bytes that a burst touches in something that begins at `offset`.
ByteRange bytes_of_burst(const Burst& burst, std::int64_t offset) noexcept;

/// "1 bit flipped back: bit 3 of byte 200000"
std::string flipped_back(const Burst& burst, std::int64_t offset);

}  // namespace remesh::native
