#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <hdf5.h>
#include <span>
#include <utility>
#include <vector>

#include "hdf5.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/file_system.hpp"

/// @file
/// An HDF5 file driver that leaves all to a Medium: what libhdf5 does to a file then passes through
/// code of ours, and the errors of that code come back whole.

namespace remesh::h5 {

/// Metadata is HDF5's own; raw bytes are the content of datasets.
enum class Content { metadata, raw };

/// What lies below libhdf5. All offsets count from the start of the file, user block included.
/// What a member throws does not reach libhdf5, but Driver::rethrow_failure().
class Medium {
 public:
  virtual ~Medium() = default;

  /// Precondition: the bytes lie below the highest end of a write or of grow().
  virtual void read(std::int64_t offset, std::span<std::byte> into) = 0;
  virtual void write(Content content, std::int64_t offset, std::span<const std::byte> from) = 0;
  /// The file is to have so many bytes, which is more than were written.
  virtual void grow(std::int64_t size_bytes) = 0;
  /// Where `bytes` new ones go. `end` is where the space in use ends so far: what libhdf5 takes
  /// where nobody tells it otherwise.
  virtual std::int64_t place(Content /*content*/, std::int64_t end, std::int64_t /*bytes*/) {
    return end;
  }
};

/// A medium that is a file, with space given out as libhdf5 itself does.
class FileMedium final : public Medium {
 public:
  explicit FileMedium(remesh::File& file) : file_(file) {}

  void read(std::int64_t offset, std::span<std::byte> into) override;
  void write(Content content, std::int64_t offset, std::span<const std::byte> from) override;
  void grow(std::int64_t size_bytes) override;

 private:
  remesh::File& file_;
};

/// A medium whose space was given out before libhdf5 is asked: its metadata goes one behind the
/// other into a part of a file, raw bytes where they are already, and those are not written.
class PlannedMedium final : public Medium {
 public:
  /// `metadata`: the part of the file that is for metadata.
  PlannedMedium(remesh::File& file, ByteRange metadata)
      : file_(file), metadata_(metadata), metadata_end_(metadata.begin) {}

  /// To find out how much metadata there is: it may have all that lies behind `metadata_begin`, and
  /// raw bytes are said to lie far away, wherever they are expected.
  static PlannedMedium trial(remesh::File& file, std::int64_t metadata_begin);

  /// The raw bytes that libhdf5 is to ask for next, once, and may then write. If it does anything
  /// else, this medium throws Error(internal).
  void expect(ByteRange raw) noexcept;

  std::int64_t metadata_end() const noexcept { return metadata_end_; }

  void read(std::int64_t offset, std::span<std::byte> into) override;
  void write(Content content, std::int64_t offset, std::span<const std::byte> from) override;
  void grow(std::int64_t size_bytes) override;
  std::int64_t place(Content content, std::int64_t end, std::int64_t bytes) override;

 private:
  std::int64_t place_metadata(std::int64_t bytes);
  void check_expected(const char* what, ByteRange raw) const;

  remesh::File& file_;
  ByteRange metadata_;
  std::int64_t metadata_end_;
  ByteRange expected_{};
  bool asked_for_ = true;
  std::int64_t far_end_ = 0;  // of the raw bytes of a trial; 0: this is none
};

/// One file that libhdf5 creates on a medium. It looks empty to libhdf5, whatever is in it.
///
/// libhdf5 1.10 does not give up its identifiers, nor the memory behind them, where a write fails
/// while a file is closed. So it is never told of a failed write or growth: from the first one on
/// what it writes is kept in memory, and the medium is left alone. Ask for the failure between
/// calls of libhdf5, and at the end.
class Driver {
 public:
  explicit Driver(Medium& medium) : medium_(medium) {}
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Makes the files that are created with this list lie on the medium. The driver must outlive
  /// them.
  void use_in(const Properties& access);

  /// Throws what the medium threw first; returns if it threw nothing.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// What HDF5's calls become. False: libhdf5 must be told that it failed.
  bool read(haddr_t offset, std::span<std::byte> into) noexcept;
  bool write(Content content, haddr_t offset, std::span<const std::byte> from) noexcept;
  bool truncate() noexcept;
  haddr_t allocate(Content content, hsize_t bytes) noexcept;

  haddr_t end_of_space() const noexcept { return end_of_space_; }
  void set_end_of_space(haddr_t end) noexcept { end_of_space_ = end; }
  haddr_t end_of_file() const noexcept { return end_of_file_; }

 private:
  // Calls `step` unless the medium has failed; keeps what it throws.
  template <typename Step>
  void attempt(const Step& step) noexcept;
  void read_kept(haddr_t offset, std::span<std::byte> into) const noexcept;

  struct Kept {
    haddr_t offset;
    std::vector<std::byte> bytes;
  };

  Medium& medium_;
  haddr_t end_of_space_ = 0;
  haddr_t end_of_file_ = 0;    // as libhdf5 sees it
  haddr_t end_of_medium_ = 0;  // what lies behind is not on the medium
  std::exception_ptr failure_;
  std::vector<Kept> kept_;  // what was written since the failure, in order
};

}  // namespace remesh::h5
