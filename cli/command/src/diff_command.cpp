#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "diff_judgement.hpp"
#include "diff_report.hpp"
#include "exit_code.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/shell_word.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/verify/diff.hpp"
#include "reports.hpp"

namespace remesh {
namespace {

constexpr std::int64_t usual_limit = 20;

struct Options {
  std::string left;
  std::string right;
  std::string from;
  DiffOptions diff;
  std::optional<std::int64_t> limit;  ///< 0: none
  ReportOptions reports;
  TalkOptions talk;
  WorkOptions work;
};

// Scripts read all of it, people the beginning.
std::size_t most_listed(const Options& options) {
  const std::int64_t limit = options.limit.value_or(options.talk.json ? 0 : usual_limit);
  return limit == 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit);
}

// Numbers alone do not show that rows, parts, layers or experts stand elsewhere.
std::string next_step_of(const Options& options, const Differences& differences) {
  const auto& left = differences.left.reader.catalog().tensors;
  const auto& right = differences.right.reader.catalog().tensors;
  const bool any = std::ranges::any_of(differences.diff.tensors, [&](const TensorDiff& tensor) {
    return tensor.likeness == Likeness::different &&
           left[tensor.left].dtype == right[tensor.right].dtype;
  });
  if (!any) return {};
  return fmt::format(
      "`remesh verify {} --against {}{}` tells whether numbers are merely rearranged",
      shell_word(options.left), shell_word(options.right),
      options.from.empty() ? "" : " --from " + options.from);
}

int run(const Options& options, Session& session) {
  check_format("--from", options.from);
  const Reports reports(options.reports, {options.left, options.right}, session);
  Machine machine(options.work, session.out, session.stop);
  const LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  StrictFindings findings;
  const auto left = open_reader(files, options.left, options.from, findings);
  const auto right = open_reader(files, options.right, {}, findings);
  Differences differences{{options.left, *left},
                          {options.right, *right},
                          options.diff.tolerance,
                          diff(machine.judge(), *left, *right, options.diff)};
  differences.seconds = session.seconds();
  differences.next_step = next_step_of(options, differences);
  Judgement judgement = judgement_of(differences);
  reports.settle(judgement);
  // Whatever is ignored: where nothing was compared there is no equality.
  const bool nothing = std::ranges::all_of(differences.diff.tensors, [](const TensorDiff& tensor) {
    return tensor.likeness == Likeness::not_compared;
  });
  judgement.failed = judgement.failed || nothing;
  differences.failed = judgement.failed;
  differences.ignored = judgement.ignored.findings.size();
  print_differences(differences, most_listed(options), session.out);
  print_ignored(judgement.ignored, session.out);
  reports.write(judgement, session.out);
  Json document = differences_json(differences, most_listed(options));
  add_ignored(document, judgement.ignored);
  session.out.document(document);
  return judgement.failed ? exit_code::no : exit_code::done;
}

// Numbers that are not below 0; "nan" is none.
std::string check_size(const std::string& text) {
  double value = -1;
  const char* const end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc{} && at == end && value >= 0) return {};
  return "it takes a number that is not below 0, not '" + text + "'";
}

void add_tolerance_options(CLI::App& verb, Tolerance& tolerance) {
  verb.add_option("--atol", tolerance.absolute,
                  "elements that are no further apart count as equal; with --rtol: no further than "
                  "A + R times the larger one")
      ->check(check_size)
      ->type_name("A");
  verb.add_option("--rtol", tolerance.relative, "the same, as a part of the larger one")
      ->check(check_size)
      ->type_name("R");
  verb.add_option("--max-ulps", tolerance.ulps,
                  "floats that are no more steps of their dtype apart count as equal")
      ->type_name("N");
}

void add_options(CLI::App& verb, Options& options) {
  verb.add_option("LEFT", options.left, "a checkpoint")->required();
  verb.add_option("RIGHT", options.right, "another one, of any mesh and format")->required();
  verb.add_option("--include", options.diff.include,
                  "only tensors whose names match: '*.layers.0.*'; may be repeated")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  verb.add_option("--exclude", options.diff.exclude, "not those; may be repeated")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  add_tolerance_options(verb, options.diff.tolerance);
  verb.add_option("--limit", options.limit,
                  "list at most so many tensors of each kind; 0: all [20; all with --json]")
      ->check(check_size)
      ->type_name("N");
  add_report_options(verb, options.reports);
  add_from_option(verb, options.from);
  add_work_options(verb, options.work);
  add_talk_options(verb, options.talk);
}

}  // namespace

CLI::App* add_diff(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(
      program, "diff", "what differs between two checkpoints, tensor by tensor, in numbers",
      {"remesh diff CKPT HF_DIR", "remesh diff CKPT OTHER --max-ulps 1 --limit 5",
       "remesh diff CKPT HF_DIR --include '*.mlp.*' --atol 1e-6 --json"});
  add_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
