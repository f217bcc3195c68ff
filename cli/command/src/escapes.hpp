#pragma once

#include <string>
#include <string_view>

/// @file
/// Names from files are hostile: how they are written into each kind of report. All of these first
/// make visible what escaped() does (control characters, direction marks, invalid UTF-8).

namespace remesh {

/// For the text and the quoted attributes of XML and HTML: no character of markup is left, and none
/// that XML forbids.
std::string markup_escaped(std::string_view text);

/// The same, but line feeds stay.
std::string markup_escaped_lines(std::string_view text);

/// For Markdown: every character that could begin markup, a link or a mention is an entity, so that
/// it is shown as it is.
std::string markdown_escaped(std::string_view text);

/// For a path in a URI: all but letters, digits, '-', '.', '_', '~' and '/' as %XX, byte by byte.
std::string percent_encoded(std::string_view path);

/// For the message, and for a property, of a workflow command of GitHub: `::error title=...::...`.
std::string command_message(std::string_view text);
std::string command_property(std::string_view text);

}  // namespace remesh
