#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "finding_text.hpp"
#include "json_parts.hpp"
#include "layers.hpp"
#include "lock_file.hpp"
#include "machine.hpp"
#include "program.hpp"
#include "refusal.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/core/shell_word.hpp"
#include "remesh/store/limited_file_system.hpp"
#include "remesh/verify/fingerprint.hpp"
#include "remesh/verify/verify.hpp"
#include "report_file.hpp"
#include "reports.hpp"
#include "text.hpp"

namespace remesh {
namespace {

struct Options {
  std::string path;
  std::string check;
  std::string output;
  std::string from;
  std::string algorithm;  ///< empty: that of the lock file that is replaced, or crc64xz
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

Taken open(const Options& options, Session& session) {
  StrictFindings findings;
  Taken taken;
  taken.files = std::make_unique<LimitedFileSystem>(session.files, read_limit_of(options.work),
                                                    &session.stop);
  taken.reader = open_reader(*taken.files, options.path, options.from, findings);
  return taken;
}

void take_digests(const Options& options, DigestKind kind, Session& session, Taken& taken) {
  Machine machine(options.work, session.out, session.stop);
  taken.kind = kind;
  taken.digests = fingerprint_digests(machine.judge(), *taken.reader, kind);
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
  document["next_step"] = nullptr;
  add_ignored(document, {});
  return document;
}

/// How a checkpoint compares with a lock file.
struct Checked {
  Taken taken;
  bool refused = false;  ///< by the reader: what was taken has no digests
  std::vector<FingerprintLine> expected;
  Judgement judgement;
  std::string hint;       ///< how names may belong together
  std::string next_step;  ///< what tells more of tensors that differ
};

// Of a checkpoint that could not be read nothing was looked for.
void describe_side(const Options& options, Checked& checked) {
  Side side;
  side.path = options.path;
  side.opened = !checked.refused;
  Judgement& judgement = checked.judgement;
  judgement.verb = "fingerprint";
  judgement.title = options.path;
  judgement.facts = {{"path", options.path}, {"lock file", options.check}};
  if (checked.taken.reader) {
    const Catalog& catalog = checked.taken.reader->catalog();
    side.format = catalog.format;
    side.mesh = catalog.layout.mesh();
    side.layer_bytes = bytes_by_layer(catalog.tensors);
    judgement.facts.emplace_back("format", catalog.format);
    judgement.facts.emplace_back("mesh", describe(catalog.layout.mesh()));
    judgement.facts.emplace_back("tensors", std::to_string(catalog.tensors.size()));
  }
  judgement.sides.push_back(std::move(side));
  judgement.groups.push_back({options.path, "", checked.refused ? "" : "3"});
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

// What says more of the checkpoint: "remesh verify 'my model' --from hf".
std::string verify_command(const Options& options, const std::string& more = {}) {
  return fmt::format("remesh verify {}{}{}", shell_word(options.path), more,
                     options.from.empty() ? "" : " --from " + options.from);
}

// What the reader refuses is the answer, as `verify` has it.
void compare(const Options& options, Session& session, Checked& checked) {
  std::vector<Finding>& findings = checked.judgement.findings;
  try {
    checked.taken = open(options, session);
    take_digests(options, digest_kind_of(checked.expected), session, checked.taken);
  } catch (const Error& error) {
    auto refused = finding_of(error);
    if (!refused) throw;
    if (refused->message.find("`remesh verify ") == std::string::npos) {
      refused->next_step = fmt::format("`{}` lists all that is wrong", verify_command(options));
    }
    findings.push_back(std::move(*refused));
    checked.refused = true;
    return;
  }
  const auto& tensors = checked.taken.tensors();
  findings = compare_fingerprint(checked.expected, tensors, checked.taken.digests);
  checked.hint = fingerprint_hint(checked.expected, tensors);
  if (std::ranges::find(findings, "RM311", &Finding::id) == findings.end()) return;
  checked.next_step = fmt::format(
      "`{}`, with the one of which the lock file was taken, tells whether numbers are merely "
      "rearranged",
      verify_command(options, " --against CHECKPOINT"));
}

void print_checked(const Options& options, const Checked& checked, Output& out) {
  const Judgement& judgement = checked.judgement;
  out.line(fmt::format(
      "{}  {}  {} against {}  {}", judgement.failed ? out.bad("FAIL") : out.good("ok"),
      escaped(options.path),
      checked.refused ? "not readable," : counted(std::ssize(checked.taken.digests), "tensor"),
      escaped(options.check), format_seconds(judgement.seconds)));
  print_findings(judgement.findings, out);
  print_names(judgement.findings, checked.expected.size(), checked.hint, out);
  if (judgement.failed && !checked.next_step.empty()) {
    out.detail(fmt::format("  hint: {}", escaped(checked.next_step)));
  }
  print_ignored(judgement.ignored, out);
  if (!judgement.findings.empty() || !judgement.ignored.findings.empty()) {
    out.line(count_line(judgement.findings, judgement.ignored));
  }
}

Json checked_json(const Options& options, const Checked& checked) {
  Json document = new_fingerprint_document(options, checked.taken);
  const std::vector<Finding> listed = first_of_each(checked.judgement.findings);
  document["findings"] = json_of(listed);
  document["not_listed"] = checked.judgement.findings.size() - listed.size();
  document["hint"] = text_or_null(checked.hint);
  document["next_step"] = text_or_null(checked.next_step);
  add_ignored(document, checked.judgement.ignored);
  return document;
}

int check(const Options& options, Session& session) {
  const Reports reports(options.reports, {options.path, options.check}, session);
  Checked checked;
  checked.expected = read_lock_file(session.files, options.check);
  checked.taken.kind = digest_kind_of(checked.expected);
  compare(options, session, checked);
  describe_side(options, checked);
  checked.judgement.seconds = session.seconds();
  reports.settle(checked.judgement);
  print_checked(options, checked, session.out);
  reports.write(checked.judgement, session.out);
  session.out.document(checked_json(options, checked));
  return checked.judgement.failed ? exit_code::no : exit_code::done;
}

// Whoever renews a lock file means it to stay what it is.
DigestKind kind_to_write(const Options& options,
                         const std::optional<std::vector<FingerprintLine>>& replaced,
                         const Output& out) {
  const auto asked_for = parse_digest_kind(options.algorithm);
  if (!replaced || replaced->empty()) return asked_for.value_or(DigestKind::crc64xz);
  const DigestKind old = digest_kind_of(*replaced);
  if (asked_for && *asked_for != old) {
    out.talk(fmt::format("{}: its digests were {}, and become {}", escaped(options.output),
                         to_string(old), to_string(*asked_for)));
  }
  return asked_for.value_or(old);
}

int write(const Options& options, Session& session) {
  refuse_report_options(options.reports, "--check");
  std::optional<std::vector<FingerprintLine>> replaced;
  if (!options.output.empty()) {
    check_report_path("--output", options.output, std::array{options.path});
    replaced = replaced_lock_file(session.files, options.output);
  }
  Taken taken = open(options, session);
  if (replaced) check_same_model(*replaced, options.output, taken.tensors(), options.path);
  take_digests(options, kind_to_write(options, replaced, session.out), session, taken);
  const std::string text = fingerprint_text(taken.tensors(), taken.digests);
  Output& out = session.out;
  if (!options.output.empty()) {
    write_report(options.output, text);
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
                  "crc64xz (against accidents) or blake2b (against intent too) [that of a "
                  "lock file that is checked or renewed, otherwise crc64xz]")
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
