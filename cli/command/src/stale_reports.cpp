#include "stale_reports.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <utility>

#include "remesh/core/error.hpp"
#include "report_file.hpp"

namespace remesh {
namespace {

constexpr std::size_t most_first_bytes = 512;

/// A flag that names a report, and with what words such a file begins if it is one.
struct Kind {
  std::string_view flag;
  std::string_view beginning;
  std::string_view name;  ///< soon after it
};

constexpr std::array kinds{
    Kind{"--junit", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"remesh ",
         "tests="},
    Kind{"--sarif", "{\n \"$schema\": \"https://docs.oasis-open.org/sarif/", R"("name": "remesh")"},
    Kind{"--html", "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n", ": remesh "},
};

/// What a flag is given, and where it stands on the command line.
struct Named {
  const Kind* kind = nullptr;
  std::size_t position = 0;
  std::string path;
};

std::string value_of(const std::string& argument) {
  const bool is_option = argument.starts_with("--");
  return is_option ? argument.substr(std::min(argument.find('='), argument.size() - 1) + 1)
                   : argument;
}

std::vector<Named> reports_of(const std::vector<std::string>& arguments) {
  std::vector<Named> named;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    for (const Kind& kind : kinds) {
      if (arguments[at] == kind.flag && at + 1 < arguments.size()) {
        named.push_back({&kind, at + 1, arguments[at + 1]});
      } else if (arguments[at].starts_with(std::string(kind.flag) + "=")) {
        named.push_back({&kind, at, value_of(arguments[at])});
      }
    }
  }
  return named;
}

// All else that may be a path: one of them may be what was to be judged.
std::vector<std::string> others_of(const std::vector<std::string>& arguments, const Named& report) {
  std::vector<std::string> others;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    std::string value = value_of(arguments[at]);
    if (at != report.position && !value.empty()) others.push_back(std::move(value));
  }
  return others;
}

bool is_ours(const Named& report) {
  std::ifstream file(report.path, std::ios::binary);
  std::string text(most_first_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.starts_with(report.kind->beginning) &&
         text.find(report.kind->name) != std::string::npos;
}

bool may_lie_there(const Named& report, const std::vector<std::string>& arguments) {
  try {
    check_report_path(std::string(report.kind->flag), report.path, others_of(arguments, report));
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void remove_stale_reports(const std::vector<std::string>& arguments) {
  for (const Named& report : reports_of(arguments)) {
    if (may_lie_there(report, arguments) && is_ours(report)) remove_report(report.path);
  }
}

}  // namespace remesh
