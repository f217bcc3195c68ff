#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "finding_text.hpp"
#include "json_parts.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/seal.hpp"
#include "report_file.hpp"
#include "signing_keys.hpp"
#include "text.hpp"
#include "unchanged.hpp"
#include "whole_path.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string path;
  std::string output;
  std::string sign;
  std::string from;
  TalkOptions talk;
  WorkOptions work;
};

/// A seal that was written.
struct Sealed {
  std::string path;
  std::string signature;  ///< empty where it is not signed
  std::string format;
  std::int64_t tensors = 0;
  std::int64_t files = 0;
  std::int64_t bytes = 0;  ///< of the files
  std::int64_t seal_bytes = 0;
  bool directory_synced = false;
};

// A file of another name would be one of the checkpoint's from then on, which the seal does not
// know.
void check_name(const Options& options, const FileSystem::Path& destination) {
  if (is_seal_name(destination.filename().string())) return;
  std::error_code ignored;
  if (!fs::is_directory(options.path, ignored)) return;
  if (whole_path(destination).parent_path() != whole_path(options.path)) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot write the seal to '{}': beside the files that it is of, its name "
                          "must end in '{}'",
                          destination.string(), seal_name));
}

void check_free(const FileSystem& files, const FileSystem::Path& destination) {
  if (!files.look(destination)) return;
  throw Error(Errc::exists, fmt::format("cannot write '{}': destination exists; remesh never "
                                        "replaces a seal: `remesh verify` checks it, remove it to "
                                        "seal anew",
                                        destination.string()));
}

std::string signature_path(const FileSystem::Path& destination) {
  return fmt::format("{}{}", destination.string(), seal_signature_ending);
}

std::vector<FileSystem::Path> paths_of(const OpenCheckpoint& checkpoint) {
  std::vector<FileSystem::Path> paths = checkpoint.paths;
  paths.insert(paths.end(), checkpoint.side_paths.begin(), checkpoint.side_paths.end());
  for (const OpenCheckpoint::OtherFile& other : checkpoint.others) paths.push_back(other.path);
  return paths;
}

std::string identities_of(const FileSystem& files, const std::vector<FileSystem::Path>& paths) {
  std::string all;
  for (const FileSystem::Path& path : paths) all += identity_line(files, path.string(), path);
  return all;
}

Sealed seal(const Options& options, Session& session, Findings& findings) {
  LimitedFileSystem files(session.files, read_limit_of(options.work), &session.stop);
  OpenCheckpoint checkpoint = open_to_seal(files, options.path, options.from, findings);
  const FileSystem::Path destination =
      options.output.empty() ? seal_place(files, options.path) : FileSystem::Path(options.output);
  check_name(options, destination);
  check_has_directory(fmt::format("'{}'", destination.string()), destination.string());
  check_free(files, destination);
  if (!options.sign.empty()) check_free(files, signature_path(destination));
  const auto key = signing_key(session.files, options.sign, session.stop);

  const std::vector<FileSystem::Path> paths = paths_of(checkpoint);
  const std::string before = identities_of(session.files, paths);
  Machine machine(options.work, session.out, session.stop);
  const JudgeContext context = machine.judge();
  const Seal made = make_seal({context.pool, context.budget, context.progress, context.stop}, files,
                              std::move(checkpoint), key != nullptr);
  check_unchanged(before, identities_of(session.files, paths), "no seal was written");
  const std::string text = seal_text(made);
  const std::string signature = key ? sign_seal(text, *key) : std::string();
  Sealed sealed;
  sealed.directory_synced = write_seal(session.files, destination, text, signature);
  sealed.path = destination.string();
  if (key) sealed.signature = signature_path(destination);
  sealed.format = made.format;
  sealed.tensors = std::ssize(made.tensors);
  sealed.files = std::ssize(made.extents.files());
  for (const auto& file : made.extents.files()) sealed.bytes += file.size_bytes;
  sealed.seal_bytes = std::ssize(text);
  return sealed;
}

void print_sealed(const Options& options, const Sealed& sealed, double seconds, Output& out) {
  out.detail(fmt::format("{}  {}  ({}, {}, {}, {} read)  {}  {} of seal{}", out.good("ok"),
                         escaped(options.path), sealed.format, counted(sealed.tensors, "tensor"),
                         counted(sealed.files, "file"), format_bytes(sealed.bytes),
                         format_seconds(seconds), format_bytes(sealed.seal_bytes),
                         sealed.signature.empty() ? "" : ", signed"));
  if (!sealed.directory_synced) {
    out.detail(
        fmt::format("{} RM703  this file system cannot sync a directory: the seal is on the "
                    "medium, its name will be soon",
                    out.warned("note")));
  }
  out.line(sealed.path);
}

Json sealed_json(const Options& options, const Sealed& sealed, std::span<const Finding> findings,
                 double seconds) {
  Json document = new_document("seal");
  document["source"] = options.path;
  document["format"] = sealed.format;
  document["tensors"] = sealed.tensors;
  document["files"] = sealed.files;
  document["bytes"] = sealed.bytes;
  document["seal_bytes"] = sealed.seal_bytes;
  document["seconds"] = seconds;
  document["directory_synced"] = sealed.directory_synced;
  document["findings"] = json_of(findings);
  document["signature"] = text_or_null(sealed.signature);
  document["path"] = sealed.path;
  return document;
}

int run(const Options& options, Session& session) {
  check_format("--from", options.from);
  StrictFindings findings;
  const Sealed sealed = seal(options, session, findings);
  if (!session.out.quiet()) print_findings(findings.rest(), session.out);
  print_sealed(options, sealed, session.seconds(), session.out);
  session.out.document(sealed_json(options, sealed, findings.rest(), session.seconds()));
  return exit_code::done;
}

void add_options(CLI::App& verb, Options& options) {
  verb.add_option("PATH", options.path, "the checkpoint; its files are only read")->required();
  verb.add_option("-o,--output", options.output,
                  "write the seal here; must not exist [remesh-seal.json in PATH]")
      ->type_name("FILE");
  verb.add_option("--sign", options.sign,
                  "sign the seal with this minisign secret key; every file is read once more")
      ->type_name("SECRET_KEY");
  add_from_option(verb, options.from);
  add_work_options(verb, options.work);
  add_talk_options(verb, options.talk);
}

}  // namespace

CLI::App* add_seal(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(
      program, "seal",
      "write the digests of a foreign checkpoint beside it, so that a flipped bit is found",
      {"remesh seal HF_DIR", "remesh seal HF_DIR -o OUT --sign KEY --json"});
  add_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
