#include "rearranged.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "proportion.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/legality.hpp"
#include "remesh/schema/cast.hpp"
#include "row_order.hpp"
#include "slice_hashes.hpp"

namespace remesh::detail {
namespace {

// What must speak against an accident before two tensors are called rearrangements of each other.
constexpr double least_bits = 24;

std::string noun_of(const TensorDesc& desc, int dim) {
  if (desc.extent.ndim() == 1) return "elements";
  if (desc.extent.ndim() > 2) return fmt::format("slices of dim {}", dim);
  return dim == 0 ? "rows" : "columns";
}

// A slice is known by 64 bits at most. Where slices are small, or there are more than one can tell
// apart so, it is how often each of them is there that cannot be an accident.
bool is_no_accident(const SliceHashes& hashes, std::size_t dim, const TensorDesc& desc) {
  const auto count = static_cast<double>(hashes.of_dim[dim].size());
  const double elements = static_cast<double>(desc.extent.num_elements()) / count;
  const double told = count * std::min(64.0, hashes.element_bits * elements);
  const double orders = log2_factorial(hashes.of_dim[dim].size());
  return told - orders >= least_bits || luck_in_bits(hashes.of_dim[dim]) >= least_bits;
}

// Of the last two dims.
bool is_transpose(const SliceHashes& left, const SliceHashes& right, const TensorDesc& desc) {
  const std::size_t ndim = left.of_dim.size();
  if (ndim < 2 || right.of_dim.size() != ndim) return false;
  // Half of the elements, more or less, say where the other half must be.
  const double told = left.element_bits * static_cast<double>(desc.extent.num_elements()) / 2;
  return told >= least_bits && left.of_dim[ndim - 2] == right.of_dim[ndim - 1] &&
         left.of_dim[ndim - 1] == right.of_dim[ndim - 2];
}

// Whether one extent is the other with its last two dims exchanged.
bool is_turned(const Box& left, const Box& right) {
  const int ndim = left.ndim();
  if (ndim < 2 || right.ndim() != ndim) return false;
  Box turned = right;
  std::swap(turned[ndim - 2], turned[ndim - 1]);
  return left == turned;
}

OrderHints hints_of(const Reader& reader) {
  const auto& side = reader.catalog().side;
  const auto config = std::ranges::find(side, "config.json", &SideFile::name);
  if (config == side.end()) return {};
  try {
    const std::vector<std::byte> bytes = reader.side(*config);
    const ModelSizes sizes =
        model_sizes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return {.head_dim = sizes.head_dim, .kv_heads = sizes.kv_heads};
  } catch (const Error&) {
    return {};  // it only makes sentences clearer
  }
}

// What undoes it. Which side is right nobody can tell from here; the right one is the reference.
std::string advice_on(const OrderName& order, std::string_view noun) {
  const auto is = [&](std::string_view name) { return order.name.starts_with(name); };
  if (order.id == "RM522") {
    return "convert again with queries, keys and values in the groups of the right checkpoint";
  }
  if (is("interleave") || is("deinterleave")) {
    return "convert again with the permutation for the rotary embedding of the model that is to "
           "read it, once";
  }
  if (is("exchange_halves")) {
    return "convert again with both parts in the order of the right checkpoint: gate and up, or "
           "the halves of each head";
  }
  if (is("transpose_blocks")) {
    return "convert again, and join fused parts whole, not rank by rank";
  }
  return fmt::format("convert again with the {} in the order of the right checkpoint", noun);
}

// Two steps of one training differ in each tensor, and nothing explains it: to read them all once
// more is of no use.
constexpr int most_in_vain = 256;

class Explainer {
 public:
  Explainer(const JudgeContext& context, const Judged& left, const Judged& right,
            std::span<const Pair> pairs)
      : context_(context), left_(left), right_(right), pairs_(pairs), explained_(pairs.size()) {}

  std::vector<Explanation> run(bool read) {
    renumbered();
    if (read) look_at_bytes();
    std::ranges::sort(found_, {}, [](const Explanation& one) { return one.pairs.front(); });
    return std::move(found_);
  }

 private:
  const TensorDesc& left_desc(const Pair& pair) const {
    return left_.reader->catalog().tensors[pair.left];
  }
  const TensorDesc& right_desc(const Pair& pair) const {
    return right_.reader->catalog().tensors[pair.right];
  }

  void renumbered() {
    std::vector<Pair> alike;
    std::vector<std::size_t> numbers;
    alike.reserve(pairs_.size());
    numbers.reserve(pairs_.size());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (left_desc(pairs_[i]) != right_desc(pairs_[i])) continue;
      alike.push_back(pairs_[i]);
      numbers.push_back(i);
    }
    found_ = find_renumbered({left_.reader->catalog().tensors, left_.digests},
                             {right_.reader->catalog().tensors, right_.digests}, alike);
    for (Explanation& one : found_) {
      for (std::size_t& pair : one.pairs) {
        pair = numbers[pair];
        explained_[pair] = true;
      }
    }
  }

  // Whether bytes of this pair are to be hashed by slices.
  bool is_for_slices(const Pair& pair) const {
    const TensorDesc& left = left_desc(pair);
    const TensorDesc& right = right_desc(pair);
    const bool comparable =
        left == right || (left.dtype == right.dtype && is_turned(left.extent, right.extent));
    return comparable && can_hash_slices(context_.budget, left);
  }

  void look_at_bytes() {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!explained_[i] && is_for_slices(pairs_[i])) bytes += 2 * num_bytes(left_desc(pairs_[i]));
    }
    context_.progress.begin("comparing", bytes);
    int in_vain = 0;
    for (std::size_t i = 0; i < pairs_.size() && in_vain < most_in_vain; ++i) {
      if (explained_[i]) continue;
      context_.stop.check();
      auto finding = explained(pairs_[i]);
      in_vain = finding ? 0 : in_vain + 1;
      if (finding) found_.push_back({std::move(*finding), {i}});
    }
    context_.progress.end();
  }

  std::optional<Finding> explained(const Pair& pair) {
    try {
      if (is_for_slices(pair)) {
        if (auto finding = rearranged(pair)) return finding;
      }
      return left_desc(pair) == right_desc(pair) ? multiplied(pair) : described_otherwise(pair);
    } catch (const Error& error) {
      if (error.code() == Errc::stopped) throw;
      return std::nullopt;  // that they differ is known; why is not
    }
  }

  Finding about(const char* id, const Pair& pair, std::string name,
                const std::string& words) const {
    Finding finding;
    finding.id = id;
    finding.tensor = left_desc(pair).name;
    finding.box = left_desc(pair).extent;
    finding.found = std::move(name);
    finding.message = fmt::format("{}: {}", to_string(left_desc(pair)), words);
    return finding;
  }

  std::optional<Finding> rearranged(const Pair& pair) {
    const TensorDesc& desc = left_desc(pair);
    const auto held = context_.budget.reserve(slices_bytes(desc), "hashes of rows and columns");
    const SliceHashes left = hash_slices(context_, *left_.reader, pair.left);
    const SliceHashes right = hash_slices(context_, *right_.reader, pair.right);
    if (desc == right_desc(pair)) {
      for (std::size_t dim = 0; dim < left.of_dim.size(); ++dim) {
        if (!same_slices(left.of_dim[dim], right.of_dim[dim])) continue;
        if (is_no_accident(left, dim, desc)) return reordered(pair, left, right, dim);
      }
    }
    if (!is_transpose(left, right, desc)) return std::nullopt;
    const char* const which = desc.extent.ndim() > 2 ? " in its last two dims" : "";
    Finding finding = about(
        "RM523", pair, "transpose",
        fmt::format("the left side is, bit for bit, the transpose of the right one{}{}", which,
                    desc == right_desc(pair)
                        ? ""
                        : fmt::format(", {}", to_string(right_desc(pair).extent))));
    finding.next_step = "convert again, and transpose it as the right checkpoint has it";
    return finding;
  }

  Finding reordered(const Pair& pair, const SliceHashes& left, const SliceHashes& right,
                    std::size_t dim) {
    if (!hints_) {
      hints_ = hints_of(*right_.reader);
      if (!hints_->kv_heads) hints_ = hints_of(*left_.reader);
    }
    const std::string noun = noun_of(left_desc(pair), static_cast<int>(dim));
    const OrderName order = name_order(left.of_dim[dim], right.of_dim[dim], noun, *hints_);
    Finding finding =
        about(order.id.c_str(), pair, order.name,
              fmt::format("the left side has the {} of the right one in another order, {}: {}",
                          noun, order.name, order.words));
    finding.next_step = advice_on(order, noun);
    return finding;
  }

  std::optional<Finding> multiplied(const Pair& pair) {
    const auto proportion =
        find_proportion(context_, *left_.reader, pair.left, *right_.reader, pair.right);
    if (!proportion) return std::nullopt;
    const auto [exponent, negated] = *proportion;
    const std::string sign = negated ? "-" : "";
    const std::string factor = exponent == 0 ? "-1" : fmt::format("{}2^{}", sign, exponent);
    Finding finding = about("RM532", pair, factor,
                            fmt::format("each element of the left side is {} times that of the "
                                        "right one, exactly",
                                        factor));
    finding.next_step =
        "convert the side anew whose scale was applied twice, or not at all, or the wrong way "
        "round";
    return finding;
  }

  Finding other_form(const Pair& pair, const std::string& common) const {
    Finding finding =
        about("RM303", pair, {},
              fmt::format("the right checkpoint has {}; {}", to_string(right_desc(pair)), common));
    finding.side = "right";
    return finding;
  }

  // Of another dtype or shape, and perhaps of the same content.
  std::optional<Finding> described_otherwise(const Pair& pair) {
    const TensorDesc& left = left_desc(pair);
    const TensorDesc& right = right_desc(pair);
    if (left.dtype == right.dtype && left_.digests[pair.left] == right_.digests[pair.right] &&
        num_bytes(left) == num_bytes(right)) {
      return other_form(pair, "both have the same bytes");
    }
    if (left.extent != right.extent || !can_cast(left.dtype, right.dtype)) return std::nullopt;
    if (is_cast_of(context_, *right_.reader, pair.right, *left_.reader, pair.left)) {
      return other_form(pair,
                        fmt::format("that is the left one, cast to {}", to_string(right.dtype)));
    }
    if (is_cast_of(context_, *left_.reader, pair.left, *right_.reader, pair.right)) {
      return other_form(pair,
                        fmt::format("the left one is that, cast to {}", to_string(left.dtype)));
    }
    return std::nullopt;
  }

  const JudgeContext& context_;
  const Judged& left_;
  const Judged& right_;
  std::span<const Pair> pairs_;
  std::vector<bool> explained_;
  std::optional<OrderHints> hints_;
  std::vector<Explanation> found_;
};

}  // namespace

std::vector<Explanation> explain_differences(const JudgeContext& context, const Judged& left,
                                             const Judged& right, std::span<const Pair> pairs,
                                             bool read) {
  if (pairs.empty()) return {};
  return Explainer(context, left, right, pairs).run(read);
}

}  // namespace remesh::detail
