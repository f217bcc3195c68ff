#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace remesh {

/// Finds numbers by name, where somebody else keeps the names: `name_of(number)` must return the
/// same as it did when that number was added. 8 bytes for each slot, at most two thirds of which
/// are taken; nothing is allocated for a single name.
class NameTable {
 public:
  static constexpr std::uint32_t most_numbers = UINT32_MAX - 1;

  /// Room for so many names.
  void reserve(std::size_t names) {
    const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(names + names / 2 + 1, 16));
    if (wanted > slots_.size()) grow(wanted);
  }

  void clear() noexcept {
    slots_.clear();
    size_ = 0;
  }

  std::size_t size() const noexcept { return size_; }

  /// Adds a name, unless it is there: then the number that it has. Precondition: number <
  /// most_numbers. O(1) on average.
  template <typename NameOf>
  std::optional<std::uint32_t> add(std::string_view name, std::uint32_t number,
                                   const NameOf& name_of) {
    reserve(size_ + 1);
    Slot& slot = slots_[find_slot(name, name_of)];
    if (slot.number != none) return slot.number;
    slot = {hash(name), number};
    ++size_;
    return std::nullopt;
  }

  /// The number of a name, if it is there.
  template <typename NameOf>
  std::optional<std::uint32_t> find(std::string_view name, const NameOf& name_of) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[find_slot(name, name_of)];
    if (slot.number == none) return std::nullopt;
    return slot.number;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number = none;
  };

  static std::uint32_t hash(std::string_view name) noexcept {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
  }

  // The slot that has the name, or the free one where it would go.
  template <typename NameOf>
  std::size_t find_slot(std::string_view name, const NameOf& name_of) const {
    const std::uint32_t wanted = hash(name);
    std::size_t at = wanted & (slots_.size() - 1);
    while (slots_[at].number != none &&
           (slots_[at].hash != wanted || std::string_view(name_of(slots_[at].number)) != name)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  void grow(std::size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == none) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number != none) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them
  std::size_t size_ = 0;
};

}  // namespace remesh
