#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json_parts.hpp"
#include "output.hpp"
#include "remesh/schema/finding.hpp"

/// @file
/// Findings that somebody decided to live with: they are counted, and make nothing fail.

namespace remesh {

using Day = std::chrono::year_month_day;

/// Which findings are ignored, why, and how long.
struct IgnoreRule {
  std::string id;
  std::string glob;    ///< over the name of the tensor or of the file; empty: all of that id
  std::string reason;  ///< empty where the command line says it
  std::optional<Day> expires;  ///< the last day on which it holds
  std::string origin;          ///< where it stands: "--ignore RM541", "remesh.toml line 3"

  friend bool operator==(const IgnoreRule&, const IgnoreRule&) = default;
};

/// "RM541" or "RM541:GLOB", or with an id in small letters. Throws Error(invalid_argument) as
/// checked_id().
IgnoreRule parse_ignore(const std::string& text);

/// The id that is meant, as normal_id() has it. Throws Error(invalid_argument) for one that has no
/// page, with the nearest one, and for those that nobody may ignore: RM101 to RM105, RM202 and
/// RM203 (what was not opened, or is not there, was not judged), RM6xx (safety) and RM7xx (the
/// machine).
std::string checked_id(const std::string& said);

/// "2027-03-31".
std::string to_text(const Day& day);

/// By UTC.
Day today();

/// What became of the rules.
struct Ignored {
  struct Rule {
    IgnoreRule rule;
    bool expired = false;
    std::int64_t matched = 0;  ///< findings; of one that expired: those that count again
    std::int64_t others = 0;   ///< of one that expired: those that another rule takes now
  };
  struct Taken {
    Finding finding;
    std::size_t rule = 0;  ///< its number in `rules`
  };

  std::vector<Rule> rules;
  std::vector<Taken> findings;
  std::vector<Finding> kept;  ///< a rule covers them, but what they are about was not opened
};

/// Takes out of `findings` those that a rule covers which has not expired on that day. What
/// `may_be` says no to stays.
Ignored take_ignored(std::vector<Finding>& findings, std::span<const IgnoreRule> rules,
                     const Day& day, const std::function<bool(const Finding&)>& may_be);

/// A line for each rule that took some: "  ignored: 2 of RM541, until 2027-03-31: reason".
std::vector<std::string> ignored_lines(const Ignored& ignored);
/// Prints them as results.
void print_ignored(const Ignored& ignored, Output& out);

/// On standard error: rules that expired, that nothing matched, and findings that were kept.
void warn_of_rules(const Ignored& ignored, const Output& out);

/// What is said of a rule that expired, or that nothing matched; empty of any other.
std::string trouble_with(const Ignored::Rule& applied);

/// "1 error, 2 ignored": count_line(), and those that were ignored.
std::string count_line(std::span<const Finding> findings, const Ignored& ignored);

/// Adds the keys "ignored" and "ignores".
void add_ignored(Json& document, const Ignored& ignored);

}  // namespace remesh
