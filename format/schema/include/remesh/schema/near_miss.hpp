#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remesh {

/// How many letters must be put in, left out, exchanged, or swapped with their neighbour to turn
/// one word into the other. O(a * b).
inline std::size_t typing_errors(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t exchange = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + exchange});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

/// The known word that was probably meant: the nearest, the first of equals, if at most a third of
/// its letters (but one at least) are wrong. Nothing for long texts.
inline std::optional<std::string_view> near_miss(std::string_view written,
                                                 std::span<const std::string_view> known) {
  constexpr std::size_t longest = 64;
  std::optional<std::string_view> nearest;
  std::size_t fewest = 0;
  if (written.size() > longest) return nearest;
  for (const std::string_view word : known) {
    const std::size_t errors = typing_errors(written, word);
    if (errors > std::max<std::size_t>(1, word.size() / 3)) continue;
    if (nearest && errors >= fewest) continue;
    nearest = word;
    fewest = errors;
  }
  return nearest;
}

/// "; did you mean 'tp'?", to be put after an error's text, or nothing.
inline std::string did_you_mean(std::string_view written, std::span<const std::string_view> known) {
  const auto meant = near_miss(written, known);
  return meant ? "; did you mean '" + std::string(*meant) + "'?" : std::string();
}

inline std::string did_you_mean(std::string_view written,
                                std::initializer_list<std::string_view> known) {
  return did_you_mean(written, std::span(known.begin(), known.size()));
}

}  // namespace remesh
