#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "remesh/execute/context.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/reader.hpp"

namespace remesh {

/// What a job does where the stored copies of a piece differ.
enum class ReplicaChoice {
  error,     ///< it refuses
  first,     ///< it takes the first copy that is what was recorded of it
  majority,  ///< it takes what more than half of those copies hold
};

std::optional<ReplicaChoice> parse_replica_choice(std::string_view name) noexcept;
std::string_view to_string(ReplicaChoice choice) noexcept;

/// A source of which all copies were read.
struct ComparedReplicas {
  /// What to read instead of the source, which must outlive it; null: the source as it is.
  std::unique_ptr<Reader> reader;
  std::int64_t unlike = 0;  ///< pieces of which some copy differs, or is damaged
  /// RM403 for each of the first 16 of them: which copy was taken, and what the others were.
  std::vector<Finding> findings;
};

/// Reads each copy of every piece that is stored more than once, and chooses. Copies that are not
/// what their own block CRCs record are damaged: they are never taken, and vote for nothing.
/// Throws Error(corrupt, RM401), which names the tensor, the files, the ranks and the first element
/// that differs, if copies differ and `choice` is `error`, or `majority` where none has one;
/// Error(corrupt, RM207) if one is damaged and `choice` is `error`, or all are; Error(io),
/// Error(stopped).
ComparedReplicas compare_replicas(const Context& context, const Reader& source,
                                  ReplicaChoice choice);

}  // namespace remesh
