#include "plan_report.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "exit_code.hpp"
#include "finding_text.hpp"
#include "job_cost.hpp"
#include "json_parts.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/legality.hpp"
#include "remesh/plan/summary.hpp"
#include "selection_report.hpp"
#include "text.hpp"

namespace remesh {
namespace {

/// What the plan came to: a summary, or the reason why there is none.
struct Answer {
  Wanted wanted;
  std::optional<PlanSummary> summary;
  std::string reason;
  Memory memory;
  std::optional<Prediction> prediction;
  std::vector<BrokenRule> rules;  ///< of the model and the usual frameworks, that the mesh breaks
};

// By config.json alone; where it cannot be read, or the target has no mesh, nothing is judged.
std::vector<BrokenRule> rules_of(const Job& job, const Layout& layout) {
  if (job.config.empty() || job.to == "hf") return {};
  const bool said = job.target.stages && !layout.stages().layers.empty();
  try {
    return broken_rules(model_sizes(job.config), job.target.mesh, {},
                        said ? &layout.stages() : nullptr);
  } catch (const Error& error) {
    if (error.code() != Errc::corrupt) throw;
    return {};
  }
}

Answer answer_of(const Job& job, const JobOptions& options, const FileSystem& files) {
  Answer answer;
  answer.rules = rules_of(job, {});
  try {
    answer.wanted.catalog = placed_catalog(job);
    answer.rules = rules_of(job, answer.wanted.catalog.layout);
    // Nothing is left out of this one: what is wrong with the splits is wrong with the mesh.
    answer.summary = summarize(job.source->catalog(), answer.wanted.catalog, options.copies);
  } catch (const Error& error) {
    // What is wrong with the mesh is the answer; all else means that there is none.
    if (error.code() != Errc::invalid_argument) throw;
    answer.reason = error.what();
    return answer;
  }
  if (!job.selection.is_all()) {
    answer.wanted.left = apply(job.selection, answer.wanted.catalog);
    answer.summary = summarize(job.source->catalog(), answer.wanted.catalog, options.copies);
  }
  answer.memory = memory_of(job, answer.wanted.catalog, options);
  answer.prediction = prediction_of(options, *answer.summary, answer.memory.need.pieces, files);
  return answer;
}

Table cost_table(const Answer& answer) {
  const PlanSummary& plan = *answer.summary;
  Table table;
  table.add({"tensors", fmt::format("{}, {}", plan.num_tensors, format_bytes(plan.payload_bytes))});
  table.add({"reads", format_bytes(plan.read_bytes)});
  table.add({"writes", format_bytes(plan.write_bytes)});
  table.add({"kept", fmt::format("{} of {} are where the target wants them: a live job keeps them",
                                 format_bytes(plan.kept_bytes), format_bytes(plan.wanted_bytes))});
  table.add({"rank to rank",
             fmt::format("{}: what a live job would move", format_bytes(plan.moved_bytes))});
  table.add({"worker to worker",
             fmt::format("{}: what this run moves", format_bytes(plan.worker_moved_bytes))});
  if (!plan.rank_bytes.empty()) {
    const auto [least, most] = std::ranges::minmax(plan.rank_bytes);
    table.add({"a rank holds", fmt::format("{} to {}", format_bytes(least), format_bytes(most))});
  }
  table.add({"peak memory",
             fmt::format("at most {} (--memory {})", format_bytes(answer.memory.need.peak_bytes),
                         format_bytes(answer.memory.limit))});
  if (answer.prediction) table.add({"time", to_string(*answer.prediction)});
  return table;
}

void print_ranks(const PlanSummary& plan, Output& out) {
  if (out.verbose() == 0) return;
  for (std::size_t rank = 0; rank < plan.rank_bytes.size(); ++rank) {
    out.line(fmt::format("  rank {}  {}", rank, format_bytes(plan.rank_bytes[rank])));
  }
}

void print_plan(const Answer& answer, Output& out) {
  for (const std::string& line : cost_table(answer).lines()) out.line(line);
  print_ranks(*answer.summary, out);
  for (const std::string& split : answer.summary->uneven) out.line("uneven: " + escaped(split));
}

void print_rules(const Answer& answer, Output& out) {
  for (const BrokenRule& broken : answer.rules) {
    const std::string nearest =
        broken.nearest.empty() ? "" : fmt::format("; nearest: {}", broken.nearest);
    const std::string who = broken.impossible ? "; nobody can have that"
                            : broken.refused_by.empty()
                                ? ""
                                : fmt::format("; refused by {}", joined(broken.refused_by));
    out.line(escaped(fmt::format("rule {}: {}{}{}", broken.rule, broken.message, nearest, who)));
  }
}

// Only stored copies can differ; ranks that share a file cannot.
void print_replicas(const Job& job, const PlanSummary& plan, Output& out) {
  if (job.source->extents().copies() < 2 || plan.replicated_tensors == 0) return;
  out.line(fmt::format("replicas are not compared: {}, one of several copies is read",
                       counted(plan.replicated_tensors, "tensor")));
}

Json costs_json(const Answer& answer) {
  const PlanSummary& plan = *answer.summary;
  return {{"tensors", plan.num_tensors},
          {"payload_bytes", plan.payload_bytes},
          {"read_bytes", plan.read_bytes},
          {"write_bytes", plan.write_bytes},
          {"wanted_bytes", plan.wanted_bytes},
          {"kept_bytes", plan.kept_bytes},
          {"rank_moved_bytes", plan.moved_bytes},
          {"worker_moved_bytes", plan.worker_moved_bytes},
          {"peak_memory_bytes", answer.memory.need.peak_bytes},
          {"predicted_seconds", json_of(answer.prediction)},
          {"replicated_tensors", plan.replicated_tensors},
          {"uneven", plan.uneven},
          {"rank_bytes", plan.rank_bytes}};
}

Json rules_json(const Answer& answer) {
  Json rules = Json::array();
  for (const BrokenRule& broken : answer.rules) {
    rules.push_back({{"rule", broken.rule},
                     {"message", broken.message},
                     {"nearest", text_or_null(broken.nearest)},
                     {"impossible", broken.impossible},
                     {"refused_by", broken.refused_by}});
  }
  return rules;
}

Json plan_json(const Job& job, const JobOptions& options, const Answer& answer) {
  const Catalog& source = job.source->catalog();
  Json document = new_document("plan");
  document["source"] = {
      {"path", options.source}, {"format", source.format}, {"mesh", json_of(source.layout.mesh())}};
  document["target"] = {{"format", job.to}, {"mesh", json_of(job.target.mesh)}};
  document["possible"] = answer.summary.has_value();
  document["reason"] = text_or_null(answer.reason);
  document["rules"] = rules_json(answer);
  document["costs"] = answer.summary ? costs_json(answer) : Json(nullptr);
  add_selection(job, answer.wanted.left, document);
  document["findings"] = json_of(job.findings);
  return document;
}

// A plan for a place that is taken is no plan.
void check_free(const JobOptions& options, const FileSystem& files) {
  if (options.destination.empty() || !files.look(options.destination)) return;
  throw Error(Errc::exists,
              fmt::format("cannot write {}: destination exists", options.destination));
}

}  // namespace

int plan_job(const Job& job, const JobOptions& options, Session& session) {
  const MemoryBudget enough(parse_bytes(options.work.memory));
  check_free(options, session.files);
  const Answer answer = answer_of(job, options, session.files);

  Output& out = session.out;
  out.line(both_meshes(job.source->catalog().layout.mesh(), job.target.mesh));
  print_findings(job.findings, out);
  if (answer.summary) {
    print_selection(job, answer.wanted, out);
    print_plan(answer, out);
    print_replicas(job, *answer.summary, out);
  } else {
    out.line(fmt::format("{}: {}", out.bad("impossible"), escaped(answer.reason)));
  }
  print_rules(answer, out);
  out.line("nothing was written");
  out.document(plan_json(job, options, answer));
  return answer.summary ? exit_code::done : exit_code::no;
}

}  // namespace remesh
