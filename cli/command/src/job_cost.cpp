#include "job_cost.hpp"

#include <fmt/format.h>

#include "machine_facts.hpp"
#include "rates_json.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

int workers_of(const JobOptions& options) {
  return options.work.threads > 0 ? options.work.threads : usable_processors();
}

constexpr std::int64_t mib = std::int64_t{1} << 20;

}  // namespace

Memory memory_of(const Job& job, const Catalog& wanted, const JobOptions& options) {
  const std::int64_t limit = MemoryBudget(parse_bytes(options.work.memory)).limit_bytes();
  const int workers = workers_of(options);
  const Memory memory{peak_memory(job.source->catalog(), job.source->extents(), wanted,
                                  writer_options(options), workers, limit),
                      limit};
  if (memory.need.least_bytes <= limit) return memory;
  const bool one_would_do = workers > 1 && peak_memory(job.source->catalog(), job.source->extents(),
                                                       wanted, writer_options(options), 1, limit)
                                                   .least_bytes <= limit;
  throw Error(
      Errc::out_of_memory,
      fmt::format("cannot do this within {} of memory: {} in {}, {} and the files beside "
                  "them take up to {}; say `--memory {}MiB`{}",
                  format_bytes(limit), counted(std::ssize(wanted.tensors), "tensor"),
                  counted(memory.need.pieces, "piece"), counted(workers, "worker"),
                  format_bytes(memory.need.peak_bytes), (memory.need.least_bytes + mib - 1) / mib,
                  one_would_do ? " or lower `-j`" : ""),
      "RM705");
}

std::optional<Prediction> prediction_of(const JobOptions& options, const PlanSummary& plan,
                                        std::int64_t pieces, const FileSystem& files) {
  if (options.io.empty()) return std::nullopt;
  return predict({.read_bytes = plan.read_bytes,
                  .write_bytes = plan.write_bytes,
                  .pieces = options.to == "hf" ? 0 : pieces,
                  .read_back = options.read_back,
                  .workers = workers_of(options),
                  .read_limit = read_limit_of(options.work)},
                 read_rates(files, options.io));
}

std::string to_string(const Prediction& prediction) {
  return fmt::format("{} if the system has the source in memory, {} if not",
                     format_seconds(prediction.cached), format_seconds(prediction.cold));
}

Json json_of(const std::optional<Prediction>& prediction) {
  if (!prediction) return nullptr;
  return {{"cached", prediction->cached}, {"cold", prediction->cold}};
}

}  // namespace remesh
