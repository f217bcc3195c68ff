#include <memory>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "job.hpp"
#include "job_options.hpp"
#include "program.hpp"

namespace remesh {

CLI::App* add_reshard(CLI::App& program, Request& request) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* verb = add_verb(program, "reshard", "change the mesh of a checkpoint",
                            {"remesh reshard CKPT OUT --mesh tp=4",
                             "remesh reshard CKPT OUT --mesh same,pp=1 --read-back",
                             "remesh reshard CKPT OUT --mesh like:OTHER --dry-run"});
  add_source_options(*verb, *options);
  add_destination_options(*verb, *options);
  add_mesh_option(*verb, *options, "")->required();
  // Hidden: whoever says it here is told where it belongs.
  verb->add_option("--to", options->to)->group("");
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) {
      return run_job(JobKind::reshard, *options, session);
    };
  });
  return verb;
}

}  // namespace remesh
