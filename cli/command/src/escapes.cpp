#include "escapes.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "text.hpp"

namespace remesh {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Of visible text.
std::string markup(std::string text) {
  replace_all(text, "&", "&amp;");
  replace_all(text, "<", "&lt;");
  replace_all(text, ">", "&gt;");
  replace_all(text, "\"", "&quot;");
  replace_all(text, "'", "&#39;");
  // U+FFFE and U+FFFF, which are UTF-8 and no XML.
  replace_all(text, "\xef\xbf\xbe", R"(\xef\xbf\xbe)");
  replace_all(text, "\xef\xbf\xbf", R"(\xef\xbf\xbf)");
  return text;
}

// The characters of `special` as %XX.
std::string percent_escaped(std::string_view text, std::string_view special) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (special.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

std::string markup_escaped(std::string_view text) { return markup(escaped(text)); }

std::string markup_escaped_lines(std::string_view text) { return markup(escaped_lines(text)); }

std::string breakable(std::string_view markup) {
  std::string out;
  bool in_tag = false;
  for (const char c : markup) {
    out += c;
    if (c == '<' || c == '>') in_tag = c == '<';
    if (!in_tag && (c == '.' || c == '_' || c == '/')) out += "<wbr>";
  }
  return out;
}

std::string markdown_escaped(std::string_view text) {
  constexpr std::string_view plain = " ,;/()'";
  std::string out;
  for (const char c : escaped(text)) {
    const bool is_ascii = static_cast<unsigned char>(c) < 0x80;
    if (!is_ascii || is_letter_or_digit(c) || plain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("&#{};", static_cast<int>(c));
    }
  }
  return out;
}

std::string percent_encoded(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (const char c : path) {
    if (is_letter_or_digit(c) || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string command_message(std::string_view text) {
  return percent_escaped(escaped_lines(text), "%\r\n");
}

std::string command_property(std::string_view text) {
  return percent_escaped(escaped_lines(text), "%\r\n:,");
}

}  // namespace remesh
