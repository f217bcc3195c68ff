#pragma once

#include <string>

#include "judgement.hpp"

namespace remesh {

/// What is known layer by layer, as a section of a page: bytes and findings; and of each kind of
/// tensor whose numbers were counted the least and the greatest exponent and the share of zeros.
/// Nothing where nothing is known.
std::string layer_plots(const Judgement& judgement);

}  // namespace remesh
