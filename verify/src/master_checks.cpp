#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "number_checks.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh::detail {
namespace {

// A weight and its master, cut as if they were to be packed: a chunk is a run of row-major
// elements, and small.
struct Pair {
  std::size_t weight = 0;
  std::size_t master = 0;
  Extent cut;
  Index different = 0;
  Index first = NumberCounts::nowhere;
};

// One chunk of a pair.
struct Panel {
  std::size_t pair = 0;
  std::int64_t chunk = 0;
};

// What one worker needs.
struct Buffers {
  Buffer master{most_chunk_bytes};
  Buffer rounded{most_chunk_bytes / 2};
  Buffer weight{most_chunk_bytes / 2};
};

std::uint16_t word(std::span<const std::byte> bytes, std::size_t k) {
  std::uint16_t word = 0;
  std::memcpy(&word, bytes.data() + k * sizeof word, sizeof word);
  return word;
}

// Which NaN it is means nothing; that there is one is another finding.
bool same(DType dtype, std::uint16_t a, std::uint16_t b) {
  const std::uint16_t infinity = dtype == DType::bf16 ? 0x7f80 : 0x7c00;
  const auto is_nan = [&](std::uint16_t word) { return (word & 0x7fff) > infinity; };
  return a == b || (is_nan(a) && is_nan(b));
}

bool is_master(std::string_view state) { return state == "master" || state == "fp32"; }

// Chunks have a dim to be cut; a scalar is one chunk as it is.
Extent cut_of(const TensorDesc& master) {
  Extent cut{.length_bytes = num_bytes(master), .box = master.extent};
  if (master.extent.ndim() == 0) return cut;
  const ChunkRule rule = chunk_rule(master.dtype, master.extent);
  cut.chunk_dim = rule.dim;
  cut.chunk_size = rule.size;
  return cut;
}

std::vector<Pair> pairs_of(const ReadNumbers& read) {
  std::vector<Pair> pairs;
  for (std::size_t master = 0; master < read.sound.size(); ++master) {
    if (!is_master(read.state(master)) || !read.sound[master]) continue;
    const auto weight = static_cast<std::size_t>(read.parameters[master]);
    const TensorDesc& wide = read.desc(master);
    const TensorDesc& narrow = read.desc(weight);
    const bool is_half = narrow.dtype == DType::bf16 || narrow.dtype == DType::f16;
    if (!read.sound[weight] || !is_half || wide.dtype != DType::f32 ||
        wide.extent != narrow.extent || wide.extent.empty()) {
      continue;
    }
    pairs.push_back({weight, master, cut_of(wide)});
  }
  return pairs;
}

std::vector<Panel> panels_of(const std::vector<Pair>& pairs) {
  std::vector<Panel> panels;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    const Extent& cut = pairs[pair].cut;
    const std::int64_t chunks = is_chunked(cut) ? num_chunks(cut) : 1;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) panels.push_back({pair, chunk});
  }
  return panels;
}

struct Difference {
  Index different = 0;
  Index first = NumberCounts::nowhere;
};

Difference difference_of(DType dtype, std::span<const std::byte> rounded,
                         std::span<const std::byte> weight) {
  Difference found;
  for (std::size_t k = 0; k < weight.size() / 2; ++k) {
    if (same(dtype, word(rounded, k), word(weight, k))) continue;
    if (found.different++ == 0) found.first = static_cast<Index>(k);
  }
  return found;
}

// Whether bf16 weights are their masters rounded, and no NaN is among these: without branches, so
// that the compiler takes many at a time. What is not so plain is left to cast().
bool plainly_rounded(std::span<const std::byte> master, std::span<const std::byte> weight) {
  std::uint32_t different = 0;
  for (std::size_t k = 0; k < weight.size() / 2; ++k) {
    std::uint32_t wide = 0;
    std::uint16_t narrow = 0;
    std::memcpy(&wide, master.data() + 4 * k, sizeof wide);
    std::memcpy(&narrow, weight.data() + 2 * k, sizeof narrow);
    const std::uint32_t rounded = (wide + 0x7fffU + ((wide >> 16) & 1U)) >> 16;
    const bool is_nan = (wide & 0x7fffffffU) > 0x7f800000U;
    different |= (rounded ^ narrow) | static_cast<std::uint32_t>(is_nan);
  }
  return different == 0;
}

Difference compare_panel(const ReadNumbers& read, const Pair& pair, std::int64_t chunk,
                         Buffers& buffers) {
  const bool cut = is_chunked(pair.cut);
  const Box box = cut ? chunk_box(pair.cut, chunk) : pair.cut.box;
  const auto elements = static_cast<std::size_t>(box.num_elements());
  const auto master = buffers.master.bytes().first(4 * elements);
  const auto rounded = buffers.rounded.bytes().first(2 * elements);
  const auto weight = buffers.weight.bytes().first(2 * elements);
  const DType dtype = read.desc(pair.weight).dtype;
  read.reader.read(pair.master, box, master, {});
  read.reader.read(pair.weight, box, weight, {});
  if (dtype == DType::bf16 && plainly_rounded(master, weight)) return {};
  cast(DType::f32, master, dtype, rounded);
  Difference found = difference_of(dtype, rounded, weight);
  if (found.different > 0 && cut) {
    found.first += chunk_range(DType::f32, pair.cut, chunk).begin / 4;
  }
  return found;
}

float as_float(DType dtype, std::span<const std::byte> half) {
  float wide = 0;
  cast(dtype, half, DType::f32, std::as_writable_bytes(std::span(&wide, 1)));
  return wide;
}

// "0x3f80 (1)".
std::string shown(DType dtype, std::span<const std::byte> half) {
  return fmt::format("0x{:04x} ({})", word(half, 0), as_float(dtype, half));
}

Finding unequal(const ReadNumbers& read, const Pair& pair) {
  const TensorDesc& desc = read.desc(pair.weight);
  Finding finding = about_element("RM504", Severity::error, read, pair.weight, pair.first);
  std::array<std::byte, 2> weight{};
  std::array<std::byte, 2> rounded{};
  std::array<std::byte, 4> master{};
  read.reader.read(pair.weight, *finding.box, weight, {});
  read.reader.read(pair.master, *finding.box, master, {});
  cast(DType::f32, master, desc.dtype, rounded);
  float value = 0;
  std::uint32_t bits = 0;
  std::memcpy(&value, master.data(), sizeof value);
  std::memcpy(&bits, master.data(), sizeof bits);
  finding.found = shown(desc.dtype, weight);
  finding.expected = shown(desc.dtype, rounded);
  const Index elements = desc.extent.num_elements();
  finding.message = fmt::format(
      "{}: {} of {} elements ({:.3g} %) are not their master rounded to nearest; the first, at {}, "
      "is "
      "{}, but the master 0x{:08x} ({}) rounds to {}",
      to_string(desc), pair.different, elements,
      100.0 * static_cast<double>(pair.different) / static_cast<double>(elements),
      to_string(*finding.box), finding.found, bits, value, finding.expected);
  finding.next_step =
      "decide which of the two is meant: training goes on from the master, the weights were "
      "evaluated";
  return finding;
}

}  // namespace

void check_masters(const JudgeContext& context, const ReadNumbers& read,
                   std::vector<Finding>& findings) {
  std::vector<Pair> pairs = pairs_of(read);
  const std::vector<Panel> panels = panels_of(pairs);
  if (panels.empty()) return;
  std::int64_t bytes = 0;
  for (const Pair& pair : pairs) bytes += num_bytes(read.desc(pair.master));
  const auto workers = static_cast<std::size_t>(context.pool.size());
  const auto held =
      context.budget.reserve(2 * most_chunk_bytes * context.pool.size(), "compared masters");
  std::vector<std::optional<Buffers>> buffers(workers);
  std::mutex mutex;
  context.progress.begin("comparing masters", bytes);
  context.pool.run(panels.size(), [&](std::size_t index, int worker) {
    context.stop.check();
    auto& own = buffers[static_cast<std::size_t>(worker)];
    if (!own) own.emplace();
    const auto& [number, chunk] = panels[index];
    Pair& pair = pairs[number];
    const Difference found = compare_panel(read, pair, chunk, *own);
    context.progress.advance(is_chunked(pair.cut)
                                 ? num_bytes(DType::f32, chunk_box(pair.cut, chunk))
                                 : pair.cut.length_bytes);
    const std::lock_guard lock(mutex);
    pair.different += found.different;
    pair.first = std::min(pair.first, found.first);
  });
  context.progress.end();
  for (const Pair& pair : pairs) {
    if (pair.different > 0) findings.push_back(unequal(read, pair));
  }
}

}  // namespace remesh::detail
