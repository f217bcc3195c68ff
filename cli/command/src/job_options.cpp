#include "job_options.hpp"

#include <limits>

#include <CLI/CLI.hpp>

#include "common_options.hpp"

namespace remesh {

void add_source_options(CLI::App& verb, JobOptions& options) {
  verb.add_option("SRC", options.source, "the checkpoint to read")->required();
  add_from_option(verb, options.from);
  verb.add_option("--from-mesh", options.from_mesh,
                  "the source's mesh, where the source does not say it")
      ->type_name("MESH");
  verb.add_option("--rules", options.rules, "a model map (TOML): which tensor is split how")
      ->type_name("FILE");
  verb.add_option("--compress", options.compress,
                  "pack payload: zstd, or zstd:LEVEL from 1 to 19 [not packed; zstd is zstd:1]")
      ->type_name("CODEC");
  verb.add_option("--copies", options.copies, "how many holders of a piece store it [1]")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
  verb.add_option("--include", options.include,
                  "only tensors whose names match: '*.layers.0.*'; may be repeated")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  verb.add_option("--exclude", options.exclude, "not those; may be repeated")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  verb.add_flag("--weights-only", options.weights_only,
                "leave out optimizer states and the files of the training");
  verb.add_option("--dtype", options.dtype,
                  "cast parameters that are floats: f64, f32, f16 or bf16; states stay")
      ->type_name("T");
  verb.add_option("--io", options.io,
                  "predict the time from what `remesh bench io DIR --json` printed")
      ->type_name("FILE");
  add_work_options(verb, options.work);
  add_talk_options(verb, options.talk);
}

void add_destination_options(CLI::App& verb, JobOptions& options) {
  verb.add_option("DST", options.destination, "the checkpoint to write; must not exist")
      ->required();
  verb.add_flag("--read-back", options.read_back,
                "read everything again from the medium, and prove that too");
  verb.add_flag("--check-replicas", options.check_replicas,
                "read every stored copy of a piece, and refuse if they differ");
  verb.add_option("--replicas", options.replicas,
                  "the same, and where copies differ: error, first or majority (of those that are "
                  "not damaged) is taken [error]")
      ->check(CLI::IsMember({"error", "first", "majority"}))
      ->type_name("CHOICE");
  auto* resume = verb.add_flag(
      "--resume", options.resume,
      "complete what an interrupted job of the same command left; keep it if this one is stopped");
  verb.add_flag("--discard", options.discard, "remove what an interrupted job left behind")
      ->excludes(resume);
  verb.add_option("--sign", options.sign,
                  "sign it with this secret key, as `minisign -G` makes them; "
                  "REMESH_KEY_PASSWORD may hold its password [not signed]")
      ->type_name("KEY");
  verb.add_option("--proof", options.proof,
                  "write what was proved, digest by digest, to this new file too; a remesh "
                  "checkpoint has it as proof.json")
      ->type_name("FILE");
  verb.add_flag("--dry-run", options.dry_run, "write nothing: the same as `remesh plan`");
}

CLI::Option* add_mesh_option(CLI::App& verb, JobOptions& options, const std::string& purpose) {
  verb.add_option(
          "--stages", options.stages,
          "layers of each pipeline stage: even, balanced, cost, 7,8,8,7 or Et*7|(t*8|)*2t*7L "
          "[as they are, or even]")
      ->type_name("STAGES");
  verb.add_option(
          "--zero", options.zero,
          "what data-parallel ranks divide: 0 nothing, 1 and 2 optimizer states, 3 parameters "
          "too [as it is]")
      ->check(CLI::Range(0, 3))
      ->type_name("0-3");
  verb.add_option(
          "--shard-rule", options.shard_rule,
          "how: chunk (each tensor's dim 0) or flat (ranges of all elements) [3: chunk, else "
          "flat]")
      ->check(CLI::IsMember({"chunk", "flat"}))
      ->type_name("RULE");
  return verb
      .add_option("--mesh", options.mesh,
                  "the mesh to write: tp=4,pp=2 or same,tp=4 or like:CHECKPOINT or @FILE" + purpose)
      ->check([](const std::string& text) -> std::string {
        return text.empty() ? "it is empty; write for example tp=2,pp=2" : "";
      })
      ->type_name("MESH");
}

void add_target_format_options(CLI::App& verb, JobOptions& options) {
  verb.add_option("--to", options.to, "the format to write: remesh or hf [remesh]")
      ->type_name("FORMAT");
  verb.add_option("--shard-size", options.shard_size,
                  "hf: the most bytes of one file; 5GB is 5*10^9")
      ->type_name("SIZE");
}

}  // namespace remesh
