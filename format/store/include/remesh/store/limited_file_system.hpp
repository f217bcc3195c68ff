#pragma once

#include <cstdint>
#include <memory>

#include "remesh/core/progress.hpp"
#include "remesh/store/forwarding_file_system.hpp"

namespace remesh {

/// A file system that reads no faster than so many bytes a second, all its files and all threads
/// together: for storage that others use too. All else passes through.
class LimitedFileSystem final : public ForwardingFileSystem {
 public:
  /// `inner` and `stop` must outlive this. A rate of 0 is no limit. A read that waits for its turn
  /// waits no longer once a stop is asked for.
  LimitedFileSystem(FileSystem& inner, std::int64_t bytes_per_second,
                    const StopFlag* stop = nullptr);
  ~LimitedFileSystem() override;

  std::unique_ptr<File> open(const Path& path) const override;

 private:
  class Rate;
  class LimitedFile;

  std::shared_ptr<Rate> rate_;
};

}  // namespace remesh
