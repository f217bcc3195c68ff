#include "remesh/plan/summary.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/plan/plan.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/schema/coverage.hpp"
#include "remesh/schema/pieces.hpp"

namespace remesh {
namespace {

// What one tensor adds to the summary.
struct Share {
  std::int64_t write = 0;
  std::int64_t wanted = 0;
  std::int64_t kept = 0;
  bool replicated = false;
  std::vector<std::pair<Rank, std::int64_t>> ranks;
};

// What of a tensor decides where its elements lie; but for its extent. Tensors on one line lie each
// at a place of its own.
using Place = std::tuple<std::uint32_t, Index, Index, std::size_t>;

// Tensors with equal keys have equal shares.
using Key = std::tuple<Place, Place, DType, Box>;

Place place_of(const Layout& layout, std::size_t tensor) {
  const Placed& placed = layout.placed()[tensor];
  const bool no_stage = placed.layer < 0 || layout.stages().layers.empty();
  const auto& flat = layout.placement(tensor).flat;
  return {placed.placement, no_stage ? -1 : layout.stages().stage_of(placed.layer), placed.expert,
          flat && flat->unit != FlatUnit::tensor ? tensor : 0};
}

// A placement may leave elements to nobody: it was written by hand, or for another mesh.
void check_covered(const TensorDesc& desc, const std::vector<HeldBox>& wanted, const Mesh& mesh) {
  std::vector<Box> boxes;
  boxes.reserve(wanted.size());
  for (const HeldBox& held : wanted) boxes.push_back(held.box);
  const Coverage coverage = cover(desc.extent, boxes);
  if (coverage.missing.empty()) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot place {} on {}: its placement gives {} to no rank",
                          to_string(desc), describe(mesh), to_string(coverage.missing.front())));
}

Share share_of(const TensorDesc& desc, const std::vector<HeldBox>& held,
               const std::vector<HeldBox>& wanted, std::int64_t copies) {
  Share share;
  for (const HeldBox& box : held) share.replicated |= box.holders.size() > 1;
  for (const HeldBox& box : wanted) {
    const std::int64_t bytes = num_bytes(desc.dtype, box.box);
    share.write += bytes * std::min(copies, static_cast<std::int64_t>(box.holders.size()));
    for (const Rank rank : box.holders) share.ranks.emplace_back(rank, bytes);
  }
  for (const Move& move : plan_tensor(desc, held, wanted)) {
    const std::int64_t bytes = num_bytes(desc.dtype, move.box);
    share.wanted += bytes;
    if (move.source == move.target) share.kept += bytes;
  }
  return share;
}

void add(PlanSummary& summary, const TensorDesc& stored, const TensorDesc& desc,
         const Share& share) {
  ++summary.num_tensors;
  summary.payload_bytes += num_bytes(desc);
  summary.read_bytes += num_bytes(stored);
  summary.write_bytes += share.write;
  summary.wanted_bytes += share.wanted;
  summary.kept_bytes += share.kept;
  summary.moved_bytes += share.wanted - share.kept;
  summary.replicated_tensors += share.replicated ? 1 : 0;
  for (const auto& [rank, bytes] : share.ranks) {
    summary.rank_bytes[static_cast<std::size_t>(rank)] += bytes;
  }
}

std::unordered_map<std::string_view, std::size_t> numbered(const std::vector<TensorDesc>& tensors) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  numbers.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) numbers.emplace(tensors[i].name, i);
  return numbers;
}

}  // namespace

PlanSummary summarize(const Catalog& source, const Catalog& target, std::int64_t copies) {
  PlanSummary summary;
  summary.source = source.layout.mesh();
  summary.target = target.layout.mesh();
  summary.rank_bytes.resize(static_cast<std::size_t>(summary.target.num_ranks()));

  const auto numbers = numbered(source.tensors);
  const Pieces held(source.layout, source.tensors);
  const Pieces wanted(target.layout, target.tensors);
  std::map<Key, Share> shares;
  for (std::size_t to = 0; to < target.tensors.size(); ++to) {
    const TensorDesc& desc = target.tensors[to];
    const auto found = numbers.find(desc.name);
    if (found == numbers.end() || !can_become(source.tensors[found->second], desc)) {
      throw Error(Errc::invalid_argument,
                  fmt::format("cannot plan {}: the source has no such tensor", to_string(desc)));
    }
    const std::size_t from = found->second;
    const Key key{place_of(source.layout, from), place_of(target.layout, to), desc.dtype,
                  desc.extent};
    auto share = shares.find(key);
    if (share == shares.end()) {
      const std::vector<HeldBox> after = wanted.of(to);
      check_covered(desc, after, summary.target);
      share = shares.emplace(key, share_of(desc, held.of(from), after, copies)).first;
    }
    add(summary, source.tensors[from], desc, share->second);
  }
  // Last: an illegal split was refused above, with the tensor's name.
  summary.uneven = uneven_splits(target.layout, target.tensors);
  return summary;
}

}  // namespace remesh
