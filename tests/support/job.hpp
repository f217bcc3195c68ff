#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/adapters/open.hpp"
#include "remesh/execute/convert.hpp"
#include "remesh/execute/reshard.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::test {

/// All that a verb needs of the machine, small.
struct Machine {
  explicit Machine(int threads = 2) : pool(threads) {}

  ThreadPool pool;
  MemoryBudget budget{MemoryBudget::least_bytes};
  Progress progress;
  Log log;
  StopFlag stop;

  Context context() { return {pool, budget, progress, log, stop}; }
  JudgeContext judge() { return {pool, budget, progress, stop}; }
};

inline std::unique_ptr<Reader> open_strictly(const std::filesystem::path& path) {
  StrictFindings findings;
  return open_reader(posix_file_system(), path, {}, findings);
}

inline Opener opener(const std::filesystem::path& path) {
  return
      [path](Findings& findings) { return open_reader(posix_file_system(), path, {}, findings); };
}

inline std::string config_of(const Reader& reader) {
  for (const SideFile& side : reader.catalog().side) {
    if (side.name != "config.json") continue;
    const std::vector<std::byte> bytes = reader.side(side);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  return {};
}

struct JobOptions {
  std::string to = "remesh";
  std::string mesh = "tp=1";
  WriterOptions writer = {.job_id = "0123456789abcdef"};
  TransferOptions transfer = {};
};

/// Converts or reshards `source` to `target`, as the program does.
inline Outcome run_job(Machine& machine, const std::filesystem::path& source,
                       const std::filesystem::path& target, const JobOptions& options) {
  const std::unique_ptr<Reader> reader = open_strictly(source);
  const std::string config = config_of(*reader);
  const ModelMap* map = reader->catalog().format == "hf" ? shipped_map(config) : nullptr;
  Catalog wanted = converted(reader->catalog(), options.to, parse_mesh(options.mesh), map, config);
  const auto writer = create_writer(
      posix_file_system(), target, std::move(wanted),
      [&reader](const SideFile& side) { return reader->side(side); }, options.writer);
  Context context = machine.context();
  return convert(context, *reader, *writer, options.transfer);
}

}  // namespace remesh::test
