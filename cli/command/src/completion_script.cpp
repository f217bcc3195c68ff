#include "completion_script.hpp"

#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text.hpp"

namespace remesh {
namespace {

struct OptionWords {
  std::vector<std::string> names;  ///< "--json", "-q"
  std::string purpose;
  bool takes_value = false;
};

struct VerbWords {
  std::string name;
  std::string purpose;
  std::vector<OptionWords> options;
};

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  words.purpose = option.get_description();
  words.takes_value = option.get_items_expected_max() > 0;
  return words;
}

VerbWords words_of(const CLI::App& verb) {
  VerbWords words{verb.get_name(), verb.get_description(), {}};
  for (const CLI::Option* option : verb.get_options()) {
    OptionWords one = words_of(*option);
    const bool hidden = option->get_group().empty();
    if (!hidden && !one.names.empty()) words.options.push_back(std::move(one));
  }
  return words;
}

std::vector<VerbWords> verbs_of(const CLI::App& program) {
  std::vector<VerbWords> verbs;
  for (const CLI::App* verb : program.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(words_of(*verb));
  }
  return verbs;
}

std::string verb_names(const std::vector<VerbWords>& verbs) {
  std::vector<std::string> names;
  names.reserve(verbs.size());
  for (const VerbWords& verb : verbs) names.push_back(verb.name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string option_names(const VerbWords& verb) {
  std::vector<std::string> names;
  for (const OptionWords& option : verb.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

// For single quotes, in any of the three shells (fish knows \' inside them, the others end and
// begin anew: so the mark itself is left out).
std::string quotable(std::string text) {
  std::erase(text, '\'');
  std::erase(text, '\\');
  return text;
}

std::string bash(const std::vector<VerbWords>& verbs) {
  std::string cases;
  for (const VerbWords& verb : verbs) {
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb.name, option_names(verb));
  }
  return fmt::format(
      "# bash completion of remesh; eval \"$(remesh completion bash)\"\n"
      "_remesh() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\") $(compgen -f -- "
      "\"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n"
      "{}"
      "  esac\n"
      "  case \"$word\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _remesh remesh\n",
      verb_names(verbs), cases);
}

// The brackets of _arguments end at the first ']'; a colon begins the next field.
std::string zsh_purpose(std::string text) {
  std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == ':'; });
  return quotable(std::move(text));
}

std::string zsh(const std::vector<VerbWords>& verbs) {
  std::string names;
  std::string cases;
  for (const VerbWords& verb : verbs) {
    names += fmt::format("    '{}:{}'\n", verb.name, zsh_purpose(verb.purpose));
    cases += fmt::format("    {}) _arguments", verb.name);
    for (const OptionWords& option : verb.options) {
      for (const std::string& name : option.names) {
        cases += fmt::format(" '{}[{}]{}'", name, zsh_purpose(option.purpose),
                             option.takes_value ? ":value:_files" : "");
      }
    }
    cases += " '*:path:_files' ;;\n";
  }
  return fmt::format(
      "#compdef remesh\n"
      "# zsh completion of remesh; source <(remesh completion zsh)\n"
      "_remesh() {{\n"
      "  local -a verbs=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe 'command' verbs\n"
      "    _files\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n"
      "{}"
      "  esac\n"
      "}}\n"
      // Installed, the file is the body of the function when it is called for the first time.
      "if [[ $funcstack[1] == _remesh ]]; then _remesh \"$@\"; else compdef _remesh remesh; fi\n",
      names, cases);
}

std::string fish_option(const VerbWords& verb, const OptionWords& option) {
  std::string line =
      fmt::format("complete -c remesh -n '__fish_seen_subcommand_from {}'", verb.name);
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    line += fmt::format(" {} {}", is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1));
  }
  return fmt::format("{}{} -d '{}'\n", line, option.takes_value ? " -r" : "",
                     quotable(option.purpose));
}

std::string fish(const std::vector<VerbWords>& verbs) {
  std::string script = "# fish completion of remesh; remesh completion fish | source\n";
  for (const VerbWords& verb : verbs) {
    script += fmt::format("complete -c remesh -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                          quotable(verb.purpose));
    for (const OptionWords& option : verb.options) script += fish_option(verb, option);
  }
  return script;
}

}  // namespace

std::string completion_script(const CLI::App& program, std::string_view shell) {
  const std::vector<VerbWords> verbs = verbs_of(program);
  if (shell == "zsh") return zsh(verbs);
  if (shell == "fish") return fish(verbs);
  return bash(verbs);
}

}  // namespace remesh
