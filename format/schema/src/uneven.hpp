#pragma once

#include <set>
#include <string>
#include <vector>

#include "remesh/schema/layout.hpp"

namespace remesh::detail {

/// Collects the sizes that a mesh does not divide, each once, as text.
class UnevenSplits {
 public:
  explicit UnevenSplits(const Layout& layout);

  void look_at(const Placement& placement, const TensorDesc& desc);
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  void add(std::string what, Index total, const std::string& over, const std::vector<Index>& parts);

  const Layout& layout_;
  std::set<std::string> seen_;
  std::vector<std::string> texts_;
};

}  // namespace remesh::detail
