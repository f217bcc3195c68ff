#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/catalog.hpp"

namespace remesh::native {

/// What a damaged manifest still says, as canonical JSON, and unchecked: whoever uses it has to
/// prove it.
struct Salvage {
  std::string layout;
  std::string mesh;
  std::optional<std::string> packaging;
  std::string run_id;
  std::vector<Placed> placed;  ///< for each tensor
};

/// Looks for it in what was manifest.json. `tensors` are known from elsewhere: how one of them is
/// placed whose place in the text is damaged is taken from those whose names differ in numbers
/// alone. Nothing if layout or mesh are not there.
std::optional<Salvage> salvage(std::string_view text, std::span<const TensorDesc> tensors);

/// The side files that the manifest lists. Nothing if that part of it is damaged.
std::optional<std::vector<SideFile>> salvage_side(std::string_view text);

}  // namespace remesh::native
