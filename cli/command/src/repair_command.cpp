#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "finding_text.hpp"
#include "json_parts.hpp"
#include "leftovers.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/digest.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/store/repair.hpp"
#include "text.hpp"
#include "whole_path.hpp"

namespace remesh {
namespace {

constexpr std::size_t most_listed = 20;

struct Options {
  std::string source;
  std::string destination;
  bool discard = false;
  bool dry_run = false;
  TalkOptions talk;
  WorkOptions work;
};

void check_paths(const Options& options, const FileSystem& files) {
  const auto format = detect_format(files, options.source);
  if (format && *format != "remesh") {
    throw Error(Errc::unsupported,
                fmt::format("cannot repair {}: it is {}, which records nothing to repair it by; "
                            "only remesh checkpoints can be repaired",
                            options.source, *format));
  }
  if (options.destination.empty()) {
    if (options.dry_run) return;
    throw Error(Errc::invalid_argument,
                fmt::format("cannot repair {}: DST, where to, is missing; only --dry-run does "
                            "without it",
                            options.source));
  }
  const std::filesystem::path source = whole_path(options.source) / "";
  if (!whole_path(options.destination).native().starts_with(source.native())) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot write {}: it lies inside the source {}, which nothing may change",
                          options.destination, options.source));
}

// The same job finds what an earlier run left behind.
std::string job_id(const Options& options) {
  const std::string text = "repair\n" + whole_path(options.source).string();
  return fmt::format("{:016x}", digest_of(std::as_bytes(std::span(text))).value);
}

std::string place_of(const Mend& mend) {
  std::string place =
      fmt::format("{} [{}, {})", escaped(mend.file), mend.bytes.begin, mend.bytes.end);
  if (!mend.tensor.empty()) place += fmt::format("  '{}'", escaped(mend.tensor));
  if (mend.box) place += fmt::format(" {}", to_string(*mend.box));
  return place;
}

Json json_of(const Mend& mend) {
  Json box;
  if (mend.box) {
    box = Json::array();
    for (int dim = 0; dim < mend.box->ndim(); ++dim) {
      box.push_back({(*mend.box)[dim].begin, (*mend.box)[dim].end});
    }
  }
  return {{"file", mend.file},
          {"bytes", {{"begin", mend.bytes.begin}, {"end", mend.bytes.end}}},
          {"by", to_string(mend.by)},
          {"how", mend.how},
          {"tensor", text_or_null(mend.tensor)},
          {"box", box}};
}

// What there is to read afterwards: the source itself where nothing was wrong with it, and nothing
// where something is and nothing was written.
std::string result_path(const Options& options, const RepairReport& report) {
  if (!report.lost.empty()) return {};
  if (options.dry_run && !report.mended.empty()) return {};
  return report.written ? options.destination : options.source;
}

Json report_json(const Options& options, const RepairReport& report, double seconds) {
  Json document = new_document("repair");
  document["source"] = options.source;
  document["tensors"] = report.tensors;
  document["mended"] = Json::array();
  for (const Mend& mend : report.mended) document["mended"].push_back(json_of(mend));
  document["lost"] = json_of(report.lost);
  document["written_bytes"] = report.written_bytes;
  document["seconds"] = seconds;
  document["directory_synced"] = report.directory_synced;
  document["proven"] = report.proven;
  document["dry_run"] = options.dry_run;
  document["findings"] = json_of(report.notes);
  document["path"] = text_or_null(result_path(options, report));
  return document;
}

void print_lost(const Options& options, const RepairReport& report, Output& out) {
  out.line(fmt::format("{}  {}  cannot be repaired: nothing was written", out.bad("FAIL"),
                       escaped(options.source)));
  print_findings(report.lost, out);
  out.line(count_line(report.lost));
}

void print_done(const Options& options, const RepairReport& report, double seconds, Output& out) {
  if (options.dry_run && !report.mended.empty()) {
    out.detail(fmt::format("{}  {}  {}  {}  {} can be mended{}; nothing was written",
                           out.good("ok"), escaped(options.source),
                           counted(report.tensors, "tensor"), format_seconds(seconds),
                           counted(std::ssize(report.mended), "place"),
                           report.proven ? "" : ", and manifest.json rebuilt"));
    return;
  }
  if (!report.written) {
    out.detail(fmt::format("{}  {}  {}  {}  nothing to repair: every byte is as recorded",
                           out.good("ok"), escaped(options.source),
                           counted(report.tensors, "tensor"), format_seconds(seconds)));
  } else {
    out.detail(fmt::format("{}  {}  {}  {}  {} mended, every byte read again and {}",
                           out.good("ok"), counted(report.tensors, "tensor"),
                           format_bytes(report.written_bytes), format_seconds(seconds),
                           counted(std::ssize(report.mended), "place"),
                           report.proven ? "as recorded" : "as manifest.json, rebuilt, has it"));
    if (!report.directory_synced) {
      out.detail(
          fmt::format("{} RM703  this file system cannot sync a directory: the files are on the "
                      "medium, their names will be soon",
                      out.warned("note")));
    }
  }
  out.line(result_path(options, report));
}

// A shard that was made again may have been copied block by block.
void print_mended(const RepairReport& report, Output& out) {
  const std::size_t count =
      out.verbose() > 0 ? report.mended.size() : std::min(report.mended.size(), most_listed);
  for (const Mend& mend : std::span(report.mended).first(count)) {
    out.detail(fmt::format("  {}", place_of(mend)));
    out.detail(fmt::format("      {}", escaped(mend.how)));
  }
  if (count < report.mended.size()) {
    out.detail(fmt::format("  ... and {} more; -v lists them all", report.mended.size() - count));
  }
}

void print_report(const Options& options, const RepairReport& report, double seconds, Output& out) {
  print_mended(report, out);
  if (!out.quiet()) {
    print_findings(report.notes, out);
  } else if (!report.proven && report.lost.empty()) {
    out.warn(
        "remesh: warning: manifest.json was rebuilt, and nothing proves it to be what was lost; "
        "without -q it is said what is not known");
  }
  if (report.lost.empty()) {
    print_done(options, report, seconds, out);
  } else {
    print_lost(options, report, out);
  }
}

int run(const Options& options, Session& session) {
  LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  check_paths(options, files);
  if (!options.dry_run) {
    settle_leftovers({options.destination, job_id(options)}, options.discard, session);
  }
  Machine machine(options.work, session.out, session.stop);
  const JudgeContext context = machine.judge();
  const RepairReport report = repair_native(
      files, options.source, options.destination,
      {.job_id = job_id(options), .discard_leftovers = options.discard, .dry_run = options.dry_run},
      {context.pool, context.budget, context.progress, context.stop});
  print_report(options, report, session.seconds(), session.out);
  session.out.document(report_json(options, report, session.seconds()));
  return report.lost.empty() ? exit_code::done : exit_code::corrupt;
}

void add_options(CLI::App& verb, Options& options) {
  verb.add_option("SRC", options.source, "the remesh checkpoint that is damaged; only read")
      ->required();
  verb.add_option(
      "DST", options.destination,
      "the checkpoint to write; must not exist. Nothing is written if all is well. May be "
      "left out with --dry-run");
  verb.add_flag(
      "--dry-run", options.dry_run,
      "say what would be mended and what is lost, and write nothing; the exit code is the "
      "same");
  verb.add_flag("--discard", options.discard, "remove what an interrupted job left behind");
  add_work_options(verb, options.work);
  add_talk_options(verb, options.talk);
}

}  // namespace

CLI::App* add_repair(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      add_verb(program, "repair", "make a whole copy of a damaged checkpoint, from what is left",
               {"remesh repair CKPT OUT", "remesh repair CKPT --dry-run",
                "remesh repair CKPT OUT --discard --json"});
  add_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
