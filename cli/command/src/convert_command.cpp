#include <memory>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "job.hpp"
#include "job_options.hpp"
#include "program.hpp"

namespace remesh {

CLI::App* add_convert(CLI::App& program, Request& request) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* verb = add_verb(
      program, "convert", "change the framework of a checkpoint, and the mesh too if asked",
      {"remesh convert HF_DIR OUT --mesh tp=2,pp=2", "remesh convert CKPT OUT --to hf --read-back",
       "remesh convert CKPT OUT --to hf --shard-size 5GB"});
  add_source_options(*verb, *options);
  add_destination_options(*verb, *options);
  add_mesh_option(*verb, *options, " [hf: one rank; remesh: the source's]");
  add_target_format_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) {
      return run_job(JobKind::convert, *options, session);
    };
  });
  return verb;
}

}  // namespace remesh
