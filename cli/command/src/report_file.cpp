#include "report_file.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

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
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, unknown)) {
    throw Error(Errc::io, fmt::format("cannot write `{} {}`: there is no directory '{}'; create it "
                                      "first",
                                      flag, path, parent.string()));
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(path), unknown);
  for (const std::string& checkpoint : judged) {
    if (!is_part_of(whole, checkpoint)) continue;
    throw Error(Errc::invalid_argument,
                fmt::format("cannot write `{} {}`: it would lie in the checkpoint '{}', which is "
                            "judged; name another place",
                            flag, path, checkpoint));
  }
}

void write_report(const std::string& path, std::string_view text) {
  // Of this process, so that jobs that write the same report do not meet.
  const std::string temporary = fmt::format("{}.remesh-{}", path, getpid());
  std::remove(temporary.c_str());
  Stream out(temporary);
  const bool written = out.write(text) && out.close();
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string reason = std::generic_category().message(errno);
  std::remove(temporary.c_str());
  throw Error(Errc::io, fmt::format("cannot write '{}': {}", path, reason));
}

}  // namespace remesh
