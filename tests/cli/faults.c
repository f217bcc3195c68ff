// Preloaded by faults_test.py: counts the calls of a job that change files (series m) or read them
// (series r), and makes one of them fail. Calls on paths outside FAULT_ROOT are none of its
// business.
//
//   FAULT_ROOT    the directory whose files count
//   FAULT_LOG     gets a line for each call: "m17 pwrite64 PATH OFFSET COUNT"
//   FAULT_AT      which call: m17. Without it, all are only counted
//   FAULT_DO      before, after: the process is killed there
//                 error: the call fails with FAULT_ERRNO and is not made
//                 full: so do it and every later one that takes space
//                 dead: so do it and every later one that changes anything
//                 short: the call transfers half of its bytes
//                 signal: the process sends itself the signal FAULT_ERRNO, then the call is made
//                 storm: from there on, as FAULT_ERRNO seeds it, transfers are short or give EINTR
//
// The calls are made with syscall(), so that nothing stands between a count and its call.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { changes = 1, takes_space = 2, transfers = 4, reads = 8 };
enum { lowest_log_fd = 900 };

static const char *root, *what;
static size_t root_length;
static char at_series;
static long at_number, argument;
static int log_fd = -1;
static atomic_long counts[2];

__attribute__((constructor)) static void begin(void) {
  const char *log = getenv("FAULT_LOG"), *at = getenv("FAULT_AT"), *value = getenv("FAULT_ERRNO");
  root = getenv("FAULT_ROOT");
  root_length = root ? strlen(root) : 0;
  what = getenv("FAULT_DO");
  if (value) argument = atol(value);
  if (at && what) {
    at_series = at[0];
    at_number = atol(at + 1);
  }
  if (!log) return;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  log_fd = fcntl(fd, F_DUPFD_CLOEXEC, lowest_log_fd);
  syscall(SYS_close, fd);
}

static int is_below_root(const char *path) {
  return root_length && strncmp(path, root, root_length) == 0;
}

// The path of a descriptor; empty if it has none.
static void path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlink, link, path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
}

static void path_at(int directory, const char *name, char *path) {
  path[0] = '\0';
  if (name[0] != '/') {
    if (directory == AT_FDCWD) {
      if (!getcwd(path, PATH_MAX - 1)) path[0] = '\0';
    } else {
      path_of(directory, path);
    }
    strncat(path, "/", PATH_MAX - 1 - strlen(path));
  }
  strncat(path, name, PATH_MAX - 1 - strlen(path));
}

static void kill_now(void) {
  for (;;) syscall(SYS_kill, getpid(), SIGKILL);
}

struct call {
  int is_hit;   // the fault is here
  int error;    // the call must fail with that, 0: not
  size_t size;  // what it may transfer
};

static int fails(int kind, char series, long number) {
  if (series != at_series || number < at_number) return 0;
  if (strcmp(what, "error") == 0) return number == at_number;
  if (strcmp(what, "full") == 0) return number == at_number || (kind & takes_space);
  return strcmp(what, "dead") == 0;
}

// A number that follows from the seed and the call.
static uint64_t drawn(long number) {
  uint64_t x = (uint64_t)argument * 0x9E3779B97F4A7C15u + (uint64_t)number;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static void shorten(struct call *call, long number) {
  if (strcmp(what, "short") == 0 && call->is_hit && call->size > 1) call->size /= 2;
  if (strcmp(what, "storm") != 0) return;
  const uint64_t draw = drawn(number);
  if (draw % 4 == 0) call->error = EINTR;
  if (draw % 4 == 1 && call->size > 1) call->size = 1 + (draw >> 8) % (call->size - 1);
}

static struct call begin_call(int kind, const char *name, const char *path, long offset, size_t size) {
  struct call call = {0, 0, size};
  if (!is_below_root(path)) return call;
  const char series = kind & reads ? 'r' : 'm';
  const long number = 1 + atomic_fetch_add(&counts[series == 'r'], 1);
  if (log_fd >= 0) {
    char line[PATH_MAX + 128];
    const int length = snprintf(line, sizeof line, "%c%ld %s %s %ld %zu\n", series, number, name, path, offset, size);
    syscall(SYS_write, log_fd, line, length);
  }
  if (!at_number) return call;
  call.is_hit = series == at_series && number == at_number;
  if (call.is_hit && strcmp(what, "before") == 0) kill_now();
  if (call.is_hit && strcmp(what, "signal") == 0) syscall(SYS_tgkill, getpid(), gettid(), (int)argument);
  if (fails(kind, series, number)) call.error = (int)argument;
  if (kind & transfers) shorten(&call, number);
  return call;
}

static long end_call(struct call call, long result) {
  if (call.is_hit && strcmp(what, "after") == 0) kill_now();
  return result;
}

static long failed(struct call call) {
  errno = call.error;
  return -1;
}

#define MAKE(call, ...) ((call).error ? failed(call) : end_call(call, syscall(__VA_ARGS__)))

static long on_descriptor(int kind, const char *name, long number, int fd, long at, size_t size, long offset) {
  char path[PATH_MAX];
  path_of(fd, path);
  const struct call call = begin_call(kind, name, path, offset, size);
  return MAKE(call, number, fd, at, call.size, offset);
}

static int opened(int directory, const char *name, int flags, mode_t mode) {
  if (!(flags & O_CREAT)) return (int)syscall(SYS_openat, directory, name, flags, mode);
  char path[PATH_MAX];
  path_at(directory, name, path);
  const struct call call = begin_call(changes | takes_space, "openat", path, 0, 0);
  return (int)MAKE(call, SYS_openat, directory, name, flags, mode);
}

static int on_path(int kind, const char *name, long number, int directory, const char *given, int last) {
  char path[PATH_MAX];
  path_at(directory, given, path);
  const struct call call = begin_call(kind, name, path, 0, 0);
  return (int)MAKE(call, number, directory, given, last);
}

static int renamed(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
  char path[PATH_MAX];
  path_at(to_directory, to, path);
  const struct call call = begin_call(changes, "renameat2", path, 0, 0);
  return (int)MAKE(call, SYS_renameat2, from_directory, from, to_directory, to, flags);
}

#define OPENED(directory)                                       \
  va_list rest;                                                 \
  va_start(rest, flags);                                        \
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
  va_end(rest);                                                 \
  return opened(directory, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD); }
int openat(int directory, const char *path, int flags, ...) { OPENED(directory); }
int openat64(int directory, const char *path, int flags, ...) { OPENED(directory); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

ssize_t write(int fd, const void *from, size_t size) {
  return on_descriptor(changes | takes_space | transfers, "write", SYS_write, fd, (long)from, size, 0);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t offset) {
  return on_descriptor(changes | takes_space | transfers, "pwrite64", SYS_pwrite64, fd, (long)from, size, offset);
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t offset) { return pwrite(fd, from, size, offset); }
ssize_t read(int fd, void *into, size_t size) {
  return on_descriptor(reads | transfers, "read", SYS_read, fd, (long)into, size, 0);
}
ssize_t pread(int fd, void *into, size_t size, off_t offset) {
  return on_descriptor(reads | transfers, "pread64", SYS_pread64, fd, (long)into, size, offset);
}
ssize_t pread64(int fd, void *into, size_t size, off64_t offset) { return pread(fd, into, size, offset); }

static int plain(int kind, const char *name, long number, int fd, long value) {
  char path[PATH_MAX];
  path_of(fd, path);
  const struct call call = begin_call(kind, name, path, value, 0);
  return (int)MAKE(call, number, fd, value);
}
int ftruncate(int fd, off_t size) { return plain(changes | takes_space, "ftruncate", SYS_ftruncate, fd, size); }
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }
int fsync(int fd) { return plain(changes | takes_space, "fsync", SYS_fsync, fd, 0); }
int fdatasync(int fd) { return plain(changes | takes_space, "fdatasync", SYS_fdatasync, fd, 0); }
int flock(int fd, int operation) { return plain(changes, "flock", SYS_flock, fd, operation); }

int mkdir(const char *path, mode_t mode) {
  return on_path(changes | takes_space, "mkdir", SYS_mkdirat, AT_FDCWD, path, (int)mode);
}
int unlinkat(int directory, const char *path, int flags) {
  return on_path(changes, "unlinkat", SYS_unlinkat, directory, path, flags);
}
int unlink(const char *path) { return on_path(changes, "unlinkat", SYS_unlinkat, AT_FDCWD, path, 0); }
int rmdir(const char *path) { return on_path(changes, "unlinkat", SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  const int result = unlink(path);
  return result != 0 && errno == EISDIR ? rmdir(path) : result;
}
int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
  return renamed(from_directory, from, to_directory, to, flags);
}
