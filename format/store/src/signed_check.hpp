#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/store/file_tree.hpp"
#include "remesh/store/signed_checkpoint.hpp"

namespace remesh::native {

/// A text that lists files with their tree hashes, and its signature.
struct SignedList {
  std::string name;            ///< of the file that holds the text, as findings have it
  FileSystem::Path path;       ///< where it lies
  FileSystem::Path signature;  ///< where its signature does
  std::string checkpoint;      ///< what is checked, for messages
  std::string what;            ///< "manifest"
  std::int64_t most_bytes = 0;
};

/// A file that such a text lists.
struct SignedFile {
  std::string name;
  FileSystem::Path path;
  std::int64_t size_bytes = 0;
  TreeHash tree;
};

/// Checks a signed list and the files that it names.
class SignedChecking {
 public:
  /// What a text says of files; nothing if it has no tree hashes of them. May throw as parsers do.
  using Parse = std::function<std::optional<std::vector<SignedFile>>(std::string text)>;

  SignedChecking(const FileSystem& files, SignedList list, ThreadPool& pool, Progress& progress,
                 const StopFlag& stop);

  /// Not a byte of the text is parsed before its signature fits.
  SignedCheck run(const PublicKey& key, SignedPart part, const Parse& parse);

 private:
  std::optional<std::vector<SignedFile>> read_list(const PublicKey& key, const Parse& parse);
  void check_files(const std::vector<SignedFile>& listed);
  void check_file(const SignedFile& file);
  void add(const std::string& id, const std::string& file, std::string message);
  void add(const Error& error, const std::string& file);

  // What `action` returns; nothing if it threw what says something of the checkpoint.
  template <typename Action>
  auto attempt(const std::string& file, Action&& action) -> std::optional<decltype(action())> {
    try {
      return action();
    } catch (const Error& error) {
      const Errc code = error.code();
      if (code != Errc::unsafe && code != Errc::corrupt && code != Errc::not_found &&
          code != Errc::unsupported) {
        throw;
      }
      add(error, file);
      return std::nullopt;
    }
  }

  const FileSystem& files_;
  const SignedList list_;
  ThreadPool& pool_;
  Progress& progress_;
  const StopFlag& stop_;
  SignedCheck result_;
};

}  // namespace remesh::native
