#pragma once

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

/// The code for an error. `signal` is the one that asked for the stop, for Errc::stopped: its code
/// is 128 + signal (SIGINT's where no signal is known).
int of(Errc code, int signal = 0) noexcept;

}  // namespace remesh::exit_code
