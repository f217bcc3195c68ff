#include "remesh/verify/first_whole.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

// Whether an error says something of the checkpoint, and not of the machine.
bool is_answer(Errc code) {
  constexpr std::array answers{Errc::not_found, Errc::corrupt, Errc::incomplete, Errc::unsupported,
                               Errc::unsafe};
  return std::ranges::find(answers, code) != answers.end();
}

struct Judged {
  Report report;
  bool refused = false;  // by its reader, at any time
};

Judged judged(const JudgeContext& context, const Suspect& suspect, Level level) {
  bool opened = false;
  const Opener open = [&](Findings& findings) {
    auto reader = suspect.open(findings);
    opened = reader != nullptr;
    return reader;
  };
  try {
    Report report = verify(context, Suspect(open, suspect.view, suspect.named_step), level);
    return {std::move(report), !opened};
  } catch (const Error& error) {
    if (!is_answer(error.code())) throw;
    Report report;
    report.level = level;
    Finding finding;
    finding.id = error.id().empty() ? "RM202" : error.id();
    finding.message = error.what();
    report.findings.push_back(std::move(finding));
    return {std::move(report), true};
  }
}

}  // namespace

bool has_no_error(std::size_t /*candidate*/, const Report& report) {
  return report.count(Severity::error) == 0;
}

FirstWhole first_whole(const JudgeContext& context, std::size_t candidates,
                       const std::function<Suspect(std::size_t candidate)>& suspect, Level level,
                       const IsWhole& is_whole) {
  FirstWhole result;
  for (std::size_t k = 0; k < candidates && !result.candidate; ++k) {
    auto [report, refused] = judged(context, suspect(k), level);
    result.reports.push_back(std::move(report));
    result.refused.push_back(refused);
    if (!refused && is_whole(k, result.reports.back())) result.candidate = k;
  }
  return result;
}

}  // namespace remesh
