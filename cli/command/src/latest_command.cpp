#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
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
#include "latest_report.hpp"
#include "layers.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/verify/first_whole.hpp"
#include "reports.hpp"
#include "run_report.hpp"
#include "text.hpp"

namespace remesh {
namespace {

struct Options {
  std::string run;
  std::string level = "quick";
  ReportOptions reports;
  TalkOptions talk;
  WorkOptions work;
};

[[noreturn]] void refuse(const Options& options, const std::string& why) {
  throw Error(Errc::not_found,
              fmt::format("cannot find a checkpoint in '{}': {}", options.run, why), "RM101");
}

void check_directory(const Options& options) {
  std::error_code ignored;
  const auto status = std::filesystem::status(options.run, ignored);
  if (!std::filesystem::exists(status)) refuse(options, "there is nothing of that name");
  if (!std::filesystem::is_directory(status)) refuse(options, "it is no directory");
}

Suspect never_opened(Finding why) {
  return {[why = std::move(why)](Findings& findings) -> std::unique_ptr<Reader> {
    findings.add(why);
    return nullptr;
  }};
}

// Opens a candidate and notes what it is. What a job did not finish is never opened: all may be
// there but its name.
Suspect suspect_of(const FileSystem& files, const StopFlag& stop, const FileSystem::Path& path,
                   const RunEntry& entry, Found& found) {
  if (entry.is_leftover) return never_opened(unfinished(entry));
  if (escaped(entry.name) != entry.name) {
    Finding finding;
    finding.id = "RM603";
    finding.message = "its name has characters that a terminal would act on";
    return never_opened(std::move(finding));
  }
  return {[&files, &found, path](Findings& findings) {
            auto reader = open_reader(files, path, {}, findings);
            if (reader) {
              const Catalog& catalog = reader->catalog();
              found.side.format = catalog.format;
              found.side.mesh = catalog.layout.mesh();
              found.side.layer_bytes = bytes_by_layer(catalog.tensors);
            }
            return reader;
          },
          hdf5_viewer(files, path, stop), named_step(entry.name)};
}

// Whether a directory that could not be opened is none of the run's checkpoints.
bool is_no_checkpoint(const RunEntry& entry, const Report& report) {
  return !entry.is_leftover && !report.findings.empty() && report.findings.front().id == "RM101";
}

// Fills in all but the pointers.
void search(const Options& options, const Reports& reports, Session& session,
            const TrainingRun& run, Latest& latest) {
  Machine machine(options.work, session.out, session.stop);
  const LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  const std::vector<std::size_t> order = newest_first(run);
  std::vector<Found> found(order.size());
  const FirstWhole result = first_whole(
      machine.judge(), order.size(),
      [&](std::size_t k) {
        const RunEntry& entry = run.entries[order[k]];
        const FileSystem::Path path = FileSystem::Path(options.run) / entry.name;
        found[k].entry = order[k];
        found[k].name = entry.name;
        found[k].side.path = path.string();
        found[k].side.name = path.string();
        return suspect_of(files, session.stop, path, entry, found[k]);
      },
      latest.level,
      [&](std::size_t, const Report& report) { return reports.accepts(report.findings); });
  for (std::size_t k = 0; k < result.reports.size(); ++k) {
    found[k].report = result.reports[k];
    found[k].side.opened = !result.refused[k];
    const RunEntry& entry = run.entries[order[k]];
    const bool is_other = is_no_checkpoint(entry, found[k].report);
    std::error_code unknown;
    found[k].is_foreign = is_other && !std::filesystem::is_empty(found[k].side.path, unknown);
    latest.holds_any = latest.holds_any || !is_other || entry.is_meant;
    if (k == result.candidate) {
      latest.found = std::move(found[k]);
    } else if (!is_other || entry.is_meant) {
      latest.rejected.push_back(std::move(found[k]));
    }
  }
}

// The directory and all its entries: some may be links to elsewhere.
std::vector<std::string> judged_paths(const Options& options, const TrainingRun& run) {
  std::vector<std::string> paths{options.run};
  for (const RunEntry& entry : run.entries) {
    paths.push_back((FileSystem::Path(options.run) / entry.name).string());
  }
  return paths;
}

int run(const Options& options, Session& session) {
  check_directory(options);
  const TrainingRun run = read_run(session.files, options.run);
  const Reports reports(options.reports, judged_paths(options, run), session);
  Latest latest;
  latest.run_path = options.run;
  latest.fail_from = reports.fail_from();
  latest.level = parse_level(options.level).value_or(Level::quick);
  search(options, reports, session, run, latest);
  if (!latest.holds_any) {
    refuse(options, detect_format(session.files, options.run)
                        ? "it is a checkpoint itself, which `remesh verify` judges; name the "
                          "directory that holds those of a run"
                        : "none of its directories is one");
  }
  std::optional<std::size_t> newest;
  if (latest.found) newest = latest.found->entry;
  latest.findings = check_pointers(run, newest);
  latest.seconds = session.seconds();
  Judgement judgement = judgement_of(latest);
  reports.settle(judgement);
  settle(judgement, latest);
  print_latest(run, latest, session.out);
  reports.write(judgement, session.out);
  session.out.document(latest_json(run, latest));
  return newest ? exit_code::done : exit_code::no;
}

}  // namespace

CLI::App* add_latest(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(program, "latest",
                            "the newest checkpoint of a run that is whole, whatever a pointer says",
                            {"remesh latest RUN", "remesh latest RUN --level full -q",
                             "remesh latest RUN --level full --ignore RM541 --json"});
  verb->add_option("RUN", options->run, "a directory of checkpoints")->required();
  verb->add_option("--level", options->level,
                   "how each is judged: header, quick, full or deep, as by verify [quick]")
      ->check(CLI::IsMember({"header", "quick", "full", "deep"}));
  add_report_options(*verb, options->reports);
  add_work_options(*verb, options->work);
  add_talk_options(*verb, options->talk);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
