#include "remesh/execute/machine_rates.hpp"

#include <algorithm>

namespace remesh {
namespace {

double seconds(const StageCost& stage, std::int64_t bytes) {
  return stage.seconds * static_cast<double>(bytes) / static_cast<double>(stage.bytes);
}

double work(const StageCost& stage, std::int64_t bytes) {
  return stage.processor_seconds * static_cast<double>(bytes) / static_cast<double>(stage.bytes);
}

// One way of reading; what is read back was written a moment before, and comes from the medium.
double predicted(const JobCost& job, const MachineRates& rates, const StageCost& read) {
  const auto workers = static_cast<double>(std::min(job.workers, rates.workers));
  double working = work(read, job.read_bytes) + work(rates.hash, job.read_bytes) +
                   work(rates.copy, job.read_bytes) + work(rates.write, job.write_bytes) +
                   work(rates.hash, job.write_bytes);
  double medium = seconds(rates.write, job.write_bytes);
  if (&read == &rates.read_cold) medium += seconds(read, job.read_bytes);
  double total = std::max(working / workers, medium);
  if (job.read_limit > 0) {
    total =
        std::max(total, static_cast<double>(job.read_bytes) / static_cast<double>(job.read_limit));
  }
  if (job.read_back) {
    working = work(rates.read_cold, job.write_bytes) + work(rates.hash, job.write_bytes);
    total += std::max(working / workers, seconds(rates.read_cold, job.write_bytes));
  }
  return total +
         rates.pieces_seconds * static_cast<double>(job.pieces) / static_cast<double>(rates.pieces);
}

}  // namespace

Prediction predict(const JobCost& job, const MachineRates& rates) {
  return {predicted(job, rates, rates.read_cached), predicted(job, rates, rates.read_cold)};
}

}  // namespace remesh
