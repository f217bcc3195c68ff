#include "common_options.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

std::vector<std::string> known_formats() {
  const auto names = format_names();
  return {names.begin(), names.end()};
}

}  // namespace

void add_talk_options(CLI::App& verb, TalkOptions& talk) {
  const std::string group = "Talk";
  verb.add_flag("--json", talk.json, "one JSON document on standard output")->group(group);
  verb.add_flag("-q,--quiet", talk.quiet, "results only")->group(group);
  verb.add_flag("-v,--verbose", talk.verbose, "more; twice: still more")->group(group);
  verb.add_option("--color", talk.color, "auto, always or never (NO_COLOR is heard too)")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group(group);
}

void add_work_options(CLI::App& verb, WorkOptions& work) {
  const std::string group = "Work";
  verb.add_option("-j,--threads", work.threads, "threads; 0: one for each processor")
      ->check(CLI::Range(0, 1024))
      ->group(group);
  verb.add_option("--memory", work.memory, "the most memory to hold, at least 64MiB [1GiB]")
      ->type_name("SIZE")
      ->group(group);
  verb.add_option("--read-limit", work.read_limit,
                  "read no faster than this, for storage that others use: 500MB/s")
      ->type_name("RATE")
      ->group(group);
  verb.add_option("--progress", work.progress, "auto, bar, plain, json or off")
      ->check(CLI::IsMember({"auto", "bar", "plain", "json", "off"}))
      ->group(group);
}

void add_from_option(CLI::App& verb, std::string& from) {
  verb.add_option("--from", from, "the input's format, where it is not to be detected")
      ->type_name("FORMAT");
}

const std::vector<std::string>& all_format_names() {
  static const std::vector<std::string> names{"remesh",    "hf",       "torch",         "dcp",
                                              "fsdp",      "megatron", "megatron-dist", "deepspeed",
                                              "universal", "orbax"};
  return names;
}

void check_format(const std::string& flag, const std::string& value) {
  const std::vector<std::string> known = known_formats();
  if (value.empty() || std::ranges::find(known, value) != known.end()) return;
  if (value.find('=') != std::string::npos || value.starts_with("like:")) {
    throw Error(Errc::invalid_argument,
                fmt::format("`{}` takes a format; for a mesh say `--mesh {}`", flag, value));
  }
  const std::vector<std::string>& named = all_format_names();
  if (std::ranges::find(named, value) != named.end()) {
    throw Error(Errc::unsupported,
                fmt::format("cannot use format '{}': this build knows {}", value, joined(known)));
  }
  const std::string meant = nearest(value, named);
  throw Error(
      Errc::invalid_argument,
      fmt::format("cannot use format '{}': there is none of that name; this build knows {}{}",
                  value, joined(known),
                  meant.empty() ? "" : fmt::format("; did you mean `{} {}`?", flag, meant)));
}

}  // namespace remesh
