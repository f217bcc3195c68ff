#include "output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

// Read before any thread starts, and never changed by us.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool wants_color(std::string_view choice) {
  if (choice == "always") return true;
  if (choice == "never") return false;
  return environment("NO_COLOR").empty() && environment("TERM") != "dumb" &&
         isatty(STDOUT_FILENO) == 1;
}

Output::Output(const TalkOptions& options)
    : options_(options), color_(wants_color(options.color)) {}

void Output::raw(std::string_view text) {
  if (text.empty()) return;
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() && failure_ == 0) failure_ = errno;
}

void Output::line(std::string_view text) {
  if (options_.json) return;
  raw(text);
  raw("\n");
}

void Output::detail(std::string_view text) {
  if (!options_.quiet) line(text);
}

void Output::document(const nlohmann::ordered_json& document) {
  if (!options_.json) return;
  // Paths and names may hold any bytes; a document holds UTF-8.
  raw(document.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace));
  raw("\n");
}

void Output::talk(std::string_view text) const {
  if (!options_.quiet) warn(text);
}

void Output::warn(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
}

std::string Output::painted(std::string_view code, std::string_view word) const {
  if (!color_) return std::string(word);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, word);
}

std::string Output::good(std::string_view word) const { return painted("32", word); }
std::string Output::warned(std::string_view word) const { return painted("33", word); }
std::string Output::bad(std::string_view word) const { return painted("31", word); }
std::string Output::strong(std::string_view word) const { return painted("1", word); }

void Output::finish() {
  if (std::fflush(stdout) != 0 && failure_ == 0) failure_ = errno;
  if (failure_ == 0 || failure_ == EPIPE) return;
  const std::string reason = std::generic_category().message(failure_);
  throw Error(Errc::io, fmt::format("cannot write to standard output: {}", reason),
              failure_ == ENOSPC ? "RM702" : "RM703");
}

void print_error(std::string_view id, std::string_view message) {
  std::string text =
      fmt::format("remesh: error{}{}: {}", id.empty() ? "" : " ", id, escaped_lines(message));
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, "        ");
  }
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace remesh
