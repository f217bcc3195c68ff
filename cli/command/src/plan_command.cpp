#include <memory>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "job.hpp"
#include "job_options.hpp"
#include "plan_report.hpp"
#include "program.hpp"

namespace remesh {

CLI::App* add_plan(CLI::App& program, Request& request) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* verb = add_verb(
      program, "plan", "what a reshard or convert would read, move and write; writes nothing",
      {"remesh plan CKPT --mesh tp=4", "remesh plan CKPT --mesh same,pp=1 --json",
       "remesh plan HF_DIR --mesh tp=2,pp=2 -v"});
  add_source_options(*verb, *options);
  add_mesh_option(*verb, *options, " [hf: one rank; remesh: the source's]");
  add_target_format_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) {
      return plan_job(open_job(JobKind::convert, *options, session.files), *options, session);
    };
  });
  return verb;
}

}  // namespace remesh
