#pragma once

#include <map>
#include <memory>

#include "remesh/store/forwarding_file_system.hpp"

namespace remesh::native {

/// A file system in which what is created is in memory alone, and only as much of it as was
/// written: for who wants to know what a file would be. All else is passed on to another one, for
/// reading.
class ScratchFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  std::unique_ptr<File> open(const Path& path) const override;
  std::unique_ptr<File> create(const Path& path) override;
  std::unique_ptr<File> open_for_writing(const Path& path) override { return open(path); }
  void remove_all(const Path& path) override { files_.erase(path); }

 private:
  struct Content;
  class ScratchFile;

  std::map<Path, std::shared_ptr<Content>> files_;
};

}  // namespace remesh::native
