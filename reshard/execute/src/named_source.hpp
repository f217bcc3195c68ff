#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "remesh/store/reader.hpp"

namespace remesh::detail {

/// The source of a transfer, and what its messages say of it.
struct NamedSource {
  const Reader& reader;
  std::string_view name;       ///< as the user calls it
  bool copies_chosen = false;  ///< whether all copies were looked at before
};

/// What to do about a tensor of which the copy that was read is not what was recorded: a clause
/// that names the options which take another copy. Empty where no other is stored, or where they
/// were looked at already.
std::string other_copies(const NamedSource& source, std::size_t tensor);

}  // namespace remesh::detail
