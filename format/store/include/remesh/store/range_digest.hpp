#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "remesh/core/digest.hpp"
#include "remesh/schema/finding.hpp"

namespace remesh {

/// The CRC of the bytes of `ranges`, one range behind the other. `read` fetches them, at most
/// ExtentMap::block_bytes at a time, and says whether they were there; nothing once they were not.
std::optional<Digest> digest_of_ranges(
    std::span<const ByteRange> ranges,
    const std::function<bool(std::int64_t at, std::span<std::byte> into)>& read);

}  // namespace remesh
