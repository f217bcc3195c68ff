#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "command.hpp"
#include "common_options.hpp"
#include "completion_script.hpp"
#include "exit_code.hpp"
#include "json_parts.hpp"
#include "program.hpp"

namespace remesh {
namespace {

struct Options {
  std::string shell;
  TalkOptions talk;
};

int run(const Options& options, const CLI::App& program, Session& session) {
  const std::string script = completion_script(program, options.shell);
  if (!session.out.json()) session.out.raw(script);
  Json document = new_document("completion");
  document["shell"] = options.shell;
  document["script"] = script;
  session.out.document(document);
  return exit_code::done;
}

}  // namespace

CLI::App* add_completion(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(program, "completion", "a script that completes verbs and options",
                            {"remesh completion bash", "remesh completion fish"});
  verb->add_option("SHELL", options->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_talk_options(*verb, options->talk);
  verb->callback([options, &program, &request] {
    request.talk = options->talk;
    request.run = [options, &program](Session& session) { return run(*options, program, session); };
  });
  return verb;
}

}  // namespace remesh
