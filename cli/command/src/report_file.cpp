#include "report_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/fail_to_write.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

bool is_beneath(const fs::path& path, const fs::path& directory) {
  const fs::path relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != "..";
}

// What of a checkpoint must not be written: its directory with all in it, or its one file and what
// lies beside that for it.
bool is_part_of(const fs::path& path, const std::string& checkpoint) {
  std::error_code unknown;
  const fs::path whole = fs::weakly_canonical(checkpoint, unknown);
  if (unknown) return false;
  if (fs::is_directory(whole, unknown)) return is_beneath(path, whole);
  return path == whole || path.string() == whole.string() + ".remesh-seal.json";
}

// Nobody means to lose one of these for a report.
bool is_of_some_checkpoint(const fs::path& path) {
  constexpr std::array<std::string_view, 5> endings{".safetensors", ".h5", ".bin", ".pt", ".pth"};
  return std::ranges::find(endings, path.extension().string()) != endings.end();
}

class Stream {
 public:
  // Never through a link that somebody laid there.
  explicit Stream(const std::string& path) : file_(std::fopen(path.c_str(), "wbxe")) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { close(); }

  bool write(std::string_view text) {
    return file_ != nullptr && std::fwrite(text.data(), 1, text.size(), file_) == text.size();
  }
  bool close() { return file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) == 0; }

 private:
  std::FILE* file_;
};

}  // namespace

void check_report_path(const std::string& flag, const std::string& path,
                       std::span<const std::string> judged) {
  std::error_code unknown;
  const fs::file_status there = fs::symlink_status(path, unknown);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    throw Error(Errc::exists, fmt::format("cannot write `{} {}`: what lies there is no regular "
                                          "file, and only such are renewed",
                                          flag, path));
  }
  if (fs::exists(there) && is_of_some_checkpoint(path)) {
    throw Error(Errc::exists, fmt::format("cannot write `{} {}`: what lies there looks like a file "
                                          "of a checkpoint; name another place",
                                          flag, path));
  }
  check_has_directory(fmt::format("`{} {}`", flag, path), path);
  const fs::path whole = fs::weakly_canonical(fs::absolute(path), unknown);
  for (const std::string& checkpoint : judged) {
    if (!is_part_of(whole, checkpoint)) continue;
    throw Error(Errc::invalid_argument,
                fmt::format("cannot write `{} {}`: it would lie in the checkpoint '{}', which is "
                            "judged; name another place",
                            flag, path, checkpoint));
  }
}

void check_has_directory(const std::string& what, const std::string& path) {
  const fs::path directory = fs::path(path).parent_path();
  const fs::path parent = directory.empty() ? "." : directory;
  const std::string attempt = fmt::format("write {} into '{}'", what, parent.string());
  std::error_code refusal;
  const fs::file_status there = fs::status(parent, refusal);
  if (!fs::status_known(there)) fail_to_write(attempt, refusal.value());
  if (!fs::is_directory(there)) {
    throw Error(Errc::io,
                fmt::format("cannot write {}: there is no directory '{}'; create it first", what,
                            parent.string()));
  }
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  fail_to_write(attempt, errno);
}

bool is_same_place(const std::string& one, const std::string& other) {
  std::error_code unknown;
  return fs::weakly_canonical(fs::absolute(one), unknown) ==
         fs::weakly_canonical(fs::absolute(other), unknown);
}

void remove_report(const std::string& path) {
  if (std::remove(path.c_str()) == 0 || errno == ENOENT) return;
  fail_to_write(fmt::format("renew '{}'", path), errno);
}

void write_report(const std::string& path, std::string_view text) {
  // Jobs that write the same report must not meet, and those of two containers may have one number.
  const std::string temporary =
      fmt::format("{}.remesh-{}-{:08x}", path, getpid(), std::random_device()());
  Stream out(temporary);
  const bool written = out.write(text) && out.close();
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  fail_to_write(fmt::format("write '{}'", path), error);
}

}  // namespace remesh
