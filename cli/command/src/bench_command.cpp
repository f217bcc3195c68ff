#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "io_bench.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "rates_json.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

struct Options {
  std::string what;
  std::string directory;
  std::string size = "1GiB";
  TalkOptions talk;
  WorkOptions work;
};

void add_stage(Table& table, const std::string& name, const StageCost& stage,
               const std::string& what) {
  const double gib = static_cast<double>(stage.bytes) / (std::int64_t{1} << 30);
  table.add({name, fmt::format("{:.2f} GiB/s", gib / stage.seconds),
             fmt::format("{:.2f} s of processor for a GiB", stage.processor_seconds / gib), what});
}

void print(const MachineRates& rates, const Options& options, Output& out) {
  out.line(fmt::format("{}  {} and {}", escaped(options.directory),
                       counted(rates.workers, "worker"), format_bytes(rates.write.bytes)));
  Table table;
  add_stage(table, "write", rates.write, "new files, synced");
  add_stage(table, "read", rates.read_cached, "files that the system has in memory");
  add_stage(table, "read, cold", rates.read_cold, "files that it was told to forget");
  add_stage(table, "hash", rates.hash, "buffers");
  add_stage(table, "copy", rates.copy, "from buffer to buffer");
  table.add({"pieces",
             fmt::format("{:.0f}/s", static_cast<double>(rates.pieces) / rates.pieces_seconds), "",
             "created in one native checkpoint"});
  for (const std::string& line : table.lines("  ")) out.line(line);
}

int run(const Options& options, Session& session) {
  const auto place = session.files.look(FileSystem::Path(options.directory) / ".");
  if (!place || place->kind != EntryKind::directory) {
    throw Error(Errc::io,
                fmt::format("cannot measure {}: there is no such directory", options.directory));
  }
  if (!options.work.read_limit.empty()) {
    throw Error(Errc::invalid_argument, "`--read-limit` would limit what is to be measured");
  }
  Machine machine(options.work, session.out, session.stop);
  const MachineRates rates =
      measure_rates(session.files, options.directory, parse_bytes(options.size), machine.context());
  print(rates, options, session.out);
  session.out.document(json_of(rates, options.directory));
  return exit_code::done;
}

}  // namespace

CLI::App* add_bench(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      add_verb(program, "bench", "what this storage and these processors can do, for `plan --io`",
               {"remesh bench io . --size 16MiB", "remesh bench io . --size 16MiB --json > OUT"});
  verb->add_option("WHAT", options->what, "io: storage, digests and copies")
      ->check(CLI::IsMember({"io"}))
      ->required();
  verb->add_option("DIR", options->directory, "where to measure; what is written is removed")
      ->required();
  verb->add_option("--size", options->size, "how much is written and read, three times [1GiB]")
      ->type_name("SIZE");
  add_work_options(*verb, options->work);
  add_talk_options(*verb, options->talk);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
