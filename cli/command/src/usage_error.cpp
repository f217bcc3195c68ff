#include "usage_error.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "text.hpp"

namespace remesh {
namespace {

struct Synonym {
  std::string_view said;
  std::string_view meant;
};

// What other tools call it.
constexpr std::array synonyms{
    Synonym{"--tp", "--mesh tp=N"},
    Synonym{"--pp", "--mesh pp=N"},
    Synonym{"--dp", "--mesh dp=N"},
    Synonym{"--cp", "--mesh cp=N"},
    Synonym{"--to-mesh", "--mesh"},
    Synonym{"--target-mesh", "--mesh"},
    Synonym{"--layout", "--mesh"},
    Synonym{"--target-tensor-parallel-size", "--mesh tp=N"},
    Synonym{"--target-pipeline-parallel-size", "--mesh pp=N"},
    Synonym{"--tensor-model-parallel-size", "--mesh tp=N"},
    Synonym{"--pipeline-model-parallel-size", "--mesh pp=N"},
    Synonym{"--format", "--to"},
    Synonym{"--to-format", "--to"},
    Synonym{"--from-format", "--from"},
    Synonym{"--model-map", "--rules"},
    Synonym{"--max-memory", "--memory"},
    Synonym{"--workers", "--threads"},
    Synonym{"--max-shard-size", "--shard-size"},
    Synonym{"--out-shard-size", "--shard-size"},
    Synonym{"--verify", "--read-back"},
    Synonym{"--force", "--discard"},
};

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The option that was probably meant; empty where none is near. Only one that the verb has.
std::string meant_option(const CLI::App& verb, const std::string& said) {
  const std::vector<std::string> names = option_names(verb);
  const auto* known = std::ranges::find(synonyms, said, &Synonym::said);
  if (known != synonyms.end()) {
    const std::string option(known->meant.substr(0, known->meant.find(' ')));
    if (std::ranges::find(names, option) != names.end()) return std::string(known->meant);
  }
  return nearest(said, names);
}

std::string unknown_option(const CLI::App& verb, const std::string& argument) {
  const std::string said = argument.substr(0, argument.find('='));
  const std::string meant = meant_option(verb, said);
  return fmt::format("there is no option `{}`{}", said,
                     meant.empty() ? "" : fmt::format("; did you mean `{}`?", meant));
}

std::string missing(const CLI::ParseError& error) {
  std::string text = error.what();
  if (text.starts_with("--mesh is required")) {
    return "`--mesh` is required: which mesh is wanted, for example `--mesh tp=4`";
  }
  return text;
}

std::string complaint(const CLI::App& verb, const CLI::ParseError& error) {
  const std::vector<std::string> rest = verb.remaining();
  const auto option = std::ranges::find_if(rest, [](const std::string& argument) {
    return argument.size() > 1 && argument.starts_with('-');
  });
  // Before anything else: a misspelt option is also a missing one and a surplus word.
  if (option != rest.end()) return unknown_option(verb, *option);
  if (!rest.empty()) return fmt::format("unexpected argument '{}'", rest.front());
  return missing(error);
}

}  // namespace

const CLI::App& chosen_verb(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? program : *chosen.front();
}

std::string usage_message(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& verb = chosen_verb(program);
  const bool whole = &verb == &program;
  return fmt::format("{} (`remesh {}--help` lists what there is)", complaint(verb, error),
                     whole ? "" : verb.get_name() + " ");
}

}  // namespace remesh
