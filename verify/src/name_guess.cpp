#include "name_guess.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace remesh::detail {
namespace {

using Descs = std::span<const TensorDesc* const>;

// From a few names the rule is guessed; all names then say how good it is.
constexpr std::size_t most_sampled = 64;

bool alike(const TensorDesc& a, const TensorDesc& b) { return a.extent == b.extent; }

// How many bytes both names have in common at their ends, in whole words between dots.
std::size_t common_tail(std::string_view a, std::string_view b) {
  const auto [at, other] = std::ranges::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  auto tail = static_cast<std::size_t>(at - a.rbegin());
  const auto begins_word = [&tail](std::string_view name) {
    return tail == name.size() || name[name.size() - tail - 1] == '.';
  };
  while (tail > 0 && !(begins_word(a) && begins_word(b))) --tail;
  return tail;
}

using Heads = std::pair<std::string_view, std::string_view>;

// What stands before the longest tail that a name has in common with another of its shape; nothing
// if several have that tail.
std::optional<Heads> heads_of(const TensorDesc& desc, Descs others) {
  std::size_t longest = 0;
  const TensorDesc* best = nullptr;
  for (const TensorDesc* other : others) {
    if (!alike(desc, *other)) continue;
    const std::size_t tail = common_tail(desc.name, other->name);
    if (tail == 0 || tail < longest) continue;
    best = tail == longest ? nullptr : other;
    longest = tail;
  }
  if (best == nullptr) return std::nullopt;
  const auto head = [longest](const std::string& name) {
    return std::string_view(name).substr(0, name.size() - longest);
  };
  return Heads(head(desc.name), head(best->name));
}

std::optional<Heads> likeliest_heads(Descs left, Descs right) {
  std::map<Heads, std::size_t> seen;
  const std::size_t step = (left.size() + most_sampled - 1) / most_sampled;
  for (std::size_t i = 0; i < left.size(); i += step) {
    if (const auto heads = heads_of(*left[i], right)) ++seen[*heads];
  }
  const auto most =
      std::ranges::max_element(seen, {}, [](const auto& each) { return each.second; });
  if (most == seen.end()) return std::nullopt;
  return most->first;
}

// How many names fit, and the first that does.
struct Fits {
  Index count = 0;
  const TensorDesc* left = nullptr;
  const TensorDesc* right = nullptr;

  void add(const TensorDesc& l, const TensorDesc& r) {
    if (count++ > 0) return;
    left = &l;
    right = &r;
  }
};

Fits fits_of(const Heads& heads, Descs left, Descs right) {
  std::unordered_map<std::string_view, const TensorDesc*> named;
  for (const TensorDesc* desc : right) named.emplace(desc->name, desc);
  Fits fits;
  std::string wanted;
  for (const TensorDesc* desc : left) {
    if (!desc->name.starts_with(heads.first)) continue;
    wanted.assign(heads.second).append(desc->name, heads.first.size());
    const auto found = named.find(wanted);
    if (found != named.end() && alike(*desc, *found->second)) fits.add(*desc, *found->second);
  }
  return fits;
}

// Tensors of one dtype and shape, paired off in order.
Fits shapes_of(Descs left, Descs right) {
  std::map<std::pair<DType, Box>, std::vector<const TensorDesc*>> by_shape;
  for (auto at = right.rbegin(); at != right.rend(); ++at) {
    by_shape[{(*at)->dtype, (*at)->extent}].push_back(*at);
  }
  Fits fits;
  for (const TensorDesc* desc : left) {
    const auto found = by_shape.find({desc->dtype, desc->extent});
    if (found == by_shape.end() || found->second.empty()) continue;
    fits.add(*desc, *found->second.back());
    found->second.pop_back();
  }
  return fits;
}

std::string words_of(const Heads& heads) {
  const auto& [left, right] = heads;
  if (right.empty()) return fmt::format("but for '{}' at their begin", left);
  if (left.empty()) return fmt::format("with '{}' before them", right);
  return fmt::format("with '{}' in place of '{}'", right, left);
}

}  // namespace

std::string guess_names(Descs left, Descs right, const SideNames& sides) {
  const auto few = static_cast<Index>(std::min(left.size(), right.size()));
  if (few == 0) return {};
  const auto is_many = [few](const Fits& fits) { return fits.count > 0 && 2 * fits.count >= few; };
  if (const auto heads = likeliest_heads(left, right)) {
    if (const Fits fits = fits_of(*heads, left, right); is_many(fits)) {
      return fmt::format(
          "{} of the {} names that only {} has are those of {} {}: '{}' would be '{}'", fits.count,
          left.size(), sides.left, sides.right, words_of(*heads), fits.left->name,
          fits.right->name);
    }
  }
  if (const Fits fits = shapes_of(left, right); is_many(fits)) {
    return fmt::format(
        "{} of the {} tensors that only {} has are of the dtype and shape of one that "
        "only {} has, under other names: '{}' may be '{}'",
        fits.count, left.size(), sides.left, sides.right, fits.left->name, fits.right->name);
  }
  return {};
}

}  // namespace remesh::detail
