// What the program allocates in one piece of some MiB it uses from end to end: headers, manifests,
// catalogs. With large pages such a piece costs a page fault for each 2 MiB, and not 512 of them,
// which were a third of the time of reading a manifest of 100,000 tensors. The system decides;
// this is a hint. glibc has a tunable for the same, but for the environment alone.
//
// The sanitizers bring their own operator new.
#include "sanitized.hpp"

#ifndef REMESH_SANITIZED

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <unistd.h>

#include <sys/mman.h>

namespace {

constexpr std::size_t least_bytes = std::size_t{4} << 20;

void ask_for_large_pages(void* memory, std::size_t bytes) noexcept {
  static const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const int before = errno;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  ::madvise(reinterpret_cast<void*>(first), begin + bytes - first, MADV_HUGEPAGE);
  errno = before;
}

}  // namespace

// All forms of new but the aligned ones call this one, and all such forms of delete the ones below.
void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
      if (bytes >= least_bytes) ask_for_large_pages(memory, bytes);
      return memory;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
