#include "unchanged.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {

std::string identity_line(const FileSystem& files, std::string_view name,
                          const FileSystem::Path& path) {
  const auto entry = files.look(path);
  return fmt::format("source {:?}: {}\n", name,
                     entry ? fmt::format("{} bytes, changed {}, inode {}", entry->size_bytes,
                                         entry->changed_ns, entry->inode)
                           : "nothing");
}

void check_unchanged(const std::string& before, const std::string& after, std::string_view undone) {
  if (before == after) return;
  const auto differ = std::ranges::mismatch(before, after);
  const auto line = [&](const std::string& text, std::string::const_iterator at) {
    const auto position = static_cast<std::size_t>(at - text.begin());
    const std::size_t begin = position == 0 ? 0 : text.rfind('\n', position - 1) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  throw Error(Errc::unsafe,
              fmt::format("the source changed while it was read, so {}: it was {:?}, and is {:?}; "
                          "run the command again when nobody writes to it",
                          undone, line(before, differ.in1), line(after, differ.in2)));
}

}  // namespace remesh
