#include "ignores.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "explain_pages.hpp"
#include "finding_text.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/states.hpp"
#include "text.hpp"

namespace remesh {
namespace {

bool fits(const std::string& glob, const std::string& name) {
  return !name.empty() && fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

// "w" of its state "w@exp_avg", and of itself: a pattern covers a parameter with its states.
std::string parameter_of(const std::string& name) {
  const auto state = parse_state_name(name);
  return state ? std::string(state->parameter) : name;
}

bool covers(const IgnoreRule& rule, const Finding& finding) {
  if (rule.id != finding.id) return false;
  if (rule.glob.empty() || fits(rule.glob, finding.file)) return true;
  // What is said of several tensors is excused only if each of them is.
  const auto is_meant = [&](const std::string& name) {
    return fits(rule.glob, name) || fits(rule.glob, parameter_of(name));
  };
  return is_meant(finding.tensor) && std::ranges::all_of(finding.more_tensors, is_meant);
}

// "RM541 ('model.embed*')".
std::string subject_of(const IgnoreRule& rule) {
  return rule.glob.empty() ? rule.id : fmt::format("{} ('{}')", rule.id, escaped(rule.glob));
}

// The first rule that holds takes a finding; one that expired hears of it all the same, and whether
// another took it.
std::optional<std::size_t> rule_for(const Finding& finding, std::vector<Ignored::Rule>& rules) {
  const auto taker = std::ranges::find_if(rules, [&](const Ignored::Rule& applied) {
    return !applied.expired && covers(applied.rule, finding);
  });
  for (Ignored::Rule& applied : rules) {
    if (!applied.expired || !covers(applied.rule, finding)) continue;
    ++(taker == rules.end() ? applied.matched : applied.others);
  }
  if (taker == rules.end()) return std::nullopt;
  return static_cast<std::size_t>(taker - rules.begin());
}

// What an expired rule is about now: "2 findings count again".
std::string outcome_of(const Ignored::Rule& expired) {
  const auto [matched, others] = std::pair(expired.matched, expired.others);
  if (matched == 0 && others == 0) return "nothing that was judged here matches it";
  const std::string taken =
      fmt::format("another entry ignores {} that it covers", counted(others, "finding"));
  if (matched == 0) return taken + ", so it can be removed";
  return fmt::format("{} again{}",
                     counted(matched, "finding") + (matched == 1 ? " counts" : " count"),
                     others > 0 ? ", and " + taken : "");
}

Json day_or_null(const std::optional<Day>& day) {
  return day ? Json(to_text(*day)) : Json(nullptr);
}

std::string_view status_of(const Ignored::Rule& applied) {
  if (applied.expired) return "expired";
  return applied.matched > 0 ? "used" : "unused";
}

}  // namespace

IgnoreRule parse_ignore(const std::string& text) {
  IgnoreRule rule;
  const std::size_t colon = text.find(':');
  rule.id = checked_id(text.substr(0, colon));
  rule.origin = "--ignore " + text;
  if (colon != std::string::npos) {
    rule.glob = text.substr(colon + 1);
    if (rule.glob.empty()) {
      throw Error(Errc::invalid_argument,
                  fmt::format("`--ignore {}` names no tensor or file behind its colon; `--ignore "
                              "{}` is for all of that id",
                              text, rule.id));
    }
  }
  return rule;
}

std::string checked_id(const std::string& said) {
  std::string id = normal_id(said);
  const std::vector<Page> pages = all_pages();
  if (std::ranges::find(pages, id, &Page::id) == pages.end()) {
    std::vector<std::string> ids;
    ids.reserve(pages.size());
    for (const Page& page : pages) ids.emplace_back(page.id);
    const std::string meant = nearest(id, ids);
    throw Error(Errc::invalid_argument,
                fmt::format("cannot ignore '{}': there is no such finding{}; `remesh explain "
                            "--list` lists them all",
                            said, meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
  const char* why = nullptr;
  if (id >= "RM101" && id <= "RM105") why = "what was not opened, or not committed, was not judged";
  if (id == "RM202" || id == "RM203") why = "what is cut off or missing was not judged";
  if (id.starts_with("RM6")) why = "it is about safety";
  if (id.starts_with("RM7")) why = "it is about this machine, and no answer about the checkpoint";
  if (why == nullptr) return id;
  throw Error(Errc::invalid_argument, fmt::format("cannot ignore {}: {}", id, why));
}

std::string to_text(const Day& day) {
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

Day today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

Ignored take_ignored(std::vector<Finding>& findings, std::span<const IgnoreRule> rules,
                     const Day& day, const std::function<bool(const Finding&)>& may_be) {
  Ignored ignored;
  ignored.rules.reserve(rules.size());
  for (const IgnoreRule& rule : rules) {
    ignored.rules.push_back({rule, rule.expires && *rule.expires < day, 0});
  }
  std::vector<Finding> counted;
  for (Finding& finding : findings) {
    const auto rule = rule_for(finding, ignored.rules);
    if (rule) ++ignored.rules[*rule].matched;
    if (!rule) {
      counted.push_back(std::move(finding));
    } else if (!may_be(finding)) {
      ignored.kept.push_back(finding);
      counted.push_back(std::move(finding));
    } else {
      ignored.findings.push_back({std::move(finding), *rule});
    }
  }
  findings = std::move(counted);
  return ignored;
}

std::vector<std::string> ignored_lines(const Ignored& ignored) {
  std::vector<std::string> lines;
  std::vector<std::int64_t> taken(ignored.rules.size());
  for (const Ignored::Taken& one : ignored.findings) ++taken[one.rule];
  for (std::size_t k = 0; k < taken.size(); ++k) {
    if (taken[k] == 0) continue;
    const IgnoreRule& rule = ignored.rules[k].rule;
    lines.push_back(fmt::format("  ignored: {} of {}{}{}", taken[k], subject_of(rule),
                                rule.expires ? ", until " + to_text(*rule.expires) : "",
                                rule.reason.empty() ? "" : ": " + escaped(rule.reason)));
  }
  return lines;
}

void print_ignored(const Ignored& ignored, Output& out) {
  for (const std::string& line : ignored_lines(ignored)) out.line(line);
}

std::string trouble_with(const Ignored::Rule& applied) {
  const IgnoreRule& rule = applied.rule;
  if (applied.expired) {
    return fmt::format("{}: {} was ignored until {}, which is over; {}", escaped(rule.origin),
                       subject_of(rule), to_text(*rule.expires), outcome_of(applied));
  }
  if (applied.matched > 0) return {};
  return fmt::format("{}: nothing was found that this would ignore", escaped(rule.origin));
}

void warn_of_rules(const Ignored& ignored, const Output& out) {
  for (const Ignored::Rule& applied : ignored.rules) {
    const std::string trouble = trouble_with(applied);
    if (trouble.empty()) continue;
    if (applied.expired) {
      out.warn("remesh: warning: " + trouble);
    } else {
      out.talk("remesh: note: " + trouble);
    }
  }
  if (ignored.kept.empty()) return;
  out.warn(
      fmt::format("remesh: warning: {} is not ignored: what could not be opened was not "
                  "judged, whatever is ignored",
                  ignored.kept.front().id));
}

std::string count_line(std::span<const Finding> findings, const Ignored& ignored) {
  if (ignored.findings.empty()) return count_line(findings);
  const std::string rest = fmt::format("{} ignored", ignored.findings.size());
  return findings.empty() ? rest : fmt::format("{}, {}", count_line(findings), rest);
}

void add_ignored(Json& document, const Ignored& ignored) {
  Json taken = Json::array();
  for (const Ignored::Taken& one : ignored.findings) {
    taken.push_back({{"rule", one.rule}, {"finding", json_of(one.finding)}});
  }
  Json rules = Json::array();
  for (const Ignored::Rule& applied : ignored.rules) {
    rules.push_back({{"id", applied.rule.id},
                     {"glob", text_or_null(applied.rule.glob)},
                     {"reason", text_or_null(applied.rule.reason)},
                     {"expires", day_or_null(applied.rule.expires)},
                     {"origin", applied.rule.origin},
                     {"status", status_of(applied)},
                     {"matched", applied.matched}});
  }
  document["ignored"] = std::move(taken);
  document["ignore_rules"] = std::move(rules);
}

}  // namespace remesh
