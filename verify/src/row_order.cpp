#include "row_order.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remesh::detail {
namespace {

constexpr std::size_t most_listed = 16;
constexpr std::size_t most_witnesses = 32;

std::vector<Index> divisors(Index n) {
  std::vector<Index> all;
  for (Index d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    all.push_back(d);
    if (d * d != n) all.push_back(n / d);
  }
  std::ranges::sort(all);
  return all;
}

std::vector<std::uint64_t> sorted(std::span<const std::uint64_t> slices) {
  std::vector<std::uint64_t> all(slices.begin(), slices.end());
  std::ranges::sort(all);
  return all;
}

// Of each a * b * unit slices the right side has a rows of b units, the left one b rows of a.
struct Grid {
  Index a = 1;
  Index b = 1;
  Index unit = 1;

  Index period() const { return a * b * unit; }
  Index source(Index i) const {
    const Index within = i % period();
    const Index z = within % unit;
    const Index x = within / unit % a;
    const Index y = within / unit / a;
    return i - within + (x * b + y) * unit + z;
  }
};

// Rows of q, k and v in `groups` groups, each of them q, k, v. `per_kv`: rows of q for one of k.
struct Grouping {
  Index rows = 0;
  Index per_kv = 1;
  Index groups = 1;

  Index group_rows() const { return rows / groups; }
  Index kv_rows() const { return group_rows() / (per_kv + 2); }  // of k, or of v, in one group

  // The place in [all of q, all of k, all of v] of what stands at `i`.
  Index ungrouped(Index i) const {
    const Index group = i / group_rows();
    const Index within = i % group_rows();
    const Index kv = kv_rows();
    if (within < per_kv * kv) return group * per_kv * kv + within;
    const Index part = within < (per_kv + 1) * kv ? 0 : 1;  // k, v
    const Index base = (per_kv + part) * kv * groups;
    return base + group * kv + (within - (per_kv + part) * kv);
  }

  // The inverse.
  Index grouped(Index at) const {
    const Index kv = kv_rows();
    const Index all_kv = kv * groups;
    const Index part = std::max<Index>(at / all_kv - per_kv + 1, 0);  // q, k, v
    const Index before = part == 0 ? 0 : (per_kv + part - 1) * all_kv;
    const Index share = part == 0 ? per_kv * kv : kv;
    const Index offset = part == 0 ? 0 : (per_kv + part - 1) * kv;
    const Index within = at - before;
    return within / share * group_rows() + offset + within % share;
  }
};

class Naming {
 public:
  Naming(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right,
         std::string_view noun, const OrderHints& hints)
      : left_(left),
        right_(right),
        noun_(noun),
        hints_(hints),
        size_(std::ssize(left)),
        divisors_(divisors(size_)) {
    for (Index i = 0; i < size_ && witnesses_.size() < most_witnesses; ++i) {
      if (this->left(i) != this->right(i)) witnesses_.push_back(i);
    }
  }

  OrderName name() const {
    if (auto found = exchanged_pair()) return *found;
    if (auto found = interleaved()) return *found;
    if (auto found = rotated()) return *found;
    if (auto found = halves_exchanged()) return *found;
    if (auto found = regrouped_attention()) return *found;
    if (auto found = grid()) return *found;
    if (auto found = partly_interleaved()) return *found;
    if (auto found = reversed()) return *found;
    if (auto found = blocks()) return *found;
    return reordered();
  }

 private:
  std::uint64_t left(Index i) const { return left_[static_cast<std::size_t>(i)]; }
  std::uint64_t right(Index i) const { return right_[static_cast<std::size_t>(i)]; }

  template <typename Source>
  bool holds(Index begin, Index end, const Source& source) const {
    for (Index i = begin; i < end; ++i) {
      if (left(i) != right(source(i))) return false;
    }
    return true;
  }
  // Most candidates are wrong. Where nearly all slices are alike only those that moved tell it
  // soon.
  template <typename Source>
  bool holds(const Source& source) const {
    const auto fits = [&](Index i) { return left(i) == right(source(i)); };
    return std::ranges::all_of(witnesses_, fits) && holds(0, size_, source);
  }

  std::optional<OrderName> exchanged_pair() const {
    const auto& places = witnesses_;
    if (places.size() != 2) return std::nullopt;
    return OrderName{
        .name = fmt::format("exchange({}, {})", places[0], places[1]),
        .words = fmt::format("{} {} and {} are exchanged", noun_, places[0], places[1])};
  }

  OrderName interleaving(Index period, bool back, const std::string& where) const {
    const char* const what = back ? "the even ones before the odd ones" : "the two halves by turns";
    const char* const whose = back ? "halves" : "neighbours";
    return {.name = fmt::format("{}({})", back ? "deinterleave" : "interleave", period),
            .words = fmt::format(
                "of each {} {}{} the left side has {}{}, as rotary embeddings want "
                "them that turn {}",
                period, noun_, period == hints_.head_dim ? ", a head," : "", what, where, whose)};
  }

  std::optional<OrderName> interleaved() const {
    for (const Index period : divisors_) {
      if (period < 4 || period % 2 != 0) continue;
      const Grid there{.a = 2, .b = period / 2};
      const Grid back{.a = period / 2, .b = 2};
      if (holds([&](Index i) { return there.source(i); })) return interleaving(period, false, "");
      if (holds([&](Index i) { return back.source(i); })) return interleaving(period, true, "");
    }
    return std::nullopt;
  }

  // How many blocks of `grid` are moved so, if all others are as they were; otherwise 0.
  Index blocks_moved(const Grid& grid) const {
    Index count = 0;
    for (Index begin = 0; begin < size_; begin += grid.period()) {
      const Index end = begin + grid.period();
      if (holds(begin, end, [](Index i) { return i; })) continue;
      if (!holds(begin, end, [&](Index i) { return grid.source(i); })) return 0;
      ++count;
    }
    return count;
  }

  // Where a tensor holds queries and keys, which are turned, and values, which are not. Two blocks
  // of eight are no accident; one of four would be an exchange of two slices.
  std::optional<OrderName> partly_interleaved() const {
    for (const Index period : divisors_) {
      if (period < 8 || period % 2 != 0) continue;
      for (const bool back : {false, true}) {
        const Grid grid = back ? Grid{.a = period / 2, .b = 2} : Grid{.a = 2, .b = period / 2};
        const Index count = blocks_moved(grid);
        if (count < 2) continue;
        return interleaving(period, back,
                            fmt::format(" (in {} of {} places)", count, size_ / period));
      }
    }
    return std::nullopt;
  }

  std::optional<OrderName> halves_exchanged() const {
    for (const Index period : divisors_) {
      if (period % 2 != 0) continue;
      const Index half = period / 2;
      const auto other = [&](Index i) { return i % period < half ? i + half : i - half; };
      if (!holds(other)) continue;
      return OrderName{
          .name = fmt::format("exchange_halves({})", period),
          .words = fmt::format("the halves of each {} {} are exchanged", period, noun_)};
    }
    return std::nullopt;
  }

  std::optional<OrderName> rotated() const {
    constexpr int most_tried = 8;
    int tried = 0;
    for (Index shift = 1; shift < size_ && tried < most_tried; ++shift) {
      if (right(shift) != left(0)) continue;
      ++tried;
      if (!holds([&](Index i) { return (i + shift) % size_; })) continue;
      if (2 * shift == size_) {
        return OrderName{.name = fmt::format("exchange_halves({})", size_),
                         .words = fmt::format("the two halves of the {} are exchanged", noun_)};
      }
      return OrderName{.name = fmt::format("rotate({})", shift),
                       .words = fmt::format("the {} are shifted around by {}", noun_, shift)};
    }
    return std::nullopt;
  }

  OrderName attention(const Grouping& ours, const Grouping& theirs) const {
    const auto grouped = [&](const Grouping& side) {
      const Index kv = side.kv_rows();
      const std::string sizes = fmt::format("{} + {} + {}", side.per_kv * kv, kv, kv);
      if (side.groups == 1) return fmt::format("all of q, all of k, all of v ({})", sizes);
      return fmt::format("{} groups of q, k, v ({} each{})", side.groups, sizes,
                         side.groups == hints_.kv_heads ? ", a KV head" : "");
    };
    return {
        .id = "RM522",
        .name = fmt::format("group_qkv({} -> {})", theirs.groups, ours.groups),
        .words = fmt::format("as {} of queries, keys and values the left side has {}, the right "
                             "one {}",
                             noun_, grouped(ours), grouped(theirs))};
  }

  std::optional<OrderName> regrouped(Index per_kv) const {
    const auto counts = divisors(size_ / (per_kv + 2));
    for (const Index ours : counts) {
      for (const Index theirs : counts) {
        if (ours == theirs) continue;
        const Grouping l{size_, per_kv, ours};
        const Grouping r{size_, per_kv, theirs};
        if (holds([&](Index i) { return r.grouped(l.ungrouped(i)); })) return attention(l, r);
      }
    }
    return std::nullopt;
  }

  std::optional<OrderName> regrouped_attention() const {
    constexpr Index most_queries = 128;  // heads of q for one of k
    for (Index per_kv = 1; per_kv <= most_queries; ++per_kv) {
      if (size_ % (per_kv + 2) != 0) continue;
      if (auto found = regrouped(per_kv)) return found;
    }
    return std::nullopt;
  }

  OrderName grid_name(const Grid& grid) const {
    return {
        .name = fmt::format("transpose_blocks({} x {} of {})", grid.a, grid.b, grid.unit),
        .words = fmt::format("of each {} {}, the right side has {} times {} blocks of {}, and the "
                             "left one {} times {} of them",
                             grid.period(), noun_, grid.a, grid.b, grid.unit, grid.b, grid.a)};
  }

  std::optional<OrderName> grid_of(Index period) const {
    for (const Index unit : divisors(period)) {
      for (const Index a : divisors(period / unit)) {
        const Grid grid{.a = a, .b = period / unit / a, .unit = unit};
        if (grid.a < 2 || grid.b < 2) continue;
        if (holds([&](Index i) { return grid.source(i); })) return grid_name(grid);
      }
    }
    return std::nullopt;
  }

  std::optional<OrderName> grid() const {
    for (const Index period : divisors_) {
      if (auto found = grid_of(period)) return found;
    }
    return std::nullopt;
  }

  std::optional<OrderName> reversed() const {
    if (!holds([&](Index i) { return size_ - 1 - i; })) return std::nullopt;
    return OrderName{.name = "reverse",
                     .words = fmt::format("the {} stand in reverse order", noun_)};
  }

  // One number for each block of slices. Their order within the block counts.
  static std::vector<std::uint64_t> merged(std::span<const std::uint64_t> slices, Index block) {
    std::vector<std::uint64_t> blocks;
    blocks.reserve(slices.size() / static_cast<std::size_t>(block));
    for (std::size_t begin = 0; begin < slices.size(); begin += static_cast<std::size_t>(block)) {
      std::uint64_t hash = 0;
      for (const std::uint64_t slice : slices.subspan(begin, static_cast<std::size_t>(block))) {
        hash = (hash ^ slice) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 32U;
      }
      blocks.push_back(hash);
    }
    return blocks;
  }

  std::optional<OrderName> blocks() const {
    for (auto block = divisors_.rbegin(); block != divisors_.rend(); ++block) {
      if (*block == size_ || *block == 1) continue;
      const auto ours = merged(left_, *block);
      const auto theirs = merged(right_, *block);
      if (sorted(ours) != sorted(theirs)) continue;
      auto order = sources(ours, theirs);
      const std::size_t count = order.size();
      order.resize(std::min(count, most_listed));
      return OrderName{
          .name = fmt::format("blocks({})", *block),
          .words = fmt::format("blocks of {} {} stand in the order {}{}", *block, noun_,
                               fmt::join(order, ", "), count > most_listed ? ", ..." : "")};
    }
    return std::nullopt;
  }

  // Which of `theirs` stands at each place of `ours`: the first of those that are alike and not
  // taken yet. What stayed where it was is taken first.
  static std::vector<Index> sources(std::span<const std::uint64_t> ours,
                                    std::span<const std::uint64_t> theirs) {
    std::vector<std::pair<std::uint64_t, Index>> free;
    free.reserve(theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      if (ours[i] != theirs[i]) free.emplace_back(theirs[i], static_cast<Index>(i));
    }
    std::ranges::sort(free);
    std::vector<std::size_t> taken(free.size());  // at the first of those alike: how many are
    std::vector<Index> from;
    from.reserve(ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (ours[i] == theirs[i]) {
        from.push_back(static_cast<Index>(i));
        continue;
      }
      const auto first = std::ranges::lower_bound(free, std::pair(ours[i], Index{0}));
      const auto at = static_cast<std::size_t>(first - free.begin());
      from.push_back(free[at + taken[at]++].second);
    }
    return from;
  }

  OrderName reordered() const {
    const auto from = sources(left_, right_);
    Index first = 0;
    Index count = 0;
    for (Index i = size_ - 1; i >= 0; --i) {
      if (from[static_cast<std::size_t>(i)] == i) continue;
      first = i;
      ++count;
    }
    return {
        .name = "reorder",
        .words = fmt::format("{} of {} {} stand at another place, number {} of the left side, the "
                             "first of them, at {} of the right one",
                             count, size_, noun_, first, from[static_cast<std::size_t>(first)])};
  }

  std::span<const std::uint64_t> left_;
  std::span<const std::uint64_t> right_;
  std::string_view noun_;
  const OrderHints& hints_;
  Index size_;
  std::vector<Index> divisors_;
  std::vector<Index> witnesses_;  // the first of those that are not what they were
};

}  // namespace

bool same_slices(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right) {
  return left.size() == right.size() && sorted(left) == sorted(right);
}

OrderName name_order(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right,
                     std::string_view noun, const OrderHints& hints) {
  return Naming(left, right, noun, hints).name();
}

// std::lgamma writes to a global variable.
double log2_factorial(std::size_t n) {
  const auto x = static_cast<double>(n);
  if (n < 32) {
    double product = 1;
    for (std::size_t i = 2; i <= n; ++i) product *= static_cast<double>(i);
    return std::log2(product);
  }
  // Stirling's series, whose next term is below 1e-7 here.
  return x * std::log2(x / std::numbers::e) + std::log2(2 * std::numbers::pi * x) / 2 +
         std::numbers::log2e / (12 * x);
}

double luck_in_bits(std::span<const std::uint64_t> slices) {
  // The multinomial probability of exactly these counts, with their own shares as probabilities.
  const auto all = sorted(slices);
  double bits = -log2_factorial(all.size());
  for (auto first = all.begin(); first != all.end();) {
    const auto last = std::upper_bound(first, all.end(), *first);
    const auto count = static_cast<std::size_t>(last - first);
    const double share = static_cast<double>(count) / static_cast<double>(all.size());
    bits += log2_factorial(count) - static_cast<double>(count) * std::log2(share);
    first = last;
  }
  return bits;
}

}  // namespace remesh::detail
