#include "job_report.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "finding_text.hpp"
#include "job_cost.hpp"
#include "json_parts.hpp"
#include "remesh/core/budget.hpp"
#include "selection_report.hpp"
#include "text.hpp"

namespace remesh {
namespace {

std::string_view verb_of(JobKind kind) { return kind == JobKind::reshard ? "reshard" : "convert"; }

std::string_view proved_text(Proved proved) {
  return proved == Proved::read_back ? "read back" : "sent";
}

std::string done_line(const JobResult& result, const Output& out) {
  const Outcome& outcome = result.outcome;
  const std::string proved =
      outcome.cast_tensors == 0
          ? "source = target for all"
          : fmt::format("source = target for {}, target = cast of source for {}",
                        outcome.tensors - outcome.cast_tensors, outcome.cast_tensors);
  return fmt::format("{}  {}  {}  {}  proved: {}, {} (digests crc64xz)", out.good("ok"),
                     counted(outcome.tensors, "tensor"), format_bytes(outcome.read_bytes),
                     format_seconds(result.seconds), proved_text(outcome.proved), proved);
}

std::string planned_line(const Outcome& outcome) {
  return fmt::format("as planned: {} read, {} written, {} kept, {} moved",
                     format_bytes(outcome.read_bytes), format_bytes(outcome.written_bytes),
                     format_bytes(outcome.kept_bytes), format_bytes(outcome.moved_bytes));
}

std::vector<Finding> all_findings(const JobResult& result) {
  std::vector<Finding> all = result.job.findings;
  if (result.replicas) std::ranges::copy(result.replicas->findings, std::back_inserter(all));
  return all;
}

Json result_json(const JobResult& result) {
  const Outcome& outcome = result.outcome;
  const Catalog& source = result.job.source->catalog();
  Json document = new_document(verb_of(result.job.kind));
  document["source"] = {
      {"path", result.source}, {"format", source.format}, {"mesh", json_of(source.layout.mesh())}};
  document["target"] = {{"path", result.destination},
                        {"format", result.job.to},
                        {"mesh", json_of(result.job.target.mesh)}};
  document["tensors"] = outcome.tensors;
  document["read_bytes"] = outcome.read_bytes;
  document["written_bytes"] = outcome.written_bytes;
  document["stored_bytes"] = outcome.stored_bytes;
  document["seconds"] = result.seconds;
  document["predicted_seconds"] = json_of(result.prediction);
  document["proved"] = outcome.proved == Proved::read_back ? "read_back" : "sent";
  document["digest_kind"] = "crc64xz";
  document["recorded_digests_matched"] = outcome.recorded;
  document["kept_bytes"] = outcome.kept_bytes;
  document["rank_moved_bytes"] = outcome.moved_bytes;
  document["as_planned"] = true;
  document["rounded_values"] = outcome.rounded_values;
  add_selection(result.job, result.left, document);
  document["replicas_not_compared"] = outcome.replicas_not_compared;
  document["directory_synced"] = outcome.directory_synced;
  document["replicas_unlike"] = result.replicas ? Json(result.replicas->unlike) : Json(nullptr);
  document["resumed_bytes"] = result.resumed_bytes ? Json(*result.resumed_bytes) : Json(nullptr);
  document["findings"] = json_of(all_findings(result));
  document["path"] = result.destination;
  return document;
}

void print_replicas(const ComparedReplicas& replicas, Output& out) {
  print_findings(replicas.findings, out);
  if (replicas.unlike == 0) {
    out.detail("replicas compared: all copies are the same");
  } else {
    out.detail(fmt::format("replicas compared: {} had copies that differ or are damaged",
                           counted(replicas.unlike, "piece")));
  }
}

void print_caveats(const JobResult& result, Output& out) {
  const Outcome& outcome = result.outcome;
  if (result.below_copies > 0) {
    out.detail(
        fmt::format("{}  {} stored fewer than {} times: that many ranks do not hold {}; "
                    "data parallelism (dp) is what replicates",
                    out.warned("note"), counted(result.below_copies, "piece"), result.copies,
                    result.below_copies == 1 ? "it" : "them"));
  }
  if (result.replicas) print_replicas(*result.replicas, out);
  if (outcome.replicas_not_compared > 0) {
    out.detail(
        fmt::format("replicas not compared: {}", counted(outcome.replicas_not_compared, "tensor")));
  }
  if (!outcome.directory_synced) {
    out.detail(
        fmt::format("{} RM703  this file system cannot sync a directory: the files are on the "
                    "medium, their names will be soon",
                    out.warned("note")));
  }
}

}  // namespace

void begin_job_report(const Job& job, const Wanted& wanted, Output& out) {
  out.detail(both_meshes(job.source->catalog().layout.mesh(), job.target.mesh));
  print_findings(job.findings, out);
  print_selection(job, wanted, out);
}

void end_job_report(const JobResult& result, Output& out) {
  print_caveats(result, out);
  if (result.outcome.cast_tensors > 0) {
    out.detail(fmt::format("rounded: {} of {} cast",
                           counted(result.outcome.rounded_values, "value"),
                           counted(result.outcome.cast_tensors, "tensor")));
  }
  if (result.outcome.recorded > 0) {
    out.detail(fmt::format("recorded digests matched: {} of {}", result.outcome.recorded,
                           counted(result.outcome.tensors, "tensor")));
  }
  out.detail(planned_line(result.outcome));
  if (result.resumed_bytes) {
    out.detail(fmt::format("resumed: {} were on the medium already and not written again",
                           format_bytes(*result.resumed_bytes)));
  }
  if (!result.compress.empty()) {
    out.detail(fmt::format("packed with {}: {} in {}", result.compress,
                           format_bytes(result.outcome.written_bytes),
                           format_bytes(result.outcome.stored_bytes)));
  }
  if (result.prediction) {
    out.detail(fmt::format("predicted: {}; taken: {}", to_string(*result.prediction),
                           format_seconds(result.seconds)));
  }
  out.detail(done_line(result, out));
  out.line(result.destination);
  out.document(result_json(result));
}

}  // namespace remesh
