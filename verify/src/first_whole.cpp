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

Report judged(const JudgeContext& context, const Suspect& suspect, Level level) {
  try {
    return verify(context, suspect, level);
  } catch (const Error& error) {
    if (!is_answer(error.code())) throw;
    Report report;
    report.level = level;
    Finding finding;
    finding.id = error.id().empty() ? "RM202" : error.id();
    finding.message = error.what();
    report.findings.push_back(std::move(finding));
    return report;
  }
}

}  // namespace

FirstWhole first_whole(const JudgeContext& context, std::size_t candidates,
                       const std::function<Suspect(std::size_t candidate)>& suspect, Level level) {
  FirstWhole result;
  for (std::size_t k = 0; k < candidates && !result.candidate; ++k) {
    result.reports.push_back(judged(context, suspect(k), level));
    if (result.reports.back().count(Severity::error) == 0) result.candidate = k;
  }
  return result;
}

}  // namespace remesh
