#include "tolerant_reader.hpp"

#include <algorithm>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

// What is wrong with the bytes themselves, and not with the machine that reads them.
bool damaged(Errc code) {
  return code == Errc::corrupt || code == Errc::not_found || code == Errc::unsafe;
}

}  // namespace

bool TolerantReader::try_read(std::uint32_t file, std::int64_t offset,
                              std::span<std::byte> into) const {
  try {
    inner_.read_bytes(file, offset, into);
    return true;
  } catch (const Error& error) {
    if (!damaged(error.code())) throw;
    std::ranges::fill(into, std::byte{0});
    Finding finding;
    finding.id = error.id().empty() ? "RM203" : error.id();
    finding.file = extents().files()[file].name;
    finding.bytes = ByteRange{offset, offset + std::ssize(into)};
    finding.message = error.what();
    const std::lock_guard lock(mutex_);
    missing_.emplace(file, offset);
    if (known_.insert(finding.file).second) findings_.add(std::move(finding));
    return false;
  }
}

bool TolerantReader::was_missing(std::uint32_t file, std::int64_t offset) const {
  const std::lock_guard lock(mutex_);
  return missing_.contains({file, offset});
}

}  // namespace remesh::detail
