#include "complaints.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace remesh::native {
namespace {

struct NextStep {
  std::string_view id;
  std::string_view text;
};

constexpr std::array next_steps{
    NextStep{"RM102", "use the remesh that wrote it, or a newer one"},
    NextStep{"RM103",
             "copy the checkpoint again from where it was written, or let `remesh repair` make a "
             "whole copy of what is left"},
    NextStep{"RM105",
             "wait if a job or a copy still writes to it; otherwise `remesh repair` tells whether "
             "all else is whole, or use the save before it"},
    NextStep{"RM109", "copy all files of one save again"},
    NextStep{"RM202",
             "copy the file again from where it was written, or let `remesh repair` make a whole "
             "copy"},
    NextStep{"RM203",
             "copy the file again from where it was written; `remesh repair` makes a shard again "
             "where other ranks store copies of what was in it"},
    NextStep{"RM208", "`remesh repair` makes a copy without it"},
    NextStep{"RM604", "put the file itself in its place"},
};

// Nothing where it depends on more than what was found.
std::string next_step_of(std::string_view id) {
  const auto* const next = std::ranges::find(next_steps, id, &NextStep::id);
  return next == next_steps.end() ? std::string() : std::string(next->text);
}

std::string id_of(const Error& error) {
  if (!error.id().empty()) return error.id();
  return error.code() == Errc::not_found ? "RM203" : "RM703";
}

}  // namespace

void Complaints::add(const std::string& id, const std::string& file, const std::string& why,
                     std::optional<ByteRange> bytes) const {
  Finding finding;
  finding.id = id;
  finding.message = fmt::format("cannot read '{}': {}", path(file).string(), why);
  finding.file = file;
  finding.bytes = bytes;
  finding.next_step = next_step_of(id);
  add(std::move(finding));
}

// What the file system throws names the path already; what a parser throws does not.
void Complaints::add(const Error& error, const std::string& file) const {
  const std::string_view why = error.what();
  if (!why.starts_with("cannot ")) return add(id_of(error), file, std::string(why));
  Finding finding;
  finding.id = id_of(error);
  finding.message = why;
  finding.file = file;
  finding.next_step = next_step_of(finding.id);
  add(std::move(finding));
}

}  // namespace remesh::native
