#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file
/// What `remesh env` can say about the machine.

namespace remesh {

/// The name that the processor gives itself; "unknown" where it has none.
std::string processor_name();

/// Of the processor's abilities, those that make remesh faster: "pclmul", "avx2".
std::vector<std::string> processor_features();

/// The processors that this process may use.
int usable_processors();

/// The memory that this process may use: the machine's, or its control group's if that is less.
std::int64_t memory_limit_bytes();

/// What this process holds now; nothing where the system does not say.
std::optional<std::int64_t> resident_bytes();

}  // namespace remesh
