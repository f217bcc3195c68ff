#pragma once

#include <stdexcept>
#include <string>

namespace remesh {

/// What went wrong, in the terms a caller can act on.
/// The values are part of the C ABI: append, never renumber.
enum class Errc : int {
  invalid_argument = 1,  ///< the request could never succeed as written
  not_found = 2,         ///< a named checkpoint, tensor or file is absent
  corrupt = 3,           ///< stored bytes contradict their own description
  incomplete = 4,        ///< elements or files that the checkpoint promises are missing
  unsupported = 5,       ///< well-formed, but outside what this build can do
  io = 6,                ///< the file system refused
  out_of_memory = 7,     ///< the memory budget, or the machine, is too small
  transport = 8,         ///< MPI, NCCL or CUDA failed on this worker
  peer = 9,              ///< another worker failed; the message quotes it
  exists = 10,           ///< the destination is there already
  busy = 11,             ///< another job holds the destination
  unsafe = 12,           ///< the input asks for something that remesh refuses to do
  internal = 13,         ///< a bug in remesh
  stopped = 14,          ///< a signal asked for a clean stop
};

/// The name of a code as it stands in JSON, for example "invalid_argument".
const char* to_string(Errc code) noexcept;

/// The one exception that remesh throws.
class Error : public std::runtime_error {
 public:
  /// `id` is the finding's stable id ("RM202") where there is one.
  Error(Errc code, const std::string& message, std::string id = {});

  Errc code() const noexcept { return code_; }
  const std::string& id() const noexcept { return id_; }

 private:
  Errc code_;
  std::string id_;
};

}  // namespace remesh
