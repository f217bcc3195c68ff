#include "slice_hashes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>

#include "panels.hpp"
#include "remesh/core/buffer.hpp"

namespace remesh::detail {
namespace {

constexpr std::int64_t panel_bytes = std::int64_t{1} << 18;
constexpr std::size_t sampled_per_line = 64;
constexpr std::size_t num_buckets = 256;

// A bijection that leaves no bit of the value alone (the constant is 2^64 over the golden ratio).
std::uint64_t mixed(std::uint64_t value) {
  value = (value + 1) * 0x9e3779b97f4a7c15U;
  return value ^ (value >> 32U);
}

// The finalizer of splitmix64, and odd: what an element is multiplied with for its place.
std::uint64_t weight(std::uint64_t place) {
  place += 0x9e3779b97f4a7c15U;
  place = (place ^ (place >> 30U)) * 0xbf58476d1ce4e5b9U;
  place = (place ^ (place >> 27U)) * 0x94d049bb133111ebU;
  return (place ^ (place >> 31U)) | 1U;
}

// What one worker is at.
struct Panel {
  Box box;
  Buffer bytes;
  Range columns;                    // those of the last dim to which `last` belongs
  std::vector<std::uint64_t> last;  // what is to be added to their sums
  std::array<std::uint32_t, num_buckets> sample{};
};

// Sums are exact modulo 2^64: their order does not matter.
class Pass {
 public:
  Pass(const JudgeContext& context, const Reader& reader, std::size_t tensor)
      : context_(context),
        reader_(reader),
        tensor_(tensor),
        desc_(reader.catalog().tensors[tensor]),
        last_(desc_.extent.ndim() - 1),
        element_bytes_(bits(desc_.dtype) / 8),
        panels_(desc_, panel_bytes) {
    const Index length = desc_.extent[last_].size();
    if (last_ > 0) {
      weights_.reserve(static_cast<std::size_t>(length));
      for (Index c = 0; c < length; ++c) weights_.push_back(weight(static_cast<std::uint64_t>(c)));
    }
    sums_.reserve(static_cast<std::size_t>(last_) + 1);
    for (int dim = 0; dim <= last_; ++dim) {
      sums_.push_back(std::make_unique<std::atomic<std::uint64_t>[]>(
          static_cast<std::size_t>(desc_.extent[dim].size())));
    }
  }

  SliceHashes run() {
    const std::int64_t line = std::min(desc_.extent[last_].size(), step_limit());
    const std::int64_t one = panel_bytes + 8 * line;
    const std::int64_t share = context_.budget.limit_bytes() / 4;
    const auto workers = static_cast<Index>(std::clamp<std::int64_t>(
        share / one, 1, std::min<std::int64_t>(context_.pool.size(), panels_.count())));
    const auto held = context_.budget.reserve(workers * one, "panels of a tensor");
    context_.pool.run(static_cast<std::size_t>(workers), [&](std::size_t first, int) {
      Panel panel;
      panel.bytes = Buffer(panel_bytes);
      for (auto number = static_cast<Index>(first); number < panels_.count(); number += workers) {
        context_.stop.check();
        add(number, panel);
      }
      merge_columns(panel);
      merge_sample(panel);
    });
    return result();
  }

 private:
  std::int64_t step_limit() const { return panel_bytes / element_bytes_; }

  void add(Index number, Panel& panel) {
    panel.box = panels_.box(number);
    const auto into =
        panel.bytes.bytes().first(static_cast<std::size_t>(num_bytes(desc_.dtype, panel.box)));
    reader_.read(tensor_, panel.box, into, {});
    context_.progress.advance(std::ssize(into));
    if (panel.columns != panel.box[last_]) {
      merge_columns(panel);
      panel.columns = panel.box[last_];
      panel.last.assign(static_cast<std::size_t>(panel.columns.size()), 0);
    }
    switch (element_bytes_) {
      case 1:
        add_lines<std::uint8_t>(into, panel);
        break;
      case 2:
        add_lines<std::uint16_t>(into, panel);
        break;
      case 4:
        add_lines<std::uint32_t>(into, panel);
        break;
      default:
        add_lines<std::uint64_t>(into, panel);
        break;
    }
  }

  // Sums of columns meet here, once for many panels: where they are whole rows, at the end.
  void merge_columns(const Panel& panel) {
    const auto begin = static_cast<std::size_t>(panel.columns.begin);
    for (std::size_t c = 0; c < panel.last.size(); ++c) {
      sums_.back()[begin + c].fetch_add(panel.last[c], std::memory_order_relaxed);
    }
  }

  template <typename Element>
  void add_lines(std::span<const std::byte> bytes, Panel& panel) {
    const auto length_bytes = panel.last.size() * sizeof(Element);
    std::array<Index, max_ndim> at{};
    for (int dim = 0; dim < last_; ++dim) at[static_cast<std::size_t>(dim)] = panel.box[dim].begin;
    while (!bytes.empty()) {
      const std::uint64_t sum =
          add_line<Element>(bytes.first(length_bytes), weight_in_last(at), panel);
      for (int dim = 0; dim < last_; ++dim) {
        const auto index = static_cast<std::size_t>(at[static_cast<std::size_t>(dim)]);
        sums_[static_cast<std::size_t>(dim)][index].fetch_add(sum * weight_without(at, dim),
                                                              std::memory_order_relaxed);
      }
      bytes = bytes.subspan(length_bytes);
      for (int dim = last_ - 1; dim >= 0; --dim) {
        auto& index = at[static_cast<std::size_t>(dim)];
        if (++index < panel.box[dim].end) break;
        index = panel.box[dim].begin;
      }
    }
  }

  // Elements that lie together. Returns their sum, weighted by their places in the line.
  template <typename Element>
  std::uint64_t add_line(std::span<const std::byte> bytes, std::uint64_t outer,
                         Panel& panel) const {
    const auto value_at = [&](std::size_t c) {
      Element element = 0;
      std::memcpy(&element, bytes.data() + c * sizeof(Element), sizeof(Element));
      return mixed(element);
    };
    std::uint64_t* const last = panel.last.data();
    const std::size_t count = panel.last.size();
    for (std::size_t c = 0; c < std::min(count, sampled_per_line); ++c) {
      ++panel.sample[value_at(c) >> 56U];
    }
    if (weights_.empty()) {
      for (std::size_t c = 0; c < count; ++c) last[c] += value_at(c) * outer;
      return 0;
    }
    const std::uint64_t* const weights = weights_.data() + panel.columns.begin;
    std::uint64_t sum = 0;
    for (std::size_t c = 0; c < count; ++c) {
      const std::uint64_t value = value_at(c);
      last[c] += value * outer;
      sum += value * weights[c];
    }
    return sum;
  }

  using Place = std::array<Index, max_ndim>;

  // What a line is multiplied with for its place in a slice of `dim`: 1 where there are no other
  // dims than this and the last.
  std::uint64_t weight_without(const Place& at, int dim) const {
    std::uint64_t place = 0;
    for (int other = 0; other < last_; ++other) {
      if (other == dim) continue;
      place = place * static_cast<std::uint64_t>(desc_.extent[other].size()) +
              static_cast<std::uint64_t>(at[static_cast<std::size_t>(other)]);
    }
    return place == 0 ? 1 : weight(~place);
  }

  // The same of an element in a slice of the last dim. The last two dims are treated alike, so that
  // exchanging them exchanges their hashes.
  std::uint64_t weight_in_last(const Place& at) const {
    if (last_ == 0) return 1;
    const auto row = static_cast<std::uint64_t>(at[static_cast<std::size_t>(last_) - 1]);
    return weight(row) * weight_without(at, last_ - 1);
  }

  void merge_sample(const Panel& panel) {
    for (std::size_t bucket = 0; bucket < num_buckets; ++bucket) {
      sample_[bucket].fetch_add(panel.sample[bucket], std::memory_order_relaxed);
    }
  }

  SliceHashes result() const {
    SliceHashes hashes;
    hashes.of_dim.resize(sums_.size());
    for (std::size_t dim = 0; dim < sums_.size(); ++dim) {
      const auto size = static_cast<std::size_t>(desc_.extent[static_cast<int>(dim)].size());
      hashes.of_dim[dim].reserve(size);
      for (std::size_t i = 0; i < size; ++i) hashes.of_dim[dim].push_back(sums_[dim][i].load());
    }
    double total = 0;
    double alike = 0;  // pairs in one bucket
    for (const auto& bucket : sample_) {
      const auto count = static_cast<double>(bucket.load());
      total += count;
      alike += count * count;
    }
    hashes.element_bits = std::log2(total * total / alike);
    return hashes;
  }

  const JudgeContext& context_;
  const Reader& reader_;
  const std::size_t tensor_;
  const TensorDesc& desc_;
  const int last_;
  const std::int64_t element_bytes_;
  const Panels panels_;
  std::vector<std::uint64_t> weights_;  // of places in the last dim
  std::vector<std::unique_ptr<std::atomic<std::uint64_t>[]>> sums_;
  std::array<std::atomic<std::uint64_t>, num_buckets> sample_{};
};

}  // namespace

std::int64_t slices_bytes(const TensorDesc& desc) {
  Index slices = 0;
  Index most = 0;
  for (int dim = 0; dim < desc.extent.ndim(); ++dim) {
    slices += desc.extent[dim].size();
    most = std::max(most, desc.extent[dim].size());
  }
  // Hashes of both sides, the sums and weights of one, and what it takes to name an order.
  constexpr std::int64_t copies = 6;
  return (3 * slices + copies * most) * std::int64_t{sizeof(std::uint64_t)};
}

bool can_hash_slices(const MemoryBudget& budget, const TensorDesc& desc) {
  return desc.extent.ndim() > 0 && !desc.extent.empty() && bits(desc.dtype) % 8 == 0 &&
         slices_bytes(desc) <= budget.limit_bytes() / 4;
}

SliceHashes hash_slices(const JudgeContext& context, const Reader& reader, std::size_t tensor) {
  return Pass(context, reader, tensor).run();
}

}  // namespace remesh::detail
