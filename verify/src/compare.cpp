#include "compare.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "coverage.hpp"
#include "rearranged.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/sweep.hpp"
#include "remesh/store/tally.hpp"

namespace remesh::detail {
namespace {

constexpr std::int64_t compared_bytes = std::int64_t{1} << 20;

std::unordered_map<std::string_view, std::size_t> numbered(const Catalog& catalog) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    numbers.emplace(catalog.tensors[i].name, i);
  }
  return numbers;
}

Finding about(const char* id, const TensorDesc& desc, const char* side, std::string message) {
  Finding finding;
  finding.id = id;
  finding.tensor = desc.name;
  finding.box = desc.extent;
  finding.side = side;
  finding.message = std::move(message);
  return finding;
}

// Some rows of a tensor from both sides: where they first differ.
std::optional<Box> difference_in(const Reader& left, std::size_t l, const Reader& right,
                                 std::size_t r, const Box& rows) {
  const TensorDesc& desc = left.catalog().tensors[l];
  Buffer a(num_bytes(desc.dtype, rows));
  Buffer b(num_bytes(desc.dtype, rows));
  left.read(l, rows, a.bytes(), {});
  right.read(r, rows, b.bytes(), {});
  const auto [at, other] = std::ranges::mismatch(a.bytes(), b.bytes());
  if (at == a.bytes().end()) return std::nullopt;
  const std::int64_t offset = at - a.bytes().begin();
  return touched_box(desc, rows, offset, offset + 1);
}

// The first element, in row-major order, that differs. Nothing if a side cannot be read, or if one
// row is too large to hold.
std::optional<Box> first_difference(const JudgeContext& context, const Reader& left, std::size_t l,
                                    const Reader& right, std::size_t r) {
  const TensorDesc& desc = left.catalog().tensors[l];
  if (desc.extent.empty()) return std::nullopt;
  if (desc.extent.ndim() == 0) return desc.extent;
  const Index num_rows = desc.extent[0].size();
  const std::int64_t row_bytes = std::max<std::int64_t>(num_bytes(desc) / num_rows, 1);
  const bool whole = bits(desc.dtype) % 8 != 0;
  const Index step =
      whole ? num_rows : std::max<Index>(std::min(compared_bytes / row_bytes, num_rows), 1);
  try {
    const auto held = context.budget.reserve(2 * step * row_bytes, "compared rows");
    Box rows = desc.extent;
    for (Index begin = 0; begin < num_rows; begin += step) {
      rows[0] = {begin, std::min(begin + step, num_rows)};
      if (const auto found = difference_in(left, l, right, r, rows)) return found;
    }
  } catch (const Error&) {
    return std::nullopt;  // the digests differ all the same; only the place stays unknown
  }
  return std::nullopt;
}

class Comparison {
 public:
  Comparison(const JudgeContext& context, const Judged& left, const Judged& right, Report& report)
      : context_(context), left_(left), right_(right), report_(report) {}

  void run() {
    const Catalog& left = left_.reader->catalog();
    const Catalog& right = right_.reader->catalog();
    const auto rights = numbered(right);
    std::vector<bool> met(right.tensors.size());
    for (std::size_t l = 0; l < left.tensors.size(); ++l) {
      const auto found = rights.find(left.tensors[l].name);
      if (found == rights.end()) {
        add(about("RM302", left.tensors[l], "right",
                  fmt::format("{}: only the left checkpoint has it", to_string(left.tensors[l]))));
        continue;
      }
      met[found->second] = true;
      compare(l, found->second);
    }
    for (std::size_t r = 0; r < right.tensors.size(); ++r) {
      if (met[r]) continue;
      add(about("RM310", right.tensors[r], "right",
                fmt::format("{}: only the right checkpoint has it", to_string(right.tensors[r]))));
    }
    report_differences();
  }

 private:
  void add(Finding finding) { report_.findings.push_back(std::move(finding)); }

  void compare(std::size_t l, std::size_t r) {
    const TensorDesc& left = left_.reader->catalog().tensors[l];
    const TensorDesc& right = right_.reader->catalog().tensors[r];
    ++report_.compared;
    if (left == right && left_.digests[l] == right_.digests[r]) {
      ++report_.equal;
    } else {
      differing_.push_back({l, r});
    }
  }

  // What is known of several tensors together is said at the first of them.
  void report_differences() {
    std::vector<Explanation> explained =
        explain_differences(context_, left_, right_, differing_, report_.level >= Level::full);
    std::vector<std::ptrdiff_t> by(differing_.size(), -1);
    for (std::size_t i = 0; i < explained.size(); ++i) {
      for (const std::size_t pair : explained[i].pairs) by[pair] = static_cast<std::ptrdiff_t>(i);
    }
    for (std::size_t pair = 0; pair < differing_.size(); ++pair) {
      if (by[pair] < 0) {
        add(different(differing_[pair]));
        continue;
      }
      auto& [finding, pairs] = explained[static_cast<std::size_t>(by[pair])];
      if (pairs.front() != pair) continue;
      for (const std::size_t other : pairs) {
        const std::string& name = left_.reader->catalog().tensors[differing_[other].left].name;
        if (name != finding.tensor) finding.more_tensors.push_back(name);
      }
      add(std::move(finding));
    }
  }

  Finding different(const Pair& pair) {
    const TensorDesc& left = left_.reader->catalog().tensors[pair.left];
    const TensorDesc& right = right_.reader->catalog().tensors[pair.right];
    if (left == right) return unequal(left, pair.left, pair.right);
    return about("RM303", left, "right",
                 fmt::format("{}: the right checkpoint has {}", to_string(left), to_string(right)));
  }

  Finding unequal(const TensorDesc& desc, std::size_t l, std::size_t r) {
    const Digest left = left_.digests[l];
    const Digest right = right_.digests[r];
    const auto where = first_difference(context_, *left_.reader, l, *right_.reader, r);
    Finding finding = about("RM311", desc, "",
                            fmt::format("{}: left hashes to {}, right to {}; {}", to_string(desc),
                                        to_string(left), to_string(right),
                                        where ? "the first difference is at " + to_string(*where)
                                              : "where they differ is unknown"));
    if (where) finding.box = where;
    finding.found = to_string(left);
    finding.expected = to_string(right);
    finding.next_step =
        "`remesh verify` of each side tells whether one is damaged; if both are whole, they are "
        "different saves, and `remesh diff` says by how much";
    return finding;
  }

  const JudgeContext& context_;
  const Judged& left_;
  const Judged& right_;
  Report& report_;
  std::vector<Pair> differing_;
};

}  // namespace

void compare(const JudgeContext& context, const Judged& left, const Judged& right, Report& report) {
  Comparison(context, left, right, report).run();
}

std::vector<Digest> recomputed_digests(const JudgeContext& context, const Reader& reader) {
  const Catalog& catalog = reader.catalog();
  Tally tally(catalog.tensors, reader.extents(), /*with_blocks=*/false);
  const std::vector<Stretch> stretches = all_extents(reader.extents());
  std::int64_t bytes = 0;
  for (const Stretch& stretch : stretches) bytes += stretch.length_bytes;
  context.progress.begin("hashing", bytes);
  sweep({context.pool, context.budget, context.progress, context.stop}, reader, stretches,
        tally.tap());
  context.progress.end();
  std::vector<Digest> digests;
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const Tally::Sum sum = tally.sum(tensor);
    const bool wrong = !catalog.digests.empty() && catalog.digests[tensor] != sum.digest;
    if (wrong || !sum.complete) {
      throw Error(
          Errc::corrupt,
          fmt::format("cannot take the fingerprint of {}: its bytes hash to {}, but {} is "
                      "recorded (`remesh verify` says where)",
                      to_string(catalog.tensors[tensor]), to_string(sum.digest),
                      wrong ? to_string(catalog.digests[tensor]) : "another count of bytes"),
          wrong ? "RM207" : "RM301");
    }
    digests.push_back(sum.digest);
  }
  return digests;
}

}  // namespace remesh::detail
