#include "leftovers.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "remesh/core/budget.hpp"
#include "remesh/store/staging.hpp"
#include "text.hpp"

namespace remesh {
namespace {

// "3 files, 1.2 MiB".
std::string extent_of(const FileSystem& files, const FileSystem::Path& directory) {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  for (const Entry& entry : files.list(directory)) {
    if (entry.kind != EntryKind::regular) continue;
    ++count;
    bytes += entry.size_bytes;
  }
  return fmt::format("{}, {}", counted(count, "file"), format_bytes(bytes));
}

}  // namespace

void settle_leftovers(const JobPlace& place, bool discard, Session& session) {
  Output& out = session.out;
  if (discard) {
    for (const auto& path :
         discard_left_by_other_jobs(session.files, place.destination, place.job_id)) {
      out.detail(fmt::format("{}  '{}' of another job with the same destination was removed",
                             out.warned("note"), escaped(path.string())));
    }
  }
  for (const auto& path : left_by_other_jobs(session.files, place.destination, place.job_id)) {
    const std::string name = escaped(path.string());
    const std::string next =
        discard ? std::string("it still runs")
                : fmt::format(
                      "if that does not run any more, repeat its command with `--resume`, "
                      "or remove it: `rm -r '{}'`, or `--discard` in a command with this "
                      "destination",
                      name);
    out.detail(fmt::format("{}  '{}' is of another job with the same destination: {}",
                           out.warned("note"), name, next));
  }
}

void tell_what_is_left(const JobPlace& place, Session& session) {
  const FileSystem::Path directory = staging_directory(place.destination, place.job_id);
  if (session.files.look(directory)) {
    session.out.warn(
        fmt::format("remesh: note: '{}' keeps what was done so far ({}): repeat the command to go "
                    "on, with `--resume`, or with `--discard` to remove that and start anew",
                    escaped(directory.string()), extent_of(session.files, directory)));
  } else if (session.stop.signal() != 0 && !session.files.look(place.destination)) {
    session.out.warn(
        "remesh: note: nothing was left behind; a job that was begun with `--resume` keeps what it "
        "has when it is stopped");
  }
}

}  // namespace remesh
