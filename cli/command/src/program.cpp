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
#include "failure.hpp"
#include "json_parts.hpp"
#include "remesh/core/error.hpp"
#include "stale_reports.hpp"
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

// Fills in the request. Nothing where there is something to run; otherwise help or the version was
// printed.
std::optional<int> read(std::span<const Command> commands,
                        const std::vector<std::string>& arguments, CLI::App& program,
                        Request& request) {
  build_program(program, commands, request);
  const auto printed = parse(program, spelled_out(arguments, names_of(commands)));
  request.verb = chosen_verb(program).get_name();
  return printed;
}

int run(std::span<const Command> commands, const std::vector<std::string>& arguments,
        FileSystem& files, const StopFlag& stop, OnFailure& on_failure) {
  CLI::App program;
  Request request;
  if (const auto printed = read(commands, arguments, program, request)) return *printed;
  Output out(request.talk);
  Session session{out, files, stop, request.verb, on_failure};
  int code = exit_code::done;
  if (request.run) {
    code = request.run(session);
  } else {
    out.raw(welcome);
  }
  out.finish();
  return code;
}

// Reports hear of it first. That they cannot be written is not what the command failed of.
void tell_reports(const Failure& failure, const OnFailure& on_failure) {
  try {
    on_failure(failure);
  } catch (const std::exception& error) {
    Output(TalkOptions{}).warn(fmt::format("remesh: warning: {}", escaped_lines(error.what())));
  }
}

}  // namespace

CLI::App* add_verb(CLI::App& program, const std::string& name, const std::string& purpose,
                   const std::vector<std::string>& examples) {
  CLI::App* verb = program.add_subcommand(name, purpose);
  std::string footer = exit_code::in_short() + "\n\nExamples:";
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
  program.footer(exit_code::in_full() +
                 "\n\nExamples:\n  remesh inspect CKPT\n  remesh convert HF_DIR OUT --mesh tp=2");
}

int run_program(std::span<const Command> commands, const std::vector<std::string>& arguments,
                FileSystem& files, const StopFlag& stop) noexcept {
  OnFailure on_failure;
  try {
    on_failure = [&arguments](const Failure&) { remove_stale_reports(arguments); };
    return run(commands, arguments, files, stop, on_failure);
  } catch (...) {
    const Failure failure = current_failure(stop.signal());
    tell_reports(failure, on_failure);
    tell(failure, asks_for_json(arguments));
    return failure.exit;
  }
}

}  // namespace remesh
