#include "signed_check.hpp"

#include <memory>
#include <span>

#include <fmt/format.h>

#include "remesh/core/checked.hpp"
#include "remesh/json/events.hpp"
#include "remesh/store/signature.hpp"
#include "watched_file.hpp"

namespace remesh::native {

SignedChecking::SignedChecking(const FileSystem& files, SignedList list, ThreadPool& pool,
                               Progress& progress, const StopFlag& stop)
    : files_(files), list_(std::move(list)), pool_(pool), progress_(progress), stop_(stop) {
  result_.what = list_.what;
}

SignedCheck SignedChecking::run(const PublicKey& key, SignedPart part, const Parse& parse) {
  const auto listed = read_list(key, parse);
  if (listed && part == SignedPart::all) check_files(*listed);
  return std::move(result_);
}

void SignedChecking::add(const std::string& id, const std::string& file, std::string message) {
  Finding finding;
  finding.id = id;
  finding.file = file;
  finding.message = std::move(message);
  result_.findings.push_back(std::move(finding));
}

// What the file system throws names the path already; what a parser throws does not.
void SignedChecking::add(const Error& error, const std::string& file) {
  const std::string_view why = error.what();
  std::string id = error.id();
  if (id.empty()) id = error.code() == Errc::not_found ? "RM203" : "RM104";
  add(id, file,
      why.starts_with("cannot ")
          ? std::string(why)
          : fmt::format("cannot check the signature of '{}': {}", list_.checkpoint, why));
}

std::optional<std::vector<SignedFile>> SignedChecking::read_list(const PublicKey& key,
                                                                 const Parse& parse) {
  auto text = attempt(list_.name, [&] {
    return read_text(files_, list_.path, list_.most_bytes, json_padding_bytes);
  });
  if (!text) return std::nullopt;
  auto comment = attempt(list_.signature.filename().string(), [&] {
    return check_signature(std::as_bytes(std::span(*text)), read_signature(files_, list_.signature),
                           key);
  });
  if (!comment) return std::nullopt;
  auto listed = attempt(list_.name, [&] { return parse(std::move(*text)); });
  if (!listed) return std::nullopt;
  if (!*listed) {
    add("RM611", list_.name,
        fmt::format("cannot check the signature of '{}': its {} is signed, but has no hashes of "
                    "the files, so these are not signed",
                    list_.checkpoint, list_.what));
    return std::nullopt;
  }
  result_.manifest_fits = true;
  result_.trusted_comment = std::move(*comment);
  result_.files = std::ssize(**listed);
  return std::move(*listed);
}

void SignedChecking::check_files(const std::vector<SignedFile>& listed) {
  std::int64_t bytes = 0;
  for (const SignedFile& file : listed) bytes = checked_add(bytes, file.size_bytes).value_or(bytes);
  progress_.begin("checking the signature", bytes);
  for (const SignedFile& file : listed) check_file(file);
  progress_.end();
}

void SignedChecking::check_file(const SignedFile& file) {
  const auto found = attempt(file.name, [&] {
    return tree_of(WatchedFile(files_.open(file.path), progress_, stop_), pool_);
  });
  if (!found) return;
  if (*found == file.tree) {
    ++result_.files_checked;
    return;
  }
  add("RM104", file.name,
      fmt::format("'{}' is not the file that was signed: its tree hash is {}, but the signed "
                  "{} records {}; it was changed after it was signed",
                  file.path.string(), to_string(*found), list_.what, to_string(file.tree)));
  result_.findings.back().found = to_string(*found);
  result_.findings.back().expected = to_string(file.tree);
}

}  // namespace remesh::native
