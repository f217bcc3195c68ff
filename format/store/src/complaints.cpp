#include "complaints.hpp"

#include <string_view>

#include <fmt/format.h>

namespace remesh::native {
namespace {

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
  add(std::move(finding));
}

}  // namespace remesh::native
