#include "remesh/verify/diff.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "diff_pairs.hpp"
#include "element_diff.hpp"
#include "name_guess.hpp"
#include "panels.hpp"
#include "remesh/core/buffer.hpp"

namespace remesh {
namespace {

using detail::ElementDiff;
using detail::Pair;
using detail::PairCounts;
using detail::PairSums;
using detail::Panels;

constexpr std::int64_t panel_bytes = std::int64_t{1} << 20;
// Tensors are compared some at a time, so that what is kept of their panels stays small.
constexpr Index most_panels = 4096;

// One panel, once it is compared.
struct Part {
  PairSums sums;
  bool equal = false;  // bit for bit: then the sums wait until something else differs
};

// Two tensors that can be compared, and what is known so far.
struct Comparing {
  Comparing(TensorDiff& its_result, const TensorDesc& its_left, const TensorDesc& its_right,
            const Tolerance& tolerance)
      : result(&its_result),
        left(&its_left),
        right(&its_right),
        elements(its_left.dtype, its_right.dtype, tolerance),
        panels(bits(its_left.dtype) >= bits(its_right.dtype) ? its_left : its_right, panel_bytes) {}

  bool one_dtype() const { return left->dtype == right->dtype; }

  TensorDiff* result;
  const TensorDesc* left;
  const TensorDesc* right;
  ElementDiff elements;
  Panels panels;
  PairCounts counts = {};
  Index first_part = 0;
};

// What one worker reads into. Rows that cannot be cut need more than a panel.
class Room {
 public:
  Room(const JudgeContext& context, std::int64_t bytes) : context_(context) { enlarge(bytes); }

  // So many bytes for each side. What was there is lost.
  void enlarge(std::int64_t bytes) {
    if (bytes <= left_.size_bytes()) return;
    left_ = {};
    right_ = {};
    held_ = {};
    held_ = context_.budget.reserve(2 * bytes, "elements to be compared");
    left_ = Buffer(bytes);
    right_ = Buffer(bytes);
  }

  std::span<std::byte> left(std::int64_t bytes) { return first(left_, bytes); }
  std::span<std::byte> right(std::int64_t bytes) { return first(right_, bytes); }

 private:
  static std::span<std::byte> first(Buffer& buffer, std::int64_t bytes) {
    return buffer.bytes().first(static_cast<std::size_t>(bytes));
  }

  const JudgeContext& context_;
  MemoryBudget::Reservation held_;
  Buffer left_;
  Buffer right_;
};

class Differ {
 public:
  Differ(const JudgeContext& context, const Reader& left, const Reader& right)
      : context_(context), left_(left), right_(right) {}

  // Compares some tensors, and fills in their results.
  void run(std::vector<Comparing>& some) {
    some_ = &some;
    number_parts();
    const auto held =
        context_.budget.reserve(std::ssize(parts_) * static_cast<std::int64_t>(sizeof(Part)) +
                                    std::ssize(some) * static_cast<std::int64_t>(sizeof(Comparing)),
                                "figures of panels");
    for_each_part([this](std::size_t part, Room& room) { compare(part, room); });
    waiting_.clear();
    for (const Comparing& each : some) wait_for_sums(each);
    in_parallel(waiting_.size(),
                [this](std::size_t number, Room& room) { add_equal(waiting_[number], room); });
    for (Comparing& each : some) conclude(each);
  }

  std::int64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  using OnPart = std::function<void(std::size_t number, Room& room)>;

  void number_parts() {
    Index parts = 0;
    for (Comparing& each : *some_) {
      each.first_part = parts;
      parts += each.panels.count();
    }
    parts_.assign(static_cast<std::size_t>(parts), {});
  }

  void for_each_part(const OnPart& visit) { in_parallel(parts_.size(), visit); }

  // As many workers as a quarter of the budget has room for.
  void in_parallel(std::size_t count, const OnPart& visit) {
    if (count == 0) return;
    const std::int64_t share = context_.budget.limit_bytes() / 4;
    const auto workers = static_cast<std::size_t>(
        std::clamp<std::int64_t>(share / (2 * panel_bytes), 1, context_.pool.size()));
    std::atomic<std::size_t> next{0};
    context_.pool.run(std::min(workers, count), [&](std::size_t, int) {
      Room room(context_, panel_bytes);
      for (std::size_t number = next++; number < count; number = next++) {
        context_.stop.check();
        visit(number, room);
      }
    });
  }

  Comparing& owner_of(std::size_t part) {
    const auto after =
        std::ranges::upper_bound(*some_, static_cast<Index>(part), {}, &Comparing::first_part);
    return *(after - 1);
  }

  std::span<const std::byte> read_left(const Comparing& pair, const Box& box, Room& room) {
    const std::int64_t bytes = num_bytes(pair.left->dtype, box);
    room.enlarge(bytes);
    const auto into = room.left(bytes);
    left_.read(pair.result->left, box, into, {});
    bytes_read_ += bytes;
    return into;
  }

  void compare(std::size_t number, Room& room) {
    Comparing& pair = owner_of(number);
    Part& part = parts_[number];
    const Index panel = static_cast<Index>(number) - pair.first_part;
    const Box box = pair.panels.box(panel);
    const std::int64_t bytes = num_bytes(pair.right->dtype, box);
    room.enlarge(bytes);
    const auto left = read_left(pair, box, room);
    const auto right = room.right(bytes);
    right_.read(pair.result->right, box, right, {});
    bytes_read_ += bytes;
    context_.progress.advance(std::ssize(left) + bytes);
    part.equal = pair.one_dtype() && std::memcmp(left.data(), right.data(), left.size()) == 0;
    if (part.equal) return;
    PairCounts counts;
    pair.elements.compare(left, right, pair.panels.first(panel), counts, part.sums);
    const std::lock_guard lock(mutex_);
    add(pair.counts, counts);
  }

  // Norms are those of the whole tensor: of one that differs somewhere, what is equal counts too.
  void wait_for_sums(const Comparing& pair) {
    if (pair.counts.differing == 0 || !pair.elements.has_sums()) return;
    for (Index panel = 0; panel < pair.panels.count(); ++panel) {
      const auto number = static_cast<std::size_t>(pair.first_part + panel);
      if (parts_[number].equal) waiting_.push_back(number);
    }
  }

  void add_equal(std::size_t number, Room& room) {
    const Comparing& pair = owner_of(number);
    const Box box = pair.panels.box(static_cast<Index>(number) - pair.first_part);
    pair.elements.add_equal(read_left(pair, box, room), parts_[number].sums);
  }

  void conclude(const Comparing& pair) const;

  const JudgeContext& context_;
  const Reader& left_;
  const Reader& right_;
  std::vector<Comparing>* some_ = nullptr;
  std::vector<Part> parts_;
  std::vector<std::size_t> waiting_;
  std::mutex mutex_;
  std::atomic<std::int64_t> bytes_read_{0};
};

// Nothing where the figure is beyond every number.
std::optional<double> if_finite(long double figure) {
  const auto rounded = static_cast<double>(figure);
  return std::isfinite(rounded) ? std::optional(rounded) : std::nullopt;
}

void fill_in(const PairSums& sums, TensorDiff& result) {
  if (sums.finite > 0) {
    result.mean_absolute = if_finite(sums.absolute / static_cast<long double>(sums.finite));
  }
  const long double left = std::sqrt(sums.left_squared);
  const long double right = std::sqrt(sums.right_squared);
  if (left > 0) result.relative_l2 = if_finite(std::sqrt(sums.squared_difference) / left);
  if (left > 0 && right > 0) {
    result.cosine = if_finite(std::clamp(sums.product / left / right, -1.0L, 1.0L));
  }
}

void fill_in(const PairCounts& counts, const Comparing& pair, TensorDiff& result) {
  result.differing = counts.differing;
  result.beyond = counts.beyond;
  result.nans = counts.nans;
  result.infinite = counts.infinite;
  if (!pair.elements.has_sums()) return;
  result.histogram.assign(counts.by_distance.begin(), counts.by_distance.end());
  while (!result.histogram.empty() && result.histogram.back() == 0) result.histogram.pop_back();
}

// How far both are apart at most, where every element has a distance.
void fill_in_maxima(const PairCounts& counts, const Comparing& pair, TensorDiff& result) {
  const bool floats = detail::reading_of(pair.left->dtype) == detail::Reading::floats;
  (floats ? result.max_ulps : result.max_difference) = counts.most_distance;
  if (!floats) result.max_absolute = static_cast<double>(counts.most_distance);
  if (floats) result.max_absolute = if_finite(counts.most_absolute);
}

ElementPair first_of(const PairCounts& counts, const TensorDesc& left, const TensorDesc& right) {
  ElementPair pair;
  const Box element = element_of(left.extent, counts.first);
  for (int dim = 0; dim < element.ndim(); ++dim) pair.index.push_back(element[dim].begin);
  pair.left_bits = counts.first_left;
  pair.right_bits = counts.first_right;
  pair.left = detail::value_text(left.dtype, pair.left_bits);
  pair.right = detail::value_text(right.dtype, pair.right_bits);
  return pair;
}

void Differ::conclude(const Comparing& pair) const {
  TensorDiff& result = *pair.result;
  const PairCounts& counts = pair.counts;
  fill_in(counts, pair, result);
  if (counts.differing > 0) result.first = first_of(counts, *pair.left, *pair.right);
  if (!pair.elements.has_sums()) return;
  const bool is_equal = counts.differing == 0 && pair.one_dtype();
  if (!is_equal) {
    PairSums sums;
    for (Index panel = 0; panel < pair.panels.count(); ++panel) {
      add(sums, parts_[static_cast<std::size_t>(pair.first_part + panel)].sums);
    }
    result.not_finite = result.elements - sums.finite;
    // A figure over the others alone would say that little is wrong.
    if (result.not_finite > 0) return;
    fill_in(sums, result);
  }
  fill_in_maxima(counts, pair, result);
}

Likeness likeness_of(const TensorDiff& result, bool one_dtype, const Tolerance& tolerance) {
  if (result.differing == 0 && one_dtype) return Likeness::equal;
  return result.beyond == 0 && tolerance.any() ? Likeness::within : Likeness::different;
}

std::vector<const TensorDesc*> descs_of(const Catalog& catalog,
                                        const std::vector<std::size_t>& numbers) {
  std::vector<const TensorDesc*> descs;
  descs.reserve(numbers.size());
  for (const std::size_t number : numbers) descs.push_back(&catalog.tensors[number]);
  return descs;
}

class WholeDiff {
 public:
  WholeDiff(const JudgeContext& context, const Reader& left, const Reader& right,
            const DiffOptions& options)
      : context_(context),
        left_(left.catalog()),
        right_(right.catalog()),
        options_(options),
        differ_(context, left, right) {}

  Diff run() {
    detail::Pairing pairing = detail::pair_up(left_, right_, options_);
    std::int64_t bytes = 0;
    result_.tensors.reserve(pairing.pairs.size());
    for (const Pair& pair : pairing.pairs) {
      const TensorDesc& left = left_.tensors[pair.left];
      result_.tensors.push_back({.left = pair.left, .right = pair.right});
      result_.tensors.back().elements = left.extent.num_elements();
      if (can_compare(result_.tensors.back())) {
        bytes += num_bytes(left) + num_bytes(right_.tensors[pair.right]);
      }
    }
    context_.progress.begin("comparing", bytes);
    for (TensorDiff& tensor : result_.tensors) add(tensor);
    finish_batch();
    context_.progress.end();
    result_.only_left = std::move(pairing.only_left);
    result_.only_right = std::move(pairing.only_right);
    result_.left_out = pairing.left_out;
    result_.bytes_read = differ_.bytes_read();
    result_.hint = detail::guess_names(descs_of(left_, result_.only_left),
                                       descs_of(right_, result_.only_right));
    return std::move(result_);
  }

 private:
  const TensorDesc& left_of(const TensorDiff& tensor) const { return left_.tensors[tensor.left]; }
  const TensorDesc& right_of(const TensorDiff& tensor) const {
    return right_.tensors[tensor.right];
  }

  bool can_compare(const TensorDiff& tensor) const {
    return left_of(tensor).extent == right_of(tensor).extent &&
           detail::is_comparable(left_of(tensor).dtype, right_of(tensor).dtype);
  }

  void add(TensorDiff& tensor) {
    if (!can_compare(tensor)) {
      tensor.likeness = Likeness::not_compared;
      return;
    }
    if (tensor.elements == 0) {
      settle(tensor);
      return;
    }
    batch_.emplace_back(tensor, left_of(tensor), right_of(tensor), options_.tolerance);
    panels_ += batch_.back().panels.count();
    if (panels_ >= most_panels) finish_batch();
  }

  void finish_batch() {
    if (batch_.empty()) return;
    differ_.run(batch_);
    for (const Comparing& each : batch_) settle(*each.result);
    batch_.clear();
    panels_ = 0;
  }

  void settle(TensorDiff& tensor) const {
    tensor.likeness =
        likeness_of(tensor, left_of(tensor).dtype == right_of(tensor).dtype, options_.tolerance);
  }

  const JudgeContext& context_;
  const Catalog& left_;
  const Catalog& right_;
  const DiffOptions& options_;
  Differ differ_;
  Diff result_;
  std::vector<Comparing> batch_;
  Index panels_ = 0;
};

}  // namespace

std::string_view to_string(Likeness likeness) noexcept {
  switch (likeness) {
    case Likeness::equal:
      return "equal";
    case Likeness::within:
      return "within";
    case Likeness::different:
      return "different";
    case Likeness::not_compared:
      break;
  }
  return "not_compared";
}

std::int64_t Diff::count(Likeness likeness) const noexcept {
  return std::ranges::count(tensors, likeness, &TensorDiff::likeness);
}

bool Diff::same() const noexcept {
  return !tensors.empty() && only_left.empty() && only_right.empty() &&
         count(Likeness::equal) + count(Likeness::within) == std::ssize(tensors);
}

Diff diff(const JudgeContext& context, const Reader& left, const Reader& right,
          const DiffOptions& options) {
  return WholeDiff(context, left, right, options).run();
}

}  // namespace remesh
