#pragma once

#include <functional>
#include <string>

#include "output.hpp"
#include "session.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace remesh {

/// What the command line asked for: filled in by the verb that it named.
struct Request {
  std::string verb;
  TalkOptions talk;
  /// Does it and returns the exit code. Throws Error.
  std::function<int(Session&)> run;
};

/// A verb: how it enters the command line. Its callback fills in the request.
struct Command {
  std::string name;
  CLI::App* (*add)(CLI::App& program, Request& request) = nullptr;
};

CLI::App* add_inspect(CLI::App& program, Request& request);
CLI::App* add_plan(CLI::App& program, Request& request);
CLI::App* add_reshard(CLI::App& program, Request& request);
CLI::App* add_convert(CLI::App& program, Request& request);
CLI::App* add_verify(CLI::App& program, Request& request);
CLI::App* add_latest(CLI::App& program, Request& request);
CLI::App* add_diff(CLI::App& program, Request& request);
CLI::App* add_fingerprint(CLI::App& program, Request& request);
CLI::App* add_seal(CLI::App& program, Request& request);
CLI::App* add_repair(CLI::App& program, Request& request);
CLI::App* add_bench(CLI::App& program, Request& request);
CLI::App* add_env(CLI::App& program, Request& request);
CLI::App* add_explain(CLI::App& program, Request& request);
CLI::App* add_completion(CLI::App& program, Request& request);

}  // namespace remesh
