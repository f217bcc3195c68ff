#pragma once

#include <string>

#include "failure.hpp"
#include "judgement.hpp"

namespace remesh {

/// A judgement as JUnit's XML: a test suite for each group of checks, a test case for each family
/// of findings that was looked for. A case fails where one of its findings counts, and is passed
/// otherwise; what is ignored is a case that was skipped, with the reason.
std::string junit_report(const Judgement& judgement);

/// Where there is no verdict: one test case with an error, which is what JUnit calls a test that
/// could not be run.
std::string junit_report(const NoVerdict& none);

}  // namespace remesh
