#pragma once

#include <memory>
#include <vector>

#include "remesh/core/buffer.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"

namespace remesh {

/// A checkpoint in this process's memory: each rank is one "file" that holds that rank's pieces
/// back to back. For tests, and for live resharding later.
class MemoryStore {
 public:
  /// Pieces as the catalog's layout has them, every holder storing its own; bytes are zero.
  explicit MemoryStore(Catalog catalog);
  ~MemoryStore();

  const Catalog& catalog() const noexcept;
  const ExtentMap& extents() const noexcept;
  /// The bytes of one rank.
  std::span<std::byte> bytes(Rank rank) noexcept;

  /// Both refer to this store, which must outlive them. A writer's publish() does nothing.
  std::unique_ptr<Reader> reader() const;
  std::unique_ptr<Writer> writer();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace remesh
