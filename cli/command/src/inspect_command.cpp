#include <filesystem>
#include <fnmatch.h>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "inspect_report.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "text.hpp"

namespace remesh {
namespace {

struct Options {
  std::string path;
  std::string glob;
  std::string from;
  TalkOptions talk;
};

std::vector<std::size_t> matching(const std::vector<TensorDesc>& tensors, const std::string& glob) {
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (fnmatch(glob.c_str(), tensors[i].name.c_str(), 0) == 0) matches.push_back(i);
  }
  return matches;
}

std::vector<std::size_t> listed(const std::vector<TensorDesc>& tensors, const Options& options) {
  if (!options.glob.empty()) return matching(tensors, options.glob);
  std::vector<std::size_t> all(options.talk.verbose > 0 ? tensors.size() : 0);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

// A directory that is no checkpoint but may hold some.
bool may_hold_checkpoints(const Options& options, const FileSystem& files) {
  std::error_code ignored;
  return options.from.empty() && std::filesystem::is_directory(options.path, ignored) &&
         !detect_format(files, options.path);
}

int run(const Options& options, Session& session) {
  check_format("--from", options.from);
  if (may_hold_checkpoints(options, session.files) && list_checkpoints(options.path, session)) {
    return exit_code::done;
  }
  StrictFindings findings;
  const auto reader = open_reader(session.files, options.path, options.from, findings);
  const Inspected inspected{options.path, *reader, findings.rest(),
                            listed(reader->catalog().tensors, options)};
  print_inspected(inspected, session.out);
  session.out.document(inspected_json(inspected));
  if (options.glob.empty() || !inspected.listed.empty()) return exit_code::done;
  session.out.talk(fmt::format("no tensor matches '{}'", escaped(options.glob)));
  return exit_code::no;
}

}  // namespace

CLI::App* add_inspect(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(
      program, "inspect", "what a checkpoint is: format, mesh, tensors, files; reads headers only",
      {"remesh inspect CKPT", "remesh inspect HF_DIR '*.norm.weight'",
       "remesh inspect CKPT -v --json"});
  verb->add_option("PATH", options->path, "a checkpoint, or a directory of several")->required();
  verb->add_option("GLOB", options->glob, "list the tensors whose names match: '*.mlp.*'");
  add_from_option(*verb, options->from);
  add_talk_options(*verb, options->talk);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
