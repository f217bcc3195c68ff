#include "blake2b_digests.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include <fmt/format.h>

#include "panels.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/blake2b.hpp"

namespace remesh::detail {
namespace {

constexpr std::int64_t panel_bytes = std::int64_t{1} << 20;

// What one worker reads into.
struct Room {
  MemoryBudget::Reservation held;
  Buffer bytes;
};

std::string text_of(const Blake2b::Hash& hash) {
  std::string text = "blake2b:";
  text.reserve(text.size() + 2 * hash.size());
  for (const std::byte byte : hash) {
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

class Hashing {
 public:
  Hashing(const JudgeContext& context, const Reader& reader) : context_(context), reader_(reader) {}

  std::vector<std::string> run() {
    const auto& tensors = reader_.catalog().tensors;
    texts_.resize(tensors.size());
    context_.progress.begin("hashing", payload_bytes(reader_.catalog()));
    // The largest first, so that no thread begins it when the others are done.
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t tensor) { return num_bytes(tensors[tensor]); });
    const std::int64_t share = context_.budget.limit_bytes() / 4;
    const auto workers = static_cast<std::size_t>(
        std::clamp<std::int64_t>(share / panel_bytes, 1, context_.pool.size()));
    std::atomic<std::size_t> next{0};
    context_.pool.run(std::min(workers, order.size()), [&](std::size_t, int) {
      Room room;
      for (std::size_t at = next++; at < order.size(); at = next++) hash(order[at], room);
    });
    context_.progress.end();
    return std::move(texts_);
  }

 private:
  void hash(std::size_t tensor, Room& room) {
    const TensorDesc& desc = reader_.catalog().tensors[tensor];
    Blake2b blake;
    Digest digest;
    if (!desc.extent.empty()) {
      const Panels panels(desc, panel_bytes);
      for (Index panel = 0; panel < panels.count(); ++panel) {
        const auto bytes = read(tensor, panels.box(panel), room);
        blake.add(bytes);
        digest = extend(digest, bytes);
      }
    }
    check(tensor, digest);
    texts_[tensor] = text_of(blake.end());
  }

  std::span<const std::byte> read(std::size_t tensor, const Box& box, Room& room) {
    context_.stop.check();
    const std::int64_t size = num_bytes(reader_.catalog().tensors[tensor].dtype, box);
    if (size > room.bytes.size_bytes()) {
      const std::int64_t room_bytes = std::max(size, panel_bytes);
      room.bytes = {};
      room.held = {};
      room.held = context_.budget.reserve(room_bytes, "elements to be hashed");
      room.bytes = Buffer(room_bytes);
    }
    const auto into = room.bytes.bytes().first(static_cast<std::size_t>(size));
    reader_.read(tensor, box, into, {});
    context_.progress.advance(size);
    return into;
  }

  void check(std::size_t tensor, Digest digest) const {
    const Catalog& catalog = reader_.catalog();
    if (catalog.digests.empty() || catalog.digests[tensor] == digest) return;
    throw Error(Errc::corrupt,
                fmt::format("cannot take the fingerprint of {}: its bytes hash to {}, but {} is "
                            "recorded (`remesh verify` says where)",
                            to_string(catalog.tensors[tensor]), to_string(digest),
                            to_string(catalog.digests[tensor])),
                "RM207");
  }

  const JudgeContext& context_;
  const Reader& reader_;
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> blake2b_digests(const JudgeContext& context, const Reader& reader) {
  return Hashing(context, reader).run();
}

}  // namespace remesh::detail
