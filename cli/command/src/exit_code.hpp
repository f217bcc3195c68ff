#pragma once

#include <array>
#include <string>
#include <string_view>

#include "remesh/core/error.hpp"

/// @file
/// The exit codes of the program: documented, tested, stable. Scripts treat any other as failure.

namespace remesh::exit_code {

inline constexpr int done = 0;           ///< yes, done, equal, nothing found
inline constexpr int no = 1;             ///< done, and the answer is no
inline constexpr int usage = 2;          ///< the command line cannot be meant
inline constexpr int not_found = 4;      ///< input not found, no checkpoint, not committed
inline constexpr int corrupt = 5;        ///< input corrupt or incomplete
inline constexpr int unsupported = 6;    ///< outside what this build can do
inline constexpr int storage = 7;        ///< I/O, space, permission
inline constexpr int communication = 8;  ///< a peer or the network failed
inline constexpr int limit = 9;          ///< a resource limit
inline constexpr int exists = 10;        ///< the destination exists or is locked
inline constexpr int unsafe = 11;        ///< refused for safety
inline constexpr int bug = 70;           ///< a bug in remesh

/// A code, in a word and in full.
struct Meaning {
  int code = done;
  std::string_view word;
  std::string_view meaning;
};

/// All that a command ends with, but for those of signals: 128 + signal.
inline constexpr std::array meanings{
    Meaning{done, "done", "yes, done, equal, nothing found"},
    Meaning{no, "no", "done, and the answer is no: findings, differences, an impossible mesh"},
    Meaning{usage, "usage", "the command line cannot be meant"},
    Meaning{not_found, "not found", "input not found, not a checkpoint, or not committed"},
    Meaning{corrupt, "corrupt", "input corrupt (`verify` says 1 instead), or lost beyond `repair`"},
    Meaning{unsupported, "unsupported", "outside what this build can do"},
    Meaning{storage, "storage", "I/O, space, permission"},
    Meaning{communication, "peer", "a peer or the network failed (not used yet)"},
    Meaning{limit, "limit", "a resource limit: `--memory`, or the machine's memory"},
    Meaning{exists, "exists", "the destination exists or is locked"},
    Meaning{unsafe, "unsafe", "refused for safety"},
    Meaning{bug, "bug", "a bug in remesh"},
};

/// "0 done, 1 no, 2 usage ...": all codes in two lines.
std::string in_short();

/// A line for each.
std::string in_full();

/// The code for an error. `signal` is the one that asked for the stop, for Errc::stopped: its code
/// is 128 + signal (SIGINT's where no signal is known).
int of(Errc code, int signal = 0) noexcept;

}  // namespace remesh::exit_code
