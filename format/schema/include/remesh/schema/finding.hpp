#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/schema/box.hpp"

namespace remesh {

enum class Severity { note, warn, error };

std::string_view to_string(Severity severity) noexcept;

/// The half-open range [begin, end) of a file, in bytes.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Something that is wrong with a checkpoint: a value, never an exception, to whoever judges one.
struct Finding {
  std::string id;  ///< stable: "RM202"
  Severity severity = Severity::error;
  std::string message;  ///< one sentence with names and both numbers
  std::string file;     ///< its name in the checkpoint, or empty
  std::optional<ByteRange> bytes;
  std::string tensor;  ///< its name, or empty
  /// The names of further tensors of which the same is said, where it is said once for all.
  std::vector<std::string> more_tensors = {};
  std::optional<Box> box;
  std::string found;
  std::string expected;
  std::string next_step;
  /// "left" or "right" where two checkpoints are compared; otherwise empty.
  std::string side;

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// The code with which a reader that must use the checkpoint refuses it: RM101, RM105 not_found;
/// RM102, RM310, RM607 unsupported; RM203, RM204, RM301, RM302, RM309 incomplete; RM104,
/// RM601 to RM604, RM606, RM611, RM612 unsafe; RM605, RM705 out_of_memory; RM701 busy; RM702,
/// RM703, RM706 io; all others corrupt.
Errc errc_of(const Finding& finding);

/// Who hears of findings while a checkpoint is opened. A reader that must use the checkpoint gets
/// the strict one, and stops at the first error; a judge collects them all.
class Findings {
 public:
  virtual ~Findings() = default;
  virtual void add(Finding finding) = 0;
};

/// Throws Error(errc_of(finding), "<message>", id) on the first of severity error; keeps the rest.
class StrictFindings final : public Findings {
 public:
  void add(Finding finding) override;
  const std::vector<Finding>& rest() const noexcept { return rest_; }

 private:
  std::vector<Finding> rest_;
};

/// Keeps them all, in the order in which they came.
class CollectedFindings final : public Findings {
 public:
  void add(Finding finding) override { all.push_back(std::move(finding)); }

  std::vector<Finding> all;
};

}  // namespace remesh
