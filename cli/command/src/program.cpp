#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "arguments.hpp"
#include "exit_code.hpp"
#include "json_parts.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"
#include "usage_error.hpp"
#include "versions.hpp"

namespace remesh {
namespace {

constexpr std::string_view welcome =
    "remesh changes the mesh of a distributed LLM checkpoint and proves that no number changed.\n"
    "\n"
    "  look     inspect PATH · plan SRC --mesh M · verify PATH · diff LEFT RIGHT · latest RUN\n"
    "  change   reshard SRC DST --mesh M · convert SRC DST [--to hf] [--mesh M]\n"
    "  keep     fingerprint PATH [--check FILE] · seal PATH\n"
    "  help     explain RM202 · env · bench io DIR · completion bash · VERB --help\n"
    "\n"
    "  remesh convert ./llama-hf ./llama.remesh --mesh tp=2,pp=2\n"
    "  remesh reshard ./llama.remesh ./llama.tp4 --mesh tp=4\n"
    "  remesh verify ./llama.tp4 --against ./llama-hf\n"
    "\n"
    "Answers go to standard output, talk to standard error; every command takes --json.\n";

struct Failure {
  int exit = exit_code::bug;
  std::string code;  ///< as in Errc's names
  std::string id;
  std::string message;
};

// The page that explains an error without an id of its own.
std::string id_of(const Error& error) {
  if (!error.id().empty()) return error.id();
  switch (error.code()) {
    case Errc::busy:
      return "RM701";
    case Errc::io:
      return "RM703";
    case Errc::out_of_memory:
      return "RM705";
    default:
      return {};
  }
}

// The failure that is being handled.
Failure current_failure(int signal) {
  try {
    throw;
  } catch (const Error& error) {
    return {exit_code::of(error.code(), signal), to_string(error.code()), id_of(error),
            error.what()};
  } catch (const std::bad_alloc&) {
    return {exit_code::limit, to_string(Errc::out_of_memory), "RM705",
            "the machine has no more memory; a smaller `--memory` or fewer `--threads` may help"};
  } catch (const std::exception& error) {
    return {exit_code::bug, to_string(Errc::internal), "",
            fmt::format("{}; this is a bug in remesh, please report it", error.what())};
  } catch (...) {
    return {exit_code::bug, to_string(Errc::internal), "",
            "something unknown was thrown; this is a bug in remesh, please report it"};
  }
}

void tell(const Failure& failure, bool json) {
  print_error(failure.id, failure.message);
  if (!json) return;
  Json document = new_document("error");
  document["exit"] = failure.exit;
  document["code"] = failure.code;
  document["id"] = text_or_null(failure.id);
  document["message"] = failure.message;
  TalkOptions talk;
  talk.json = true;
  Output(talk).document(document);
  std::fflush(stdout);
}

bool asks_for_json(const std::vector<std::string>& arguments) {
  return std::ranges::find(arguments, "--json") != arguments.end();
}

std::vector<std::string> names_of(std::span<const Command> commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

// Nothing where there is something to run; otherwise help or the version was printed.
std::optional<int> parse(CLI::App& program, std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    program.parse(arguments);
  } catch (const CLI::Success& wanted) {
    return program.exit(wanted, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    throw Error(Errc::invalid_argument, usage_message(program, error));
  }
  return std::nullopt;
}

int run(std::span<const Command> commands, const std::vector<std::string>& arguments,
        FileSystem& files, const StopFlag& stop) {
  Request request;
  CLI::App program;
  build_program(program, commands, request);
  if (const auto printed = parse(program, spelled_out(arguments, names_of(commands)))) {
    return *printed;
  }
  Output out(request.talk);
  int code = exit_code::done;
  if (request.run) {
    Session session{out, files, stop};
    code = request.run(session);
  } else {
    out.raw(welcome);
  }
  out.finish();
  return code;
}

}  // namespace

CLI::App* add_verb(CLI::App& program, const std::string& name, const std::string& purpose,
                   const std::vector<std::string>& examples) {
  CLI::App* verb = program.add_subcommand(name, purpose);
  std::string footer = "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  verb->footer(footer);
  return verb;
}

void build_program(CLI::App& program, std::span<const Command> commands, Request& request) {
  program.name("remesh");
  program.description(
      "Changes the mesh of a distributed LLM checkpoint and proves that no number "
      "changed.");
  program.set_version_flag("--version", std::string(tool_name()), "the version");
  program.require_subcommand(0, 1);
  program.option_defaults()->always_capture_default(false);
  for (const Command& command : commands) command.add(program, request);
  program.footer("Examples:\n  remesh inspect CKPT\n  remesh convert HF_DIR OUT --mesh tp=2");
}

int run_program(std::span<const Command> commands, const std::vector<std::string>& arguments,
                FileSystem& files, const StopFlag& stop) noexcept {
  try {
    return run(commands, arguments, files, stop);
  } catch (...) {
    const Failure failure = current_failure(stop.signal());
    tell(failure, asks_for_json(arguments));
    return failure.exit;
  }
}

}  // namespace remesh
