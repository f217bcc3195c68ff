#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace remesh {

/// How a command talks: what all commands have in common.
struct TalkOptions {
  bool json = false;
  bool quiet = false;
  int verbose = 0;
  std::string color = "auto";  ///< auto, always, never
};

/// Standard output and standard error of one command. Results go to the first, talk to the second.
/// With --json the first holds one document and nothing else.
class Output {
 public:
  explicit Output(const TalkOptions& options);

  bool json() const noexcept { return options_.json; }
  bool quiet() const noexcept { return options_.quiet; }
  int verbose() const noexcept { return options_.verbose; }

  /// A line of result for people; nothing with --json.
  void line(std::string_view text = {});
  /// The same, left out with -q: what leads up to the result.
  void detail(std::string_view text);
  /// The document of a command; nothing without --json.
  void document(const nlohmann::ordered_json& document);
  /// Bytes as they are, whatever the options: scripts and lock files.
  void raw(std::string_view text);
  /// A line of talk, left out with -q.
  void talk(std::string_view text) const;
  /// The same of what nobody may miss: however quiet.
  void warn(std::string_view text) const;

  /// A word in green, yellow, red or bold where colour is on; the word always says it too.
  std::string good(std::string_view word) const;
  std::string warned(std::string_view word) const;
  std::string bad(std::string_view word) const;
  std::string strong(std::string_view word) const;

  /// Hands everything to the system. Throws Error(io) if standard output did not take it; a reader
  /// that went away is no error.
  void finish();

 private:
  std::string painted(std::string_view code, std::string_view word) const;

  TalkOptions options_;
  bool color_ = false;
  int failure_ = 0;  ///< the errno of the first write that failed
};

/// The message of a failed command, on standard error: "remesh: error RM202: cannot ...". The text
/// is escaped; lines after the first are indented.
void print_error(std::string_view id, std::string_view message);

/// Whether colour is wanted on standard output: --color, then NO_COLOR and TERM, then the terminal.
bool wants_color(std::string_view choice);

}  // namespace remesh
