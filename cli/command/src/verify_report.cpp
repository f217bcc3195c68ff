#include "verify_report.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "finding_text.hpp"
#include "remesh/core/budget.hpp"
#include "text.hpp"

namespace remesh {
namespace {

std::string mesh_text(const Side& side) {
  return side.mesh ? describe(*side.mesh) : "mesh unknown";
}

// Of the gravest findings the one that is most likely the cause.
std::string first_id(const Report& report) {
  const auto& findings = report.findings;
  return std::ranges::min_element(findings, {},
                                  [](const Finding& finding) {
                                    return std::pair(-static_cast<int>(finding.severity),
                                                     finding.id);
                                  })
      ->id;
}

std::string head_line(const Verdict& verdict, const Output& out) {
  const Report& report = verdict.report;
  const std::string& format = verdict.side.format;
  return fmt::format("{}  {}  ({}, {}, {}, {} read)  {}",
                     verdict.failed ? out.bad("FAIL") : out.good("ok"), escaped(verdict.side.path),
                     format.empty() ? "not readable" : format, counted(report.tensors, "tensor"),
                     counted(report.files, "file"), format_bytes(report.bytes_read),
                     format_seconds(verdict.seconds));
}

std::string part_text(const Subset& subset) {
  return fmt::format("part {} of {}", subset.number, subset.count);
}

std::string basis_of_part(const Report& report) {
  return fmt::format("{} was read{}; digests of tensors were not proved: that needs every byte{}",
                     part_text(*report.subset),
                     report.bytes_unprotected == 0 ? ", and is as recorded" : "",
                     report.level == Level::deep ? ", and so do their numbers" : "");
}

// Where every byte was read.
std::string_view basis_of_bytes(const Verdict& verdict) {
  const Report& report = verdict.report;
  const bool is_deep = report.level == Level::deep;
  const bool is_compared = verdict.against || verdict.previous;
  if (verdict.side.sealed && !verdict.against) {
    return "digests were recomputed from every byte, and are those of the seal";
  }
  if (report.bytes_unprotected > 0 && !is_compared) {
    return is_deep
               ? "every byte was read, and numbers were judged; no digest is recorded with which "
                 "bytes could be compared"
               : "every byte was read, but no digest is recorded with which it could be compared";
  }
  if (report.views > 0) {
    return "digests were recomputed from every byte, numbers were judged, and libhdf5 sees what "
           "the indexes say";
  }
  return is_deep ? "digests were recomputed from every byte, and numbers were judged"
                 : "digests were recomputed from every byte";
}

// What the word "ok" rests on, where all was looked at that the level looks at.
std::string_view basis_of_whole(const Verdict& verdict) {
  const Report& report = verdict.report;
  if (report.recomputed) return basis_of_bytes(verdict);
  if (report.level >= Level::full) return "digests could not be recomputed";
  if (report.bytes_unprotected > 0) {
    return verdict.against
               ? "digests were recomputed where none is recorded, and compared with recorded ones; "
                 "`--level full` recomputes all"
               : "no digest is recorded, and no payload was read: files, names and sizes were "
                 "checked alone; `--level full` reads every byte";
  }
  if (report.level == Level::quick && report.bytes_read > 0) {
    return "recorded digests were compared, some blocks of every file were read; `--level full` "
           "reads every byte";
  }
  return "recorded digests were compared, no payload was read; `--level full` reads every byte";
}

std::string basis(const Verdict& verdict) {
  if (verdict.report.subset) return basis_of_part(verdict.report);
  return std::string(basis_of_whole(verdict));
}

void print_equality(const Verdict& verdict, Output& out) {
  if (!verdict.against) return;
  const Report& report = verdict.report;
  const std::int64_t different = report.compared - report.equal;
  out.line(fmt::format("  {} of {} equal to {}{}", report.equal, counted(report.compared, "tensor"),
                       escaped(verdict.against->path),
                       different == 0 ? "" : fmt::format(", {} different", different)));
}

std::string step_text(const std::optional<std::int64_t>& step) {
  return step ? std::to_string(*step) : "unknown";
}

void print_since(const Verdict& verdict, Output& out) {
  if (!verdict.previous || !verdict.report.since) return;
  const Since& since = *verdict.report.since;
  out.line(fmt::format("  since {} (step {} -> {}): {} of {} changed",
                       escaped(verdict.previous->path), step_text(since.previous_step),
                       step_text(since.step), since.changed, counted(since.compared, "tensor")));
}

void print_unprotected(const Verdict& verdict, Output& out) {
  // Against another checkpoint every value is compared, whatever is recorded.
  if (verdict.report.bytes_unprotected == 0 || verdict.against) return;
  out.line(
      fmt::format("  not protected: {} have no recorded digest, so a changed value would not be "
                  "noticed; `--against OTHER` or `remesh fingerprint --check` would",
                  format_bytes(verdict.report.bytes_unprotected)));
}

void print_signature(const Verdict& verdict, Output& out) {
  if (!verdict.signature) return;
  const auto& [key_id, what, files, checked] = *verdict.signature;
  const std::string who = fmt::format("  signed by {}: {}", key_id, what);
  if (verdict.report.level < Level::full || verdict.report.subset) {
    out.line(
        fmt::format("{}; files were not compared with the signature, `--level full` does", who));
  } else if (checked == files) {
    out.line(fmt::format("{} and {}", who, counted(files, "file")));
  } else {
    out.line(fmt::format("{} and {} of {}", who, checked, counted(files, "file")));
  }
}

void print_count(const Verdict& verdict, Output& out) {
  const Report& report = verdict.report;
  if (report.findings.empty() && verdict.ignored.findings.empty()) return;
  const std::string counts = count_line(report.findings, verdict.ignored);
  if (report.findings.empty()) {
    out.line(fmt::format("{}.", counts));
  } else {
    out.line(fmt::format("{}.  `remesh explain {}` says more", counts, first_id(report)));
  }
}

Json signature_json(const std::optional<Signature>& signature) {
  if (!signature) return nullptr;
  return {{"key_id", signature->key_id}, {"files_checked", signature->files_checked}};
}

Json subset_json(const std::optional<Subset>& subset) {
  if (!subset) return nullptr;
  return {{"number", subset->number}, {"count", subset->count}};
}

Json side_json(const Side& side) {
  return {{"path", side.path},
          {"format", text_or_null(side.format)},
          {"sealed", side.sealed},
          {"mesh", side.mesh ? json_of(*side.mesh) : Json(nullptr)}};
}

Json number_or_null(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json previous_json(const Verdict& verdict) {
  if (!verdict.previous) return nullptr;
  Json previous = side_json(*verdict.previous);
  const Since since = verdict.report.since.value_or(Since{});
  previous["step"] = number_or_null(since.previous_step);
  previous["step_now"] = number_or_null(since.step);
  previous["compared"] = since.compared;
  previous["changed"] = since.changed;
  return previous;
}

// Of what could not be opened nothing was looked for.
std::vector<CheckGroup> groups_of(const Verdict& verdict) {
  const auto families = [&](const Side& side) {
    return side.opened ? families_of(verdict.report) : std::string();
  };
  if (!verdict.against) return {{verdict.side.path, "", families(verdict.side)}};
  std::string compared = verdict.report.level >= Level::full ? "35" : "3";
  if (!verdict.side.opened || !verdict.against->opened) compared.clear();
  return {{"left: " + verdict.side.path, "left", families(verdict.side)},
          {"right: " + verdict.against->path, "right", families(*verdict.against)},
          {"left against right", "", compared}};
}

void add_side_facts(const Side& side, const std::string& prefix, Judgement& judgement) {
  judgement.facts.emplace_back(prefix + "path", side.path);
  judgement.facts.emplace_back(prefix + "format",
                               side.format.empty() ? "not readable" : side.format);
  judgement.facts.emplace_back(prefix + "mesh", mesh_text(side));
}

}  // namespace

std::string families_of(const Report& report) {
  const bool has_numbers = (report.level == Level::deep && !report.subset) || report.since;
  return has_numbers ? "123456" : "12346";
}

Judgement judgement_of(const Verdict& verdict) {
  const Report& report = verdict.report;
  Judgement judgement;
  judgement.verb = "verify";
  judgement.title = verdict.against ? title_of(verdict.side, *verdict.against) : verdict.side.path;
  judgement.sides.push_back(verdict.side);
  if (verdict.against) judgement.sides.push_back(*verdict.against);
  judgement.groups = groups_of(verdict);
  judgement.findings = report.findings;
  judgement.seconds = verdict.seconds;
  judgement.numbers = report.numbers;
  add_side_facts(verdict.side, verdict.against ? "left " : "", judgement);
  if (verdict.against) add_side_facts(*verdict.against, "right ", judgement);
  if (verdict.previous) add_side_facts(*verdict.previous, "earlier ", judgement);
  const auto add = [&](const char* name, std::string value) {
    judgement.facts.emplace_back(name, std::move(value));
  };
  add("level", std::string(to_string(report.level)));
  if (report.subset) add("read", part_text(*report.subset));
  add("tensors", std::to_string(report.tensors));
  add("files", std::to_string(report.files));
  add("bytes read", format_bytes(report.bytes_read));
  if (report.bytes_unprotected > 0 && !verdict.against) {
    add("without recorded digest", format_bytes(report.bytes_unprotected));
  }
  if (verdict.against) {
    add("equal", fmt::format("{} of {}", report.equal, counted(report.compared, "tensor")));
  }
  if (verdict.signature) add("signed by", verdict.signature->key_id);
  add("seconds", fmt::format("{:.2f}", verdict.seconds));
  return judgement;
}

void print_verdict(const Verdict& verdict, Output& out) {
  if (verdict.against) {
    out.line(fmt::format("{}  against  {}", mesh_text(verdict.side), mesh_text(*verdict.against)));
  }
  if (verdict.previous) {
    out.line(fmt::format("{}  since  {}", mesh_text(verdict.side), mesh_text(*verdict.previous)));
  }
  out.line(head_line(verdict, out));
  print_findings(verdict.report.findings, out);
  print_signature(verdict, out);
  print_equality(verdict, out);
  print_since(verdict, out);
  print_unprotected(verdict, out);
  if (!verdict.failed || verdict.against) out.line(fmt::format("  {}", basis(verdict)));
  if (verdict.failed && verdict.report.subset) {
    out.line(fmt::format("  only {} was read", part_text(*verdict.report.subset)));
  }
  print_ignored(verdict.ignored, out);
  print_count(verdict, out);
}

Json verdict_json(const Verdict& verdict) {
  const Report& report = verdict.report;
  Json document = new_document("verify");
  document["status"] = verdict.failed ? "fail" : "ok";
  document["left"] = side_json(verdict.side);
  document["right"] = verdict.against ? side_json(*verdict.against) : Json(nullptr);
  document["previous"] = previous_json(verdict);
  document["signature"] = signature_json(verdict.signature);
  document["level"] = to_string(report.level);
  document["subset"] = subset_json(report.subset);
  document["recomputed"] = report.recomputed;
  document["counts"] = {{"error", report.count(Severity::error)},
                        {"warn", report.count(Severity::warn)},
                        {"note", report.count(Severity::note)},
                        {"ignored", verdict.ignored.findings.size()}};
  document["tensors"] = report.tensors;
  document["files"] = report.files;
  document["bytes_read"] = report.bytes_read;
  document["bytes_unprotected"] = report.bytes_unprotected;
  document["compared"] = report.compared;
  document["equal"] = report.equal;
  document["seconds"] = verdict.seconds;
  document["findings"] = json_of(report.findings);
  add_ignored(document, verdict.ignored);
  return document;
}

}  // namespace remesh
