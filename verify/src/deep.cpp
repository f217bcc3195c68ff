#include "deep.hpp"

#include <iterator>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/hdf5_view.hpp"

namespace remesh::detail {
namespace {

// What the machine refuses, or a person, is no answer about the file.
bool is_answer(const Error& error) {
  return error.code() == Errc::corrupt || error.code() == Errc::unsafe;
}

void check_view(const Hdf5Viewer& viewer, const Reader& reader, std::uint32_t file,
                Findings& findings) {
  const std::string& name = reader.extents().files()[file].name;
  try {
    Hdf5ViewCheck check(reader, file, findings);
    viewer(name, [&check](std::string_view text) { check.feed(text); });
    check.finish();
  } catch (const Error& error) {
    if (!is_answer(error)) throw;
    Finding finding;
    finding.id = error.id().empty() ? "RM211" : error.id();
    finding.file = name;
    finding.message = fmt::format("'{}': {}", name, error.what());
    finding.next_step =
        "do not open this file with other programs; write the checkpoint again with remesh from a "
        "source that you trust";
    findings.add(std::move(finding));
  }
}

}  // namespace

std::int64_t check_hdf5_views(const JudgeContext& context, const Hdf5Viewer& viewer,
                              const Reader& reader, std::vector<Finding>& findings) {
  const std::vector<std::uint32_t> files = files_with_hdf5_view(reader);
  const auto size_of = [&](std::size_t at) {
    return reader.extents().files()[files[at]].size_bytes;
  };
  std::int64_t bytes = 0;
  for (std::size_t at = 0; at < files.size(); ++at) bytes += size_of(at);
  std::mutex mutex;
  context.progress.begin("viewing", bytes);
  context.pool.run(files.size(), [&](std::size_t at, int) {
    context.stop.check();
    CollectedFindings collected;
    check_view(viewer, reader, files[at], collected);
    context.progress.advance(size_of(at));
    const std::lock_guard lock(mutex);
    std::ranges::move(collected.all, std::back_inserter(findings));
  });
  context.progress.end();
  return std::ssize(files);
}

}  // namespace remesh::detail
