#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "common_options.hpp"
#include "exit_code.hpp"
#include "explain_pages.hpp"
#include "json_parts.hpp"
#include "program.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

struct Options {
  std::string id;
  bool list = false;
  TalkOptions talk;
};

Page page_of(const std::string& id) {
  const std::vector<Page> pages = all_pages();
  const auto page = std::ranges::find(pages, normal_id(id), &Page::id);
  if (page != pages.end()) return *page;
  throw Error(Errc::invalid_argument,
              fmt::format("there is no finding '{}'; `remesh explain --list` lists them all", id));
}

void print_part(std::string_view word, std::string_view text, Output& out) {
  out.line(fmt::format("{:<8}{}", word, text));
}

void print_page(const Page& page, Output& out) {
  out.line(fmt::format("{}  {}  ({}){}", out.strong(page.id), page.title, family_of(page.id),
                       page.raised ? "" : "  reserved: nothing raises it yet"));
  print_part("what", page.what, out);
  print_part("why", page.why, out);
  print_part("cause", page.cause, out);
  print_part("next", page.next, out);
}

void print_list(const std::vector<Page>& pages, Output& out) {
  Table table;
  for (const Page& page : pages) {
    table.add({std::string(page.id), std::string(family_of(page.id)),
               fmt::format("{}{}", page.title, page.raised ? "" : " (reserved)")});
  }
  for (const std::string& line : table.lines()) out.line(line);
}

Json json_of(const Page& page) {
  return {{"id", page.id},
          {"title", page.title},
          {"family", family_of(page.id)},
          {"reserved", !page.raised},
          {"what", page.what},
          {"why", page.why},
          {"cause", page.cause},
          {"next_step", page.next}};
}

int run(const Options& options, Session& session) {
  if (options.list != options.id.empty()) {
    throw Error(Errc::invalid_argument,
                "say which finding to explain, as in `remesh explain RM202`, or `--list`");
  }
  const std::vector<Page> pages =
      options.list ? all_pages() : std::vector<Page>{page_of(options.id)};
  if (options.list) {
    print_list(pages, session.out);
  } else {
    print_page(pages.front(), session.out);
  }
  Json document = new_document("explain");
  document["pages"] = Json::array();
  for (const Page& page : pages) document["pages"].push_back(json_of(page));
  session.out.document(document);
  return exit_code::done;
}

}  // namespace

CLI::App* add_explain(CLI::App& program, Request& request) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(program, "explain", "what a finding means and what to do about it",
                            {"remesh explain RM202", "remesh explain --list"});
  verb->add_option("ID", options->id, "a finding's id, as in RM202");
  verb->add_flag("--list", options->list, "all ids with their titles");
  add_talk_options(*verb, options->talk);
  verb->callback([options, &request] {
    request.talk = options->talk;
    request.run = [options](Session& session) { return run(*options, session); };
  });
  return verb;
}

}  // namespace remesh
