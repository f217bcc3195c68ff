#include "judgement.hpp"

namespace remesh {

std::string side_name(const Judgement& judgement, std::size_t side) {
  if (judgement.sides.size() < 2) return {};
  return side == 0 ? "left" : "right";
}

}  // namespace remesh
