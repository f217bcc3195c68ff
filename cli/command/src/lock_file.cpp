#include "lock_file.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_words = "# remesh fingerprint";
constexpr std::int64_t most_lock_bytes = std::int64_t{1} << 30;

// Of what is none no more is read: a foreign file may be of any size.
bool begins_as_lock_file(const FileSystem& files, const std::string& path) {
  const std::unique_ptr<File> file = files.open(path);
  std::string begin(first_words.size(), '\0');
  if (file->size_bytes() < std::ssize(begin)) return false;
  file->read_at(0, std::as_writable_bytes(std::span(begin)));
  return begin == first_words;
}

bool has_shape(const Box& extent, std::span<const Index> shape) {
  if (extent.ndim() != std::ssize(shape)) return false;
  for (int dim = 0; dim < extent.ndim(); ++dim) {
    if (extent[dim].size() != shape[static_cast<std::size_t>(dim)]) return false;
  }
  return true;
}

}  // namespace

std::vector<FingerprintLine> read_lock_file(const FileSystem& files, const std::string& path) {
  const bool is_one = begins_as_lock_file(files, path);
  return parse_fingerprint(is_one ? read_text(files, path, most_lock_bytes) : "", path);
}

std::optional<std::vector<FingerprintLine>> replaced_lock_file(const FileSystem& files,
                                                               const std::string& path) {
  std::error_code unknown;
  const fs::file_status there = fs::symlink_status(path, unknown);
  if (!fs::exists(there)) return std::nullopt;
  if (!fs::is_regular_file(there) || !begins_as_lock_file(files, path)) {
    throw Error(Errc::exists,
                fmt::format("cannot write {}: destination exists, and is no fingerprint", path));
  }
  try {
    return read_lock_file(files, path);
  } catch (const Error& error) {
    if (error.code() == Errc::io) throw;
    throw Error(Errc::exists,
                fmt::format("cannot renew {}: a lock file lies there that cannot be read, so "
                            "nobody can tell of which model it is; remove it first ({})",
                            path, error.what()));
  }
}

void check_same_model(std::span<const FingerprintLine> replaced, const std::string& path,
                      std::span<const TensorDesc> tensors, const std::string& checkpoint) {
  std::unordered_map<std::string_view, const Box*> extents;
  for (const TensorDesc& tensor : tensors) extents.emplace(tensor.name, &tensor.extent);
  const auto is_there = [&](const FingerprintLine& line) {
    const auto found = extents.find(line.name);
    return found != extents.end() && has_shape(*found->second, line.shape);
  };
  const std::int64_t shared = std::ranges::count_if(replaced, is_there);
  if (2 * shared >= std::ssize(replaced)) return;
  const auto other = std::ranges::find_if_not(replaced, is_there);
  throw Error(
      Errc::exists,
      fmt::format("cannot renew {}: it is the lock file of another model: it lists {}, of "
                  "which {} has {} by name and shape ('{}' is not among them), but at "
                  "least half should be there; remove it first, or name another place",
                  path, counted(std::ssize(replaced), "tensor"), checkpoint, shared, other->name));
}

}  // namespace remesh
