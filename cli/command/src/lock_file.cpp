#include "lock_file.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_words = "# remesh fingerprint";
constexpr std::int64_t most_lock_bytes = std::int64_t{1} << 30;

}  // namespace

std::vector<FingerprintLine> read_lock_file(const FileSystem& files, const std::string& path) {
  return parse_fingerprint(read_text(files, path, most_lock_bytes), path);
}

std::optional<std::vector<FingerprintLine>> replaced_lock_file(const FileSystem& files,
                                                               const std::string& path) {
  std::error_code unknown;
  const fs::file_status there = fs::symlink_status(path, unknown);
  if (!fs::exists(there)) return std::nullopt;
  const std::string text =
      fs::is_regular_file(there) ? read_text(files, path, most_lock_bytes) : "";
  if (!text.starts_with(first_words)) {
    throw Error(Errc::exists,
                fmt::format("cannot write {}: destination exists, and is no fingerprint", path));
  }
  try {
    return parse_fingerprint(text, path);
  } catch (const Error& error) {
    throw Error(Errc::exists,
                fmt::format("cannot renew {}: a lock file lies there that cannot be read, so "
                            "nobody can tell of which model it is; remove it first ({})",
                            path, error.what()));
  }
}

void check_same_model(std::span<const FingerprintLine> replaced, const std::string& path,
                      std::span<const TensorDesc> tensors, const std::string& checkpoint) {
  if (replaced.empty()) return;
  std::unordered_set<std::string_view> names;
  for (const TensorDesc& tensor : tensors) names.insert(tensor.name);
  const auto is_there = [&](const FingerprintLine& line) { return names.contains(line.name); };
  if (std::ranges::any_of(replaced, is_there)) return;
  const std::string ours =
      tensors.empty() ? "no tensor" : fmt::format("'{}', ...", tensors.front().name);
  throw Error(Errc::exists,
              fmt::format("cannot renew {}: it is the lock file of another model: it lists {} "
                          "('{}', ...), but {} has none of these names ({}); remove it first, or "
                          "name another place",
                          path, counted(std::ssize(replaced), "tensor"), replaced.front().name,
                          checkpoint, ours));
}

}  // namespace remesh
