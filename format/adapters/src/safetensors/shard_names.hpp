#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"

/// @file
/// "model-00002-of-00011.safetensors" says that there are 11 files, whatever an index says.

namespace remesh::safetensors {

/// The files of one such count, some of which are absent.
struct CutSet {
  std::string first;               ///< the first one that is there
  std::int64_t count = 0;          ///< how many there must be
  std::int64_t absent = 0;         ///< how many are not there
  std::vector<std::string> names;  ///< of the first few of those
};

/// The sets of which one of `chosen` is a file, and of which not every file is in `chosen` or in
/// `beside`. Files are numbered from 1, or from 0 where one is 0. A name with a number beyond its
/// count says nothing.
std::vector<CutSet> cut_sets(const std::set<std::string>& chosen,
                             const std::set<std::string>& beside = {});

/// Tells of each (RM203).
void report_cut_sets(const std::vector<CutSet>& sets, Findings& findings);

}  // namespace remesh::safetensors
