#pragma once

#include <string>

#include "judgement.hpp"

namespace remesh {

/// A judgement as one page of HTML that stands by itself: nothing of it asks for anything from
/// anywhere. Summary, meshes, findings (the gravest 1,000; the rest is counted), what their ids
/// mean, and numbers and bytes layer by layer. It works without its script, which filters findings.
std::string html_report(const Judgement& judgement);

}  // namespace remesh
