#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "hdf5_viewer.hpp"
#include "layers.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "refusal.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/store/seal.hpp"
#include "remesh/store/signed_checkpoint.hpp"
#include "remesh/verify/verify.hpp"
#include "reports.hpp"
#include "run_report.hpp"
#include "signing_keys.hpp"
#include "verify_report.hpp"

namespace remesh {
namespace {

struct Options {
  std::string path;
  std::string against;
  std::string previous;
  std::string level;
  std::string from;
  std::string key;
  std::string seal;
  std::string subset;
  ReportOptions reports;
  TalkOptions talk;
  WorkOptions work;
};

// Opens a side and notes what it is.
std::unique_ptr<Reader> open_side(const FileSystem& files, const std::string& from,
                                  const std::string& seal, Findings& findings, Side& side) {
  auto reader = open_reader(files, side.path, from, findings, seal);
  if (reader) {
    const Catalog& catalog = reader->catalog();
    side.format = catalog.format;
    side.mesh = catalog.layout.mesh();
    side.sealed = is_sealed(catalog);
    side.opened = true;
    side.layer_bytes = bytes_by_layer(catalog.tensors);
  }
  return reader;
}

Opener opener(const FileSystem& files, const std::string& from, const std::string& seal,
              Side& side) {
  return [&files, &from, &seal, &side](Findings& findings) {
    return open_side(files, from, seal, findings, side);
  };
}

// "3/7". Whether there is such a part, the judge says.
std::optional<Subset> parse_subset(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Subset subset;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, subset.number);
  const bool has_slash = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  if (has_slash) {
    const auto count = std::from_chars(number.ptr + 1, end, subset.count);
    if (count.ec == std::errc() && count.ptr == end) return subset;
  }
  throw Error(Errc::invalid_argument,
              fmt::format("cannot read `--subset {}`: two numbers are expected, as in `--subset "
                          "3/7`, which is the third of seven parts",
                          text));
}

Report judge(const Options& options, Session& session, Verdict& verdict) {
  Machine machine(options.work, session.out, session.stop);
  const LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  const Level level = parse_level(options.level).value_or(Level::full);
  const std::string detected;
  const std::string none;
  // It is not on trial: where it cannot be used there is no answer.
  std::unique_ptr<Reader> previous;
  if (verdict.previous) {
    StrictFindings strict;
    previous = open_side(files, detected, none, strict, *verdict.previous);
  }
  // What is compared with another one may be called anything.
  const auto step = verdict.against ? std::nullopt : named_step(options.path);
  const Suspect left{opener(files, options.from, options.seal, verdict.side),
                     hdf5_viewer(files, verdict.side.path, session.stop), step};
  try {
    if (previous) {
      return verify_since(machine.judge(), left, std::move(previous), level,
                          {left.named_step, named_step(options.previous)});
    }
    if (!verdict.against) {
      return verify(machine.judge(), left, level, parse_subset(options.subset));
    }
    const Suspect right{opener(files, detected, none, *verdict.against),
                        hdf5_viewer(files, verdict.against->path, session.stop)};
    return verify_against(machine.judge(), left, right, level);
  } catch (const Error& error) {
    auto refused = finding_of(error);
    if (!refused) throw;
    verdict.side.opened = false;  // the rest of it was not judged
    Report report;
    report.level = level;
    report.findings.push_back(std::move(*refused));
    return report;
  }
}

// A file about which more is known already needs no second finding.
void add_findings(const SignedCheck& check, Verdict& verdict) {
  const std::string side = verdict.against ? "left" : "";
  const auto is_known = [&](const Finding& wanted) {
    return std::ranges::any_of(verdict.report.findings, [&](const Finding& finding) {
      return finding.severity == Severity::error && finding.side == side &&
             finding.file == wanted.file;
    });
  };
  std::vector<Finding> added;
  added.reserve(check.findings.size());
  for (const Finding& finding : check.findings) {
    if (check.manifest_fits && is_known(finding)) continue;
    added.push_back(finding);
    added.back().side = side;
  }
  auto& all = verdict.report.findings;
  all.insert(all.begin(), added.begin(), added.end());
}

// Over the manifest of a native checkpoint, or over the seal of another one. Nothing where there is
// no checkpoint to be signed, which opening it will tell.
std::optional<SignedCheck> checked_signature(const Options& options, Session& session,
                                             const PublicKey& key) {
  Machine machine(options.work, session.out, session.stop);
  const LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  const JudgeContext context = machine.judge();
  const Level level = parse_level(options.level).value_or(Level::full);
  const bool in_part = level < Level::full || !options.subset.empty();
  const SignedPart part = in_part ? SignedPart::manifest : SignedPart::all;
  // What is going to be judged: a directory may look like several formats.
  const auto format =
      options.from.empty() ? detect_format(files, options.path) : std::optional(options.from);
  if (!format) return std::nullopt;
  if (*format == "remesh") {
    return check_signed(files, options.path, key, part, context.pool, context.progress,
                        context.stop);
  }
  const auto seal = find_signed_seal(files, options.path, options.seal);
  if (!seal) {
    throw Error(Errc::unsupported,
                fmt::format("cannot check a signature of '{}': it is {}, and has no seal; only "
                            "checkpoints of format remesh, and seals, are signed",
                            options.path, *format));
  }
  return check_signed_seal(files, *seal, key, part, context.pool, context.progress, context.stop);
}

// The signature comes first: who is not the author need not be believed in anything else.
void judge_signed(const Options& options, Session& session, Verdict& verdict) {
  const PublicKey key = checking_key(session.files, options.key);
  const std::optional<SignedCheck> check = checked_signature(options, session, key);
  verdict.report = judge(options, session, verdict);
  if (!check) return;
  add_findings(*check, verdict);
  if (check->manifest_fits) {
    verdict.signature =
        Signature{to_string(key.id), check->what, check->files, check->files_checked};
  }
}

// What counts, and whether that is failure. What differs is a finding too; only where some are
// ignored may there be fewer of these.
Judgement settled(const Reports& reports, Verdict& verdict) {
  Judgement judgement = judgement_of(verdict);
  reports.settle(judgement);
  Report& report = verdict.report;
  const bool differs = report.equal != report.compared && judgement.ignored.findings.empty();
  judgement.failed = judgement.failed || differs;
  verdict.failed = judgement.failed;
  verdict.ignored = judgement.ignored;
  report.findings = judgement.findings;
  return judgement;
}

std::vector<std::string> judged_paths(const Options& options) {
  std::vector<std::string> paths{options.path};
  for (const std::string& other : {options.against, options.previous, options.seal, options.key}) {
    if (!other.empty()) paths.push_back(other);
  }
  return paths;
}

int run(Options options, Session& session) {
  check_format("--from", options.from);
  const Reports reports(options.reports, judged_paths(options), session);
  options.level = reports.level(options.level, "full");
  Verdict verdict;
  verdict.side.path = options.path;
  if (!options.against.empty()) {
    verdict.side.name = "left";
    verdict.against = Side{.path = options.against, .name = "right"};
  }
  if (!options.previous.empty()) {
    if (parse_level(options.level) < Level::full) {
      throw Error(Errc::invalid_argument,
                  fmt::format("--previous reads every byte; --level {} does not: say full or "
                              "deep",
                              options.level));
    }
    verdict.previous = Side{.path = options.previous};
  }
  if (options.key.empty()) {
    verdict.report = judge(options, session, verdict);
  } else {
    judge_signed(options, session, verdict);
  }
  verdict.seconds = session.seconds();
  const Judgement judgement = settled(reports, verdict);
  print_verdict(verdict, session.out);
  reports.write(judgement, session.out);
  session.out.document(verdict_json(verdict));
  return verdict.failed ? exit_code::no : exit_code::done;
}

void add_options(CLI::App& verb, Options& options) {
  verb.add_option("PATH", options.path, "the checkpoint to judge")->required();
  CLI::Option* against =
      verb.add_option("--against", options.against,
                      "prove that this one holds the same tensors, whatever its mesh and format")
          ->type_name("OTHER");
  CLI::Option* previous =
      verb.add_option("--previous", options.previous,
                      "an earlier save of the same run, in any mesh and format: is this what "
                      "training makes of it?")
          ->type_name("EARLIER")
          ->excludes(against);
  verb.add_option(
          "--level", options.level,
          "header (no payload), quick (some blocks), full (every byte) or deep (and numbers are "
          "judged, and libhdf5, in a child process, sees what the indexes say) [full]")
      ->check(CLI::IsMember({"header", "quick", "full", "deep"}));
  verb.add_option("--subset", options.subset,
                  "of what full and deep read, only the i-th of n parts: for scrubs that take n "
                  "nights")
      ->type_name("i/n")
      ->excludes(against)
      ->excludes(previous);
  verb.add_option("--key", options.key,
                  "PATH must be signed by this minisign key: a file, or 56 characters of base64")
      ->type_name("PUBLIC_KEY");
  verb.add_option("--seal", options.seal,
                  "PATH has its seal here [remesh-seal.json in PATH, if there is one]")
      ->type_name("FILE");
  add_report_options(verb, options.reports);
  add_from_option(verb, options.from);
  add_work_options(verb, options.work);
  add_talk_options(verb, options.talk);
}

}  // namespace

CLI::App* add_verify(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(
      program, "verify", "is a checkpoint whole and true; is it equal to another",
      {"remesh verify CKPT --against HF_DIR", "remesh verify CKPT --previous OTHER --level deep",
       "remesh verify CKPT --key KEY.pub --fail-on warn --html OUT"});
  add_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
