#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "finding_text.hpp"
#include "json_parts.hpp"
#include "layers.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/verify/fingerprint.hpp"
#include "remesh/verify/verify.hpp"
#include "report_file.hpp"
#include "reports.hpp"
#include "text.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_words = "# remesh fingerprint";
constexpr std::int64_t most_lock_bytes = std::int64_t{1} << 30;

struct Options {
  std::string path;
  std::string check;
  std::string output;
  std::string from;
  std::string algorithm = "crc64xz";
  ReportOptions reports;
  TalkOptions talk;
  WorkOptions work;
};

/// A checkpoint's tensors and what their bytes digest to.
struct Taken {
  std::unique_ptr<LimitedFileSystem> files;
  std::unique_ptr<Reader> reader;
  DigestKind kind = DigestKind::crc64xz;
  std::vector<std::string> digests;  ///< as a lock file has them

  const std::vector<TensorDesc>& tensors() const { return reader->catalog().tensors; }
};

Taken take(const Options& options, DigestKind kind, Session& session) {
  Machine machine(options.work, session.out, session.stop);
  StrictFindings findings;
  Taken taken;
  taken.files = std::make_unique<LimitedFileSystem>(session.files, read_limit_of(options.work),
                                                    &session.stop);
  taken.reader = open_reader(*taken.files, options.path, options.from, findings);
  taken.kind = kind;
  taken.digests = fingerprint_digests(machine.judge(), *taken.reader, kind);
  return taken;
}

// Renewing a lock file is meant; replacing anything else is not.
void check_replaceable(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return;
  std::ifstream old(path);
  std::string line;
  if (fs::is_regular_file(path, ignored) && std::getline(old, line) &&
      line.starts_with(first_words)) {
    return;
  }
  throw Error(Errc::exists,
              fmt::format("cannot write {}: destination exists, and is no fingerprint", path));
}

void write_file(const std::string& path, const std::string& text) {
  const fs::path parent = fs::path(path).parent_path();
  std::error_code unknown;
  if (!parent.empty() && !fs::is_directory(parent, unknown)) {
    throw Error(Errc::not_found,
                fmt::format("cannot write '{}': there is no directory '{}'; create "
                            "it first",
                            path, parent.string()));
  }
  const std::string temporary = path + ".remesh-new";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code failure;
  if (out) fs::rename(temporary, path, failure);
  if (out && !failure) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  throw Error(Errc::io, fmt::format("cannot write {}: {}", path,
                                    failure ? failure.message() : "the system took no more bytes"));
}

Json tensors_json(const Taken& taken) {
  Json all = Json::array();
  for (std::size_t i = 0; i < taken.digests.size(); ++i) {
    const TensorDesc& tensor = taken.tensors()[i];
    all.push_back({{"name", tensor.name},
                   {"dtype", to_string(tensor.dtype)},
                   {"shape", shape_json(tensor.extent)},
                   {"digest", taken.digests[i]}});
  }
  return all;
}

Json new_fingerprint_document(const Options& options, const Taken& taken) {
  Json document = new_document("fingerprint");
  document["path"] = options.path;
  document["digest_kind"] = to_string(taken.kind);
  document["tensors"] = tensors_json(taken);
  document["checked"] = text_or_null(options.check);
  document["written"] = text_or_null(options.output);
  document["findings"] = Json::array();
  document["not_listed"] = 0;
  document["hint"] = nullptr;
  add_ignored(document, {});
  return document;
}

Judgement judgement_of(const Options& options, const Taken& taken) {
  const Catalog& catalog = taken.reader->catalog();
  Judgement judgement;
  judgement.verb = "fingerprint";
  judgement.title = options.path;
  judgement.sides.push_back({options.path, catalog.format, catalog.layout.mesh(), false, true,
                             bytes_by_layer(catalog.tensors)});
  judgement.groups.push_back({options.path, "", "3"});
  judgement.facts = {{"path", options.path},
                     {"lock file", options.check},
                     {"format", catalog.format},
                     {"mesh", describe(catalog.layout.mesh())},
                     {"tensors", std::to_string(taken.digests.size())}};
  return judgement;
}

// A lock file of another model differs in all of its lines: those of one id beyond these are
// counted alone.
constexpr std::size_t most_listed = 100;

std::vector<Finding> first_of_each(const std::vector<Finding>& findings) {
  std::map<std::string_view, std::size_t> seen;
  std::vector<Finding> listed;
  for (const Finding& finding : findings) {
    if (seen[finding.id]++ < most_listed) listed.push_back(finding);
  }
  return listed;
}

// How much the names have in common, where that is not all of them.
void print_names(const std::vector<Finding>& findings, std::size_t num_lines,
                 const std::string& hint, Output& out) {
  const auto missing =
      static_cast<std::size_t>(std::ranges::count(findings, "RM302", &Finding::id));
  if (missing == 0) return;
  out.line(fmt::format("  {} of the lock file's {} names are in the checkpoint{}",
                       num_lines - missing, num_lines,
                       2 * missing < num_lines ? "" : ": is it the lock file of another model?"));
  if (!hint.empty()) out.line(fmt::format("  hint: {}", escaped(hint)));
}

int check(const Options& options, Session& session) {
  const Reports reports(options.reports, {options.path, options.check}, session);
  const std::string text = read_text(session.files, options.check, most_lock_bytes);
  const auto expected = parse_fingerprint(text, options.check);
  const Taken taken = take(options, digest_kind_of(expected), session);
  Judgement judgement = judgement_of(options, taken);
  judgement.findings = compare_fingerprint(expected, taken.tensors(), taken.digests);
  judgement.seconds = session.seconds();
  reports.settle(judgement);

  Output& out = session.out;
  out.line(fmt::format("{}  {}  {} against {}  {}",
                       judgement.failed ? out.bad("FAIL") : out.good("ok"), escaped(options.path),
                       counted(std::ssize(taken.digests), "tensor"), escaped(options.check),
                       format_seconds(judgement.seconds)));
  print_findings(judgement.findings, out);
  const std::string hint = fingerprint_hint(expected, taken.tensors());
  print_names(judgement.findings, expected.size(), hint, out);
  print_ignored(judgement.ignored, out);
  if (!judgement.findings.empty() || !judgement.ignored.findings.empty()) {
    out.line(count_line(judgement.findings, judgement.ignored));
  }
  reports.write(judgement, out);
  Json document = new_fingerprint_document(options, taken);
  const std::vector<Finding> listed = first_of_each(judgement.findings);
  document["findings"] = json_of(listed);
  document["not_listed"] = judgement.findings.size() - listed.size();
  document["hint"] = text_or_null(hint);
  add_ignored(document, judgement.ignored);
  out.document(document);
  return judgement.failed ? exit_code::no : exit_code::done;
}

int write(const Options& options, Session& session) {
  refuse_report_options(options.reports, "--check");
  if (!options.output.empty()) {
    check_report_path("--output", options.output, std::array{options.path});
    check_replaceable(options.output);
  }
  const Taken taken = take(options, *parse_digest_kind(options.algorithm), session);
  const std::string text = fingerprint_text(taken.tensors(), taken.digests);
  Output& out = session.out;
  if (!options.output.empty()) {
    write_file(options.output, text);
    out.line(options.output);
  } else if (!out.json()) {
    out.raw(text);
  }
  out.document(new_fingerprint_document(options, taken));
  return exit_code::done;
}

int run(const Options& options, Session& session) {
  check_format("--from", options.from);
  return options.check.empty() ? write(options, session) : check(options, session);
}

void add_options(CLI::App& verb, Options& options) {
  verb.add_option("PATH", options.path, "the checkpoint")->required();
  CLI::Option* check =
      verb.add_option("--check", options.check, "compare with this lock file")->type_name("FILE");
  verb.add_option("-o,--output", options.output, "write the lock file here [standard output]")
      ->type_name("FILE")
      ->excludes(check);
  add_report_options(verb, options.reports);
  verb.add_option("--algorithm", options.algorithm,
                  "crc64xz (against accidents) or blake2b (against intent too) [crc64xz; with "
                  "--check: the lock file's]")
      ->check(CLI::IsMember({"crc64xz", "blake2b"}))
      ->excludes(check);
  add_from_option(verb, options.from);
  add_work_options(verb, options.work);
  add_talk_options(verb, options.talk);
}

}  // namespace

CLI::App* add_fingerprint(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(program, "fingerprint",
                            "write or check a lock file of tensor digests, for git and CI",
                            {"remesh fingerprint CKPT", "remesh fingerprint CKPT -o LOCK",
                             "remesh fingerprint HF_DIR --check LOCK"});
  add_options(*verb, *options);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
