#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "json_parts.hpp"
#include "judgement.hpp"
#include "remesh/verify/report.hpp"
#include "session.hpp"

namespace remesh {

/// A signature that fits the manifest, or the seal.
struct Signature {
  std::string key_id;
  std::string what;                ///< that it fits: "manifest", "seal"
  std::int64_t files = 0;          ///< how many that lists
  std::int64_t files_checked = 0;  ///< those whose content was found to be what was signed
};

/// What was judged, and how it came out.
struct Verdict {
  Side side;
  std::optional<Side> against;
  std::optional<Side> previous;  ///< an earlier save of the same run
  Report report;                 ///< but for the findings that are ignored
  Ignored ignored;
  std::optional<Signature> signature;  ///< null where none was checked, or it does not fit
  bool failed = false;                 ///< findings at or above --fail-on, or tensors that differ
  double seconds = 0;
};

/// The families of findings that a checkpoint was judged by, as CheckGroup::families has them.
std::string families_of(const Report& report);

/// What the reports of all commands are made from: sides, groups of checks, findings and facts.
Judgement judgement_of(const Verdict& verdict);

void print_verdict(const Verdict& verdict, Output& out);
Json verdict_json(const Verdict& verdict);

}  // namespace remesh
