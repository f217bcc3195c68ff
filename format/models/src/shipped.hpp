#pragma once

#include <span>
#include <string_view>

namespace remesh::detail {

/// A map that is compiled in, as it stands in format/models/.
struct ShippedText {
  std::string_view file_name;
  std::string_view toml;
};

/// All of them. Defined by a file that CMake generates.
std::span<const ShippedText> shipped_texts() noexcept;

}  // namespace remesh::detail
