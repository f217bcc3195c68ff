#include "html_report.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "escapes.hpp"
#include "explain_pages.hpp"
#include "finding_text.hpp"
#include "layer_plots.hpp"
#include "mesh_picture.hpp"
#include "page_parts.hpp"
#include "text.hpp"
#include "versions.hpp"

namespace remesh {
namespace {

constexpr std::size_t most_findings = 1000;
constexpr std::size_t most_table_bytes = std::size_t{4} << 20;
constexpr std::size_t most_message_bytes = 4000;

// Nothing is asked for from anywhere, whatever stands in the page.
constexpr std::string_view policy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'";

// A row of the table: a finding that counts, or one that is ignored.
struct Row {
  const Finding* finding = nullptr;
  const IgnoreRule* rule = nullptr;
};

std::vector<Row> rows_of(const Judgement& judgement) {
  std::vector<Row> rows;
  rows.reserve(judgement.findings.size() + judgement.ignored.findings.size());
  for (const Finding* finding : gravest_first(judgement)) rows.push_back({finding, nullptr});
  for (const Ignored::Taken& taken : judgement.ignored.findings) {
    rows.push_back({&taken.finding, &judgement.ignored.rules[taken.rule].rule});
  }
  return rows;
}

std::string badge(std::string_view kind, std::string_view word) {
  return fmt::format("<span class=\"badge {}\">{}</span>", kind, word);
}

std::string head(const Judgement& judgement) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}: remesh {} {}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
      policy, judgement.failed ? "FAIL" : "ok", judgement.verb, markup_escaped(judgement.title),
      page_style());
}

std::string heading(const Judgement& judgement) {
  return fmt::format(
      "<header>\n<p class=\"soft\">remesh {}</p>\n<h1>{} {}</h1>\n<p>{}</p>\n</header>\n<main>\n",
      judgement.verb, judgement.failed ? badge("fail", "FAIL") : badge("ok", "ok"),
      markup_escaped(judgement.title),
      markup_escaped(count_line(judgement.findings, judgement.ignored)));
}

std::string troubles(const Judgement& judgement) {
  std::string text;
  for (const Ignored::Rule& applied : judgement.ignored.rules) {
    const std::string trouble = trouble_with(applied);
    if (trouble.empty()) continue;
    text += fmt::format("<p>{} {}</p>\n",
                        applied.expired ? badge("warn", "warn") : badge("note", "note"),
                        markup_escaped(trouble));
  }
  return text;
}

std::string summary(const Judgement& judgement) {
  std::string text =
      "<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">Summary</h2>\n<dl "
      "class=\"facts\">\n";
  for (const auto& [name, value] : judgement.facts) {
    text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", markup_escaped(name),
                        markup_escaped(value));
  }
  return text + "</dl>\n" + troubles(judgement) + "</section>\n";
}

std::string meshes(const Judgement& judgement) {
  std::string text;
  for (const Side& side : judgement.sides) {
    if (!side.mesh) continue;
    text += fmt::format("<figure>\n{}<figcaption>{}: {}</figcaption>\n</figure>\n",
                        mesh_picture(*side.mesh), markup_escaped(side.path),
                        markup_escaped(describe(*side.mesh)));
  }
  if (text.empty()) return text;
  return "<section aria-labelledby=\"meshes\">\n<h2 id=\"meshes\">Mesh</h2>\n" + text +
         "</section>\n";
}

std::string paragraph(const std::string& text, std::string_view kind = {}) {
  if (text.empty()) return {};
  const bool is_long = text.size() > most_message_bytes;
  // What is cut may end within a character, which is then shown as what it is.
  return fmt::format("<p{}>{}{}</p>", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     markup_escaped(std::string_view(text).substr(0, most_message_bytes)),
                     is_long ? " …" : "");
}

std::string what_of(const Row& row) {
  const Finding& finding = *row.finding;
  std::string text = paragraph(finding.message) + paragraph(found_and_expected(finding), "soft");
  if (!finding.next_step.empty() && !finding.message.ends_with(finding.next_step)) {
    text += paragraph(fmt::format("→ {}", finding.next_step));
  }
  if (row.rule != nullptr) {
    text += paragraph(fmt::format("ignored by {}{}{}", row.rule->origin,
                                  row.rule->expires ? " until " + to_text(*row.rule->expires) : "",
                                  row.rule->reason.empty() ? "" : ": " + row.rule->reason));
  }
  return text;
}

std::string side_text(const std::string& side) {
  return side == "left" || side == "right" ? side + " side" : side;
}

std::string where_of(const Finding& finding) {
  std::string text;
  text += paragraph(side_text(finding.side), "soft");
  std::string file = finding.file;
  if (finding.bytes) {
    file += fmt::format(" bytes [{}, {})", finding.bytes->begin, finding.bytes->end);
  }
  text += breakable(paragraph(file, "where"));
  std::string tensor = finding.tensor;
  if (finding.box) tensor += fmt::format(" {}", to_string(*finding.box));
  return text + breakable(paragraph(tensor, "where"));
}

std::string row_html(const Row& row) {
  const Finding& finding = *row.finding;
  const bool is_ignored = row.rule != nullptr;
  const std::string_view severity = is_ignored ? "ignored" : to_string(finding.severity);
  const std::string id = markup_escaped(finding.id);
  return fmt::format(
      "<tr role=\"row\" data-severity=\"{0}\" data-id=\"{1}\"{2}><td role=\"cell\">{3}</td><td "
      "role=\"cell\"><a href=\"#explain-{1}\">{1}</a></td><td role=\"cell\">{4}</td><td "
      "role=\"cell\">{5}</td></tr>\n",
      severity, id, is_ignored ? " class=\"is-ignored\"" : "", badge(severity, severity),
      where_of(finding), what_of(row));
}

std::set<std::string> ids_of(const std::vector<Row>& rows) {
  std::set<std::string> ids;
  for (const Row& row : rows) ids.insert(row.finding->id);
  return ids;
}

std::string filters(const std::vector<Row>& rows) {
  std::string text =
      "<form id=\"filters\" class=\"filters\" hidden aria-label=\"Filter findings\">\n";
  for (const std::string_view severity : {"error", "warn", "note", "ignored"}) {
    text += fmt::format(
        "<label><input type=\"checkbox\" name=\"severity\" value=\"{0}\" checked> {0}</label>\n",
        severity);
  }
  text += R"(<label>finding <select name="id"><option value="">all</option>)";
  for (const std::string& id : ids_of(rows)) {
    text += fmt::format("<option>{}</option>", markup_escaped(id));
  }
  return text +
         "</select></label>\n<label>words <input type=\"search\" name=\"text\"></label>\n<output "
         "id=\"count\" "
         "aria-live=\"polite\"></output>\n</form>\n";
}

std::string findings(const std::vector<Row>& rows) {
  std::string text =
      "<section aria-labelledby=\"findings-title\">\n<h2 id=\"findings-title\">Findings</h2>\n";
  if (rows.empty()) return text + "<p>Nothing was found.</p>\n</section>\n";
  std::string body;
  std::size_t shown = 0;
  for (; shown < std::min(rows.size(), most_findings); ++shown) {
    const std::string row = row_html(rows[shown]);
    if (body.size() + row.size() > most_table_bytes) break;
    body += row;
  }
  text += filters(rows);
  text += fmt::format(
      "<table id=\"findings\" class=\"findings\" "
      "role=\"table\">\n<caption>{}</caption>\n<thead><tr "
      "role=\"row\"><th scope=\"col\" role=\"columnheader\">Severity</th><th scope=\"col\" "
      "role=\"columnheader\">Finding</th><th scope=\"col\" "
      "role=\"columnheader\">Where</th><th scope=\"col\" "
      "role=\"columnheader\">What</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
      shown == rows.size()
          ? counted(static_cast<std::int64_t>(rows.size()), "finding")
          : fmt::format("The first {} of {} findings, the gravest first", shown, rows.size()),
      body);
  return text + "</section>\n";
}

std::string page_html(const Page& page) {
  const auto row = [](std::string_view word, std::string_view text) {
    return fmt::format("<dt>{}</dt><dd>{}</dd>", word, markup_escaped(text));
  };
  return fmt::format(
      "<details id=\"explain-{0}\"><summary>{0} {1}</summary><dl>{2}{3}{4}{5}</dl>"
      "</details>\n",
      page.id, markup_escaped(page.title), row("What", page.what), row("Why it matters", page.why),
      row("Likely cause", page.cause), row("What to do", page.next));
}

std::string explanations(const std::vector<Row>& rows) {
  const std::set<std::string> ids = ids_of(rows);
  std::string text;
  for (const Page& page : all_pages()) {
    if (ids.contains(std::string(page.id))) text += page_html(page);
  }
  if (text.empty()) return text;
  return "<section aria-labelledby=\"explain\">\n<h2 id=\"explain\">What they mean</h2>\n" + text +
         "</section>\n";
}

}  // namespace

std::string html_report(const Judgement& judgement) {
  const std::vector<Row> rows = rows_of(judgement);
  std::string page = head(judgement);
  page += heading(judgement);
  page += summary(judgement);
  page += findings(rows);
  page += explanations(rows);
  page += layer_plots(judgement);
  page += meshes(judgement);
  page +=
      fmt::format("</main>\n<footer><p>{}</p></footer>\n<script>\n{}</script>\n</body>\n</html>\n",
                  tool_name(), page_script());
  return page;
}

}  // namespace remesh
