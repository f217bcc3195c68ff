#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine.hpp"
#include "output.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace remesh {

/// What `plan`, `reshard` and `convert` can be told.
struct JobOptions {
  std::string source;
  std::string destination;  ///< empty for plan
  std::string mesh;
  std::string stages;
  std::optional<int> zero;
  std::string shard_rule;
  std::string from_mesh;
  std::string to;
  std::string from;
  std::string rules;
  std::int64_t copies = 1;
  std::string compress;  ///< "zstd:3"; empty: not at all
  std::string shard_size;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  bool weights_only = false;
  std::string dtype;
  bool read_back = false;
  bool check_replicas = false;
  std::string replicas;  ///< error, first, majority; empty: as check_replicas says
  bool discard = false;
  bool resume = false;
  bool dry_run = false;
  std::string sign;   ///< a file with a secret key; empty: not signed
  std::string proof;  ///< where a copy of the certificate goes; empty: nowhere
  std::string io;     ///< what `bench io --json` printed; empty: no prediction
  TalkOptions talk;
  WorkOptions work;
};

/// SRC, --from, --from-mesh, --rules, --copies, --compress, --include, --exclude, --weights-only,
/// --dtype, --io and what all commands have.
void add_source_options(CLI::App& verb, JobOptions& options);

/// DST, --read-back, --check-replicas, --replicas, --resume, --discard, --sign, --proof, --dry-run.
void add_destination_options(CLI::App& verb, JobOptions& options);

/// --mesh M, --stages, --zero and --shard-rule. `purpose` says what is assumed without it, where it
/// is not required.
CLI::Option* add_mesh_option(CLI::App& verb, JobOptions& options, const std::string& purpose);

/// --to F and --shard-size.
void add_target_format_options(CLI::App& verb, JobOptions& options);

}  // namespace remesh
