#include "job.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common_options.hpp"
#include "exit_code.hpp"
#include "job_cost.hpp"
#include "job_report.hpp"
#include "leftovers.hpp"
#include "plan_report.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/digest.hpp"
#include "remesh/execute/convert.hpp"
#include "remesh/execute/reshard.hpp"
#include "remesh/plan/summary.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "remesh/schema/states.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/store/resuming_file_system.hpp"
#include "remesh/store/staging.hpp"
#include "report_file.hpp"
#include "signing_keys.hpp"
#include "target_mesh.hpp"
#include "text.hpp"
#include "unchanged.hpp"
#include "versions.hpp"
#include "whole_path.hpp"

namespace remesh {
namespace {

constexpr std::int64_t most_rules_bytes = std::int64_t{1} << 20;

// As torch and transformers call them.
constexpr std::array<std::pair<std::string_view, DType>, 4> torch_names{
    {{"float64", DType::f64},
     {"float32", DType::f32},
     {"float16", DType::f16},
     {"bfloat16", DType::bf16}}};

// The first error ends it; but what is wrong with an optimizer alone is only worth a warning where
// the optimizer is left out.
class JobFindings final : public Findings {
 public:
  explicit JobFindings(bool weights_only) : weights_only_(weights_only) {}

  void add(Finding finding) override {
    const bool of_optimizer = finding.id == "RM309" || finding.id == "RM502" ||
                              (finding.id == "RM303" && parse_state_name(finding.tensor));
    if (weights_only_ && of_optimizer && finding.severity == Severity::error) {
      finding.severity = Severity::warn;
    }
    strict_.add(std::move(finding));
  }
  const std::vector<Finding>& rest() const noexcept { return strict_.rest(); }

 private:
  const bool weights_only_;
  StrictFindings strict_;
};

std::string config_of(const Reader& source) {
  const std::vector<SideFile>& side = source.catalog().side;
  const auto config = std::ranges::find(side, "config.json", &SideFile::name);
  if (config == side.end()) return {};
  const std::vector<std::byte> bytes = source.side(*config);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "zstd", or "zstd:3".
std::optional<int> compress_level(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::string_view codec = std::string_view(text).substr(0, text.find(':'));
  int level = 1;
  bool is_level = true;
  if (codec.size() < text.size()) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + codec.size() + 1, end, level);
    is_level = error == std::errc() && at == end && level >= 1 && level <= 19;
  }
  if (codec == "zstd" && is_level) return level;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot use `--compress {}`: write zstd, or zstd:LEVEL with a level from "
                          "1 to 19",
                          text));
}

// Sizes that cannot be read are refused before a checkpoint is opened.
void check_sizes(const JobOptions& options) {
  if (!options.compress.empty() && options.to == "hf") {
    throw Error(Errc::invalid_argument,
                "`--compress` is for `--to remesh`; safetensors files are never packed");
  }
  compress_level(options.compress);
  if (options.copies > 1 && options.to == "hf") {
    throw Error(Errc::invalid_argument,
                "`--copies` is for `--to remesh`: a Hugging Face directory has each tensor once");
  }
  if (!options.sign.empty() && options.to == "hf") {
    throw Error(
        Errc::invalid_argument,
        "`--sign` is for `--to remesh`: a Hugging Face directory has no manifest that "
        "lists all its files; `remesh seal DIR --sign KEY` writes and signs one afterwards");
  }
  if (options.shard_size.empty()) return;
  if (options.to != "hf") {
    throw Error(Errc::invalid_argument,
                "`--shard-size` is for `--to hf`; a remesh checkpoint has one file for each rank");
  }
  parse_bytes(options.shard_size);
}

void check_formats(JobKind kind, const JobOptions& options) {
  check_format("--from", options.from);
  check_format("--to", options.to);
  if (kind == JobKind::reshard && !options.to.empty() && options.to != "remesh") {
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot reshard to '{}': `remesh reshard` keeps the format; for another "
                    "one say `remesh convert {} {} --to {}`",
                    options.to, options.source, options.destination, options.to));
  }
}

void check_native(const Job& job, const JobOptions& options) {
  const std::string& format = job.source->catalog().format;
  if (job.kind != JobKind::reshard || format == "remesh") return;
  throw Error(
      Errc::invalid_argument,
      fmt::format("cannot reshard {}: it is {}, which has no mesh of its own; say `remesh "
                  "convert {} {} --mesh {}`",
                  options.source, format, options.source, options.destination, options.mesh));
}

void check_one_rank(const Job& job) {
  if (job.to != "hf" || job.target.mesh.num_ranks() == 1) return;
  throw Error(
      Errc::invalid_argument,
      fmt::format("cannot write hf on {}: a Hugging Face directory has no mesh, who loads it "
                  "splits it anew; leave out `--mesh`",
                  describe(job.target.mesh)));
}

// The source says its mesh itself, so the flag can only confirm it.
void check_from_mesh(const JobOptions& options, const Mesh& source) {
  if (options.from_mesh.empty()) return;
  const Mesh said = parse_mesh(options.from_mesh, source);
  if (said == parse_mesh("same", source)) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot use `--from-mesh {}`: {} says itself that it has {}; leave the "
                          "flag out",
                          options.from_mesh, options.source, describe(source)));
}

// A map places tensors that come without placements, and orders those that are packed into files
// anew.
bool wants_map(const Job& job, const JobOptions& options) {
  const Catalog& source = job.source->catalog();
  if (job.to == "hf") return !options.shard_size.empty() || source.packaging.empty();
  return source.format != "remesh";
}

// A config.json that cannot be read fits no map; on one rank nobody needs one.
const ModelMap* map_for(Job& job) {
  try {
    return shipped_map(job.config);
  } catch (const Error& error) {
    if (error.code() != Errc::corrupt) throw;
    Finding finding;
    finding.id = "RM210";
    finding.severity = Severity::warn;
    finding.file = "config.json";
    finding.message = fmt::format("{}; what model it is remains unknown", error.what());
    job.findings.push_back(std::move(finding));
    return nullptr;
  }
}

void choose_map(Job& job, const JobOptions& options, const FileSystem& files) {
  if (!options.rules.empty()) {
    job.rules = ModelMap::parse(read_text(files, options.rules, most_rules_bytes), options.rules);
  } else if (wants_map(job, options)) {
    job.shipped = map_for(job);
  }
}

// Stages by cost need a map that knows the model, even where the source knows its placements.
void price_stages(Job& job) {
  if (!job.target.stages || !job.target.stages->wants_costs()) return;
  const ModelMap* const map = job.map() != nullptr ? job.map() : shipped_map(job.config);
  if (map != nullptr) job.target.stages->set_costs(map->stage_costs(job.config));
}

// One path component at the end, so that a temporary name can stand beside it.
FileSystem::Path destination_path(const JobOptions& options) {
  const FileSystem::Path given(options.destination);
  FileSystem::Path path = given.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.empty() || path.filename() == "." || path.filename() == "..") {
    throw Error(Errc::exists,
                fmt::format("cannot write {}: destination exists", options.destination));
  }
  return path;
}

void check_outside(const FileSystem::Path& destination, const JobOptions& options) {
  const FileSystem::Path source = whole_path(options.source) / "";
  if (!whole_path(destination).native().starts_with(source.native())) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot write {}: it lies inside the source {}, which nothing may change",
                          options.destination, options.source));
}

// Refused before anything is written.
void check_proof_file(const JobOptions& options, const FileSystem& files) {
  if (options.proof.empty()) return;
  check_has_directory(fmt::format("`--proof {}`", options.proof), options.proof);
  if (!files.look(options.proof)) return;
  throw Error(Errc::exists, fmt::format("cannot write the certificate to '{}': it exists; choose "
                                        "another name",
                                        options.proof));
}

// The same job gets the same id, so that it finds what an earlier run left behind.
std::string job_id(const Job& job, const JobOptions& options) {
  const std::string text = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}",
      whole_path(options.source).string(), job.source->catalog().save_id, job.to,
      describe(job.target.mesh), options.copies, options.shard_size, options.rules,
      fmt::join(options.include, "\n"), fmt::join(options.exclude, "\n"), options.weights_only,
      options.dtype, options.mesh, options.stages, options.zero.value_or(-1), options.shard_rule,
      options.compress, options.sign, options.replicas);
  const Digest digest = digest_of(std::as_bytes(std::span(text)));
  return fmt::format("{:016x}", digest.value);
}

// Each file of the source, as the system knows it, in a line.
std::string sources_of(const Job& job, const JobOptions& options, const FileSystem& files) {
  std::string text;
  const FileSystem::Path source = whole_path(options.source);
  for (const ExtentMap::FileEntry& file : job.source->extents().files()) {
    text += identity_line(files, file.name,
                          files.look(source / file.name) ? source / file.name : source);
  }
  return text;
}

// What must be the same for a job to be resumed: this program, what it was told, and the source.
std::string identity_of(const Job& job, const JobOptions& options, const std::string& sources) {
  return fmt::format("remesh {}, format version 1\noptions {}\n{}", remesh_version(),
                     job_id(job, options), sources);
}

Selection selection_of(const JobOptions& options) {
  Selection selection{options.include, options.exclude, options.weights_only, std::nullopt,
                      options.source};
  if (options.dtype.empty()) return selection;
  for (const auto& [name, dtype] : torch_names) {
    if (options.dtype == name) selection.dtype = dtype;
  }
  if (selection.dtype) return selection;
  selection.dtype = parse_dtype(options.dtype);
  if (selection.dtype) return selection;
  const std::string meant = nearest(
      options.dtype, {"f64", "f32", "f16", "bf16", "float64", "float32", "float16", "bfloat16"});
  throw Error(Errc::invalid_argument,
              fmt::format("cannot use dtype '{}': one of f64, f32, f16 and bf16 is expected{}",
                          options.dtype,
                          meant.empty() ? "" : fmt::format("; did you mean `--dtype {}`?", meant)));
}

// Nothing where nobody asked for it.
std::optional<ComparedReplicas> compared_replicas(const Context& context, const Job& job,
                                                  const JobOptions& options) {
  if (!options.check_replicas && options.replicas.empty()) return std::nullopt;
  return compare_replicas(context, *job.source,
                          parse_replica_choice(options.replicas).value_or(ReplicaChoice::error));
}

/// What was done, and what copies said.
struct Done {
  Outcome outcome;
  std::optional<ComparedReplicas> replicas;
};

Done execute(const Job& job, const Left& left, Writer& target, const JobOptions& options,
             const std::string& sources, Session& session) {
  Machine machine(options.work, session.out, session.stop);
  Context context = machine.context();
  Done done;
  done.replicas = compared_replicas(context, job, options);
  const Reader& source =
      done.replicas && done.replicas->reader ? *done.replicas->reader : *job.source;
  TransferOptions how;
  how.read_back = options.read_back;
  how.may_change = !job.selection.is_all();
  how.left = &left;
  how.source_name = options.source;
  how.copies_chosen = done.replicas.has_value();
  how.before_publish = [&] {
    check_unchanged(sources, sources_of(job, options, session.files), "nothing was published");
  };
  if (job.selection.dtype) how.cast_reason = "--dtype " + options.dtype;
  done.outcome = job.kind == JobKind::reshard ? reshard(context, source, target, how)
                                              : convert(context, source, target, how);
  if (done.replicas) done.outcome.replicas_not_compared = 0;
  return done;
}

Leftovers leftovers_of(const JobOptions& options) {
  if (options.resume) return Leftovers::resume;
  return options.discard ? Leftovers::discard : Leftovers::refuse;
}

// A plan that the run did not keep is a bug, whatever was proved.
void check_plan(const PlanSummary& plan, const Outcome& outcome) {
  const auto check = [](const char* what, std::int64_t planned, std::int64_t counted) {
    if (planned == counted) return;
    throw Error(
        Errc::internal,
        fmt::format("the checkpoint is proved and published, but the plan was to have {} bytes "
                    "{}, and the run counted {}; this is a bug in remesh",
                    planned, what, counted));
  };
  check("read", plan.read_bytes, outcome.read_bytes);
  check("written", plan.write_bytes, outcome.written_bytes);
  check("kept", plan.kept_bytes, outcome.kept_bytes);
  check("moved", plan.moved_bytes, outcome.moved_bytes);
}

// How many pieces have fewer copies than were asked for, since fewer ranks hold them.
std::int64_t below_copies(const ExtentMap& map, std::int64_t copies) {
  const auto stored_as = [&](std::int64_t copy) {
    return std::ranges::count(map.extents(), copy, &Extent::copy);
  };
  return stored_as(0) - stored_as(copies - 1);
}

// What a job that fails leaves behind is known only when its writer is gone.
Done done_or_told(const JobPlace& place, std::unique_ptr<Writer>& writer, Session& session,
                  const std::function<Done()>& work) {
  try {
    return work();
  } catch (...) {
    writer.reset();
    tell_what_is_left(place, session);
    throw;
  }
}

int do_job(const Job& job, const JobOptions& options, Session& session) {
  const FileSystem::Path destination = destination_path(options);
  check_outside(destination, options);
  if (options.resume) refuse_finished(session.files, destination, options.source);
  check_proof_file(options, session.files);
  const auto key = signing_key(session.files, options.sign, session.stop);
  const std::string sources = sources_of(job, options, session.files);
  Wanted wanted = wanted_of(job);
  const Memory memory = memory_of(job, wanted.catalog, options);  // before anything is created
  begin_job_report(job, wanted, session.out);
  const PlanSummary plan = summarize(job.source->catalog(), wanted.catalog, options.copies);
  const auto prediction = prediction_of(options, plan, memory.need.pieces, session.files);

  const SideSource side = [&job](const SideFile& file) { return job.source->side(file); };
  WriterOptions how = writer_options(options);
  how.job_id = job_id(job, options);
  how.leftovers = leftovers_of(options);
  how.identity = identity_of(job, options, sources);
  how.sign = key;
  how.sign_threads = options.work.threads;
  how.sign_stop = &session.stop;
  const JobPlace place{destination, how.job_id};
  settle_leftovers(place, options.discard, session);
  ResumingFileSystem resuming(session.files);
  FileSystem& files = options.resume ? resuming : session.files;
  auto writer = create_writer(files, destination, std::move(wanted.catalog), side, how);
  const auto [outcome, replicas] = done_or_told(place, writer, session, [&] {
    return execute(job, wanted.left, *writer, options, sources, session);
  });
  check_plan(plan, outcome);
  if (!options.proof.empty()) {
    write_whole(session.files, options.proof, std::as_bytes(std::span(outcome.certificate)));
  }
  end_job_report({job, wanted.left, options.source, destination.string(), outcome,
                  session.seconds(), prediction, options.compress, options.copies,
                  below_copies(writer->extents(), options.copies), replicas,
                  options.resume ? std::optional(resuming.kept_bytes()) : std::nullopt},
                 session.out);
  return exit_code::done;
}

}  // namespace

std::string both_meshes(const Mesh& source, const Mesh& target) {
  return fmt::format("{}  ->  {}", describe(source), describe(target));
}

WriterOptions writer_options(const JobOptions& options) {
  WriterOptions out;
  out.copies = options.copies;
  out.compress_level = compress_level(options.compress);
  if (!options.shard_size.empty()) out.shard_size_bytes = parse_bytes(options.shard_size);
  return out;
}

Job open_job(JobKind kind, const JobOptions& options, FileSystem& files) {
  check_formats(kind, options);
  check_sizes(options);
  check_mesh_text(options.mesh);
  Job job;
  job.kind = kind;
  job.to = options.to.empty() ? "remesh" : options.to;
  JobFindings findings(options.weights_only);
  job.source = open_reader(files, options.source, options.from, findings);
  job.findings = findings.rest();
  check_native(job, options);
  const Mesh& source_mesh = job.source->catalog().layout.mesh();
  check_from_mesh(options, source_mesh);
  job.target = target_of(options, job.to, source_mesh, files);
  check_one_rank(job);
  job.config = config_of(*job.source);
  job.selection = selection_of(options);
  choose_map(job, options, files);
  price_stages(job);
  return job;
}

Catalog placed_catalog(const Job& job) {
  const Catalog& source = job.source->catalog();
  return job.kind == JobKind::reshard
             ? resharded(source, job.target, job.map(), job.config)
             : converted(source, job.to, job.target, job.map(), job.config);
}

Wanted wanted_of(const Job& job) {
  Wanted wanted{placed_catalog(job), {}};
  wanted.left = apply(job.selection, wanted.catalog);
  return wanted;
}

int run_job(JobKind kind, const JobOptions& options, Session& session) {
  LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  const Job job = open_job(kind, options, files);
  if (options.dry_run) return plan_job(job, options, session);
  return do_job(job, options, session);
}

}  // namespace remesh
