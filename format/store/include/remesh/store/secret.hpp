#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace remesh {

/// Bytes that nobody else shall see: a key or a password. They lie in memory that is kept out of
/// swap and core dumps where the system allows it, and are wiped when they go. Never copied, never
/// printed.
class Secret {
 public:
  Secret() = default;
  /// All zero. Throws Error(out_of_memory).
  explicit Secret(std::size_t size_bytes);
  /// A copy; to wipe the text itself stays the caller's duty.
  explicit Secret(std::string_view text);

  std::span<std::byte> bytes() noexcept;
  std::span<const std::byte> bytes() const noexcept;

  /// Keeps the first bytes: what was read into a larger place. Precondition: no more than there
  /// are.
  void shrink(std::size_t size_bytes) noexcept;

 private:
  struct Wipe {
    void operator()(std::byte* bytes) const noexcept;
  };

  std::unique_ptr<std::byte[], Wipe> bytes_;
  std::size_t size_ = 0;
};

}  // namespace remesh
