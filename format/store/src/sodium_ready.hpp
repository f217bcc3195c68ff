#pragma once

#include <sodium.h>

#include "remesh/core/error.hpp"

namespace remesh::native {

/// To be called before anything else of libsodium: it looks for the fastest code for this processor
/// and opens the source of random numbers. Any thread, any number of times.
inline void sodium_ready() {
  static const bool ready = ::sodium_init() >= 0;
  if (!ready) throw Error(Errc::internal, "cannot use libsodium: it does not start");
}

}  // namespace remesh::native
