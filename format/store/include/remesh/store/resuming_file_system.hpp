#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "remesh/store/forwarding_file_system.hpp"

namespace remesh {

/// The file system of a job that goes on where an interrupted one stopped. The job does all that it
/// would do from the start; but where it creates a file in its temporary directory that is there,
/// it gets that file, and what it writes is first compared with what the file holds: only what
/// differs is written. So nothing is taken on trust: what counts as done is what is on the medium,
/// and it enters the proof like bytes that were written now.
///
/// A file that was there is synced, and its cached pages are given up, before anything is compared:
/// a page that the system could not write must not count because it is still in memory. Before the
/// directory gets its name, none of these files may be longer than what the job wrote into it.
/// `files` must outlive it.
class ResumingFileSystem final : public ForwardingFileSystem {
 public:
  explicit ResumingFileSystem(FileSystem& files) : ForwardingFileSystem(files) {}

  /// Bytes that were compared and needed no writing.
  std::int64_t kept_bytes() const noexcept;

  std::unique_ptr<File> create(const Path& path) override;
  std::unique_ptr<File> open_for_writing(const Path& path) override;
  void create_directory(const Path& path) override;
  /// Throws Error(unsafe) too, if a file that was there is longer than it should be.
  void rename_no_replace(const Path& from, const Path& to) override;

 private:
  class Resumed;
  using End = std::shared_ptr<std::atomic<std::int64_t>>;

  std::mutex mutex_;
  std::map<Path, End> found_;  // files that were there, and where what was written into them ends
  std::shared_ptr<std::atomic<std::int64_t>> kept_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace remesh
