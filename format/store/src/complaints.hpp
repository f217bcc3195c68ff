#pragma once

#include <optional>
#include <string>
#include <utility>

#include "remesh/core/error.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::native {

/// What goes wrong while one checkpoint is opened, on its way to the caller's Findings.
class Complaints {
 public:
  Complaints(Findings& findings, FileSystem::Path root)
      : findings_(findings), root_(std::move(root)) {}

  Findings& findings() const noexcept { return findings_; }
  const FileSystem::Path& root() const noexcept { return root_; }
  FileSystem::Path path(const std::string& name) const { return root_ / name; }

  /// `why` completes "cannot read '<path of the file>': ".
  void add(const std::string& id, const std::string& file, const std::string& why,
           std::optional<ByteRange> bytes = {}) const;

  /// A finding as it is.
  void add(Finding finding) const { findings_.add(std::move(finding)); }

  /// What `action` returns; nothing if it threw an Error that became a finding about `file`.
  template <typename Action>
  auto attempt(const std::string& file, Action&& action) const
      -> std::optional<decltype(action())> {
    try {
      return action();
    } catch (const Error& error) {
      add(error, file);
      return std::nullopt;
    }
  }

 private:
  void add(const Error& error, const std::string& file) const;

  Findings& findings_;
  FileSystem::Path root_;
};

}  // namespace remesh::native
