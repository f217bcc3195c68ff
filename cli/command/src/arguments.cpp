#include "arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

bool is_verb(const std::string& word, const std::vector<std::string>& verbs) {
  return std::ranges::find(verbs, word) != verbs.end();
}

bool is_path(const std::string& word) {
  std::error_code ignored;
  return word.find('/') != std::string::npos || std::filesystem::exists(word, ignored);
}

[[noreturn]] void refuse(const std::string& word, const std::vector<std::string>& verbs) {
  const std::string meant = nearest(word, verbs);
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' is neither a command nor a path that exists; {}", word,
                          meant.empty() ? "`remesh` alone lists the commands"
                                        : fmt::format("did you mean `remesh {}`?", meant)));
}

}  // namespace

std::vector<std::string> spelled_out(std::vector<std::string> arguments,
                                     const std::vector<std::string>& verbs) {
  const auto word = std::ranges::find_if(
      arguments, [](const std::string& argument) { return !argument.starts_with('-'); });
  if (word == arguments.end()) return arguments;

  if (*word == "help") {
    arguments.erase(word);
    if (!arguments.empty()) arguments.emplace_back("--help");
    return arguments;
  }
  if (is_verb(*word, verbs)) {
    std::rotate(arguments.begin(), word, word + 1);
    return arguments;
  }
  if (!is_path(*word)) refuse(*word, verbs);
  arguments.insert(arguments.begin(), "inspect");
  return arguments;
}

}  // namespace remesh
