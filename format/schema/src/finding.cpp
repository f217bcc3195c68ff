#include "remesh/schema/finding.hpp"

#include <algorithm>
#include <array>

namespace remesh {
namespace {

struct Rule {
  std::string_view id;
  Errc code;
};

// Those that are not simply corrupt.
constexpr std::array rules{
    Rule{"RM101", Errc::not_found},
    Rule{"RM102", Errc::unsupported},
    Rule{"RM104", Errc::unsafe},
    Rule{"RM105", Errc::not_found},
    Rule{"RM203", Errc::incomplete},
    Rule{"RM204", Errc::incomplete},
    Rule{"RM301", Errc::incomplete},
    Rule{"RM302", Errc::incomplete},
    Rule{"RM309", Errc::incomplete},
    Rule{"RM310", Errc::unsupported},
    Rule{"RM601", Errc::unsafe},
    Rule{"RM602", Errc::unsafe},
    Rule{"RM603", Errc::unsafe},
    Rule{"RM604", Errc::unsafe},
    Rule{"RM605", Errc::out_of_memory},
    Rule{"RM606", Errc::unsafe},
    Rule{"RM607", Errc::unsupported},
    Rule{"RM611", Errc::unsafe},
    Rule{"RM612", Errc::unsafe},
    Rule{"RM701", Errc::busy},
    Rule{"RM702", Errc::io},
    Rule{"RM703", Errc::io},
    Rule{"RM705", Errc::out_of_memory},
    Rule{"RM706", Errc::io},
};

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warn:
      return "warn";
    case Severity::error:
      return "error";
  }
  return "error";
}

Errc errc_of(const Finding& finding) {
  const auto rule = std::ranges::find(rules, finding.id, &Rule::id);
  return rule == rules.end() ? Errc::corrupt : rule->code;
}

void StrictFindings::add(Finding finding) {
  if (finding.severity == Severity::error) {
    throw Error(errc_of(finding), finding.message, finding.id);
  }
  rest_.push_back(std::move(finding));
}

}  // namespace remesh
