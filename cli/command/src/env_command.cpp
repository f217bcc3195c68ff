#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "installed.hpp"
#include "json_parts.hpp"
#include "machine_facts.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/models/model_map.hpp"
#include "text.hpp"
#include "versions.hpp"

namespace remesh {
namespace {

struct Options {
  TalkOptions talk;
};

/// All that is told, gathered once for both ways of telling it.
struct Facts {
  std::string processor = processor_name();
  std::vector<std::string> features = processor_features();
  int processors = usable_processors();
  std::int64_t memory_limit_bytes = remesh::memory_limit_bytes();
  std::int64_t idle_bytes = resident_bytes().value_or(0);
  std::vector<std::string> formats = names(format_names());
  std::vector<std::string> model_maps = shipped_map_names();
  std::string schemas = schema_directory();
  std::string hdf5_plugin = hdf5_plugin_directory();

 private:
  static std::vector<std::string> names(const std::vector<std::string_view>& views) {
    return {views.begin(), views.end()};
  }
};

std::string listed(const std::vector<std::string>& words) {
  return words.empty() ? "none" : joined(words);
}

std::string place(const std::string& directory) {
  return directory.empty() ? "not installed" : escaped(directory);
}

void print(const Facts& facts, Output& out) {
  Table table;
  table.add({"remesh", std::string(remesh_version())});
  table.add({"build", fmt::format("{}, {}", compiler(), build_type())});
  table.add({"HDF5", std::string(hdf5_version())});
  table.add({"zstd", std::string(zstd_version())});
  table.add({"CUDA, NCCL, MPI", "not used yet"});
  table.add({"processor", escaped(facts.processor)});
  table.add({"features", listed(facts.features)});
  table.add({"threads", fmt::format("{} by default (-j)", facts.processors)});
  table.add({"memory", fmt::format("1.0 GiB by default (--memory), least {}, machine {}",
                                   format_bytes(MemoryBudget::least_bytes),
                                   format_bytes(facts.memory_limit_bytes))});
  table.add({"idle", format_bytes(facts.idle_bytes)});
  table.add({"formats", listed(facts.formats)});
  table.add({"model maps", listed(facts.model_maps)});
  table.add({"schemas", place(facts.schemas)});
  table.add({"HDF5 plugin", place(facts.hdf5_plugin)});
  for (const std::string& line : table.lines()) out.line(line);
}

Json json_of(const Facts& facts) {
  Json document = new_document("env");
  document["version"] = remesh_version();
  document["compiler"] = compiler();
  document["build_type"] = build_type();
  document["libraries"] = {{"hdf5", hdf5_version()},
                           {"zstd", zstd_version()},
                           {"cuda", nullptr},
                           {"nccl", nullptr},
                           {"mpi", nullptr}};
  document["processor"] = facts.processor;
  document["processor_features"] = facts.features;
  document["threads"] = facts.processors;
  document["default_memory_bytes"] = parse_bytes("1GiB");
  document["least_memory_bytes"] = MemoryBudget::least_bytes;
  document["memory_limit_bytes"] = facts.memory_limit_bytes;
  document["idle_bytes"] = facts.idle_bytes;
  document["formats"] = facts.formats;
  document["model_maps"] = facts.model_maps;
  document["schemas"] = text_or_null(facts.schemas);
  document["hdf5_plugin"] = text_or_null(facts.hdf5_plugin);
  return document;
}

int run(Session& session) {
  const Facts facts;
  print(facts, session.out);
  session.out.document(json_of(facts));
  return exit_code::done;
}

}  // namespace

CLI::App* add_env(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(program, "env", "versions and machine: paste it into a report",
                            {"remesh env", "remesh env --json"});
  add_talk_options(*verb, options->talk);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = run;
  });
  return verb;
}

}  // namespace remesh
