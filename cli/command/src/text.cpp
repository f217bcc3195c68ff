#include "text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/schema/near_miss.hpp"

namespace remesh {
namespace {

struct Character {
  std::size_t length = 1;  ///< in bytes
  char32_t value = 0;
  bool valid = false;
};

// The bytes after the first that a UTF-8 sequence has; 4 stands for "begins none".
std::size_t continuation(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xC2 && lead < 0xE0) return 1;
  if (lead >= 0xE0 && lead < 0xF0) return 2;
  if (lead >= 0xF0 && lead < 0xF5) return 3;
  return 4;
}

// The character at the beginning of `text`, which is not empty.
Character decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t more = continuation(lead);
  if (more == 0) return {1, lead, true};
  if (more > 3 || text.size() <= more) return {};

  char32_t value = lead & (0x3FU >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte & 0x3FU);
  }
  constexpr std::array<char32_t, 4> least{0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < least[more] || value > 0x10FFFF || surrogate) return {};
  return {more + 1, value, true};
}

// Control characters (C0, DEL, C1), marks of direction and width, line and paragraph separators.
bool hides_or_acts(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

// GitHub's runner takes "##[command]" wherever a line has it, and "::command::" where one begins,
// as meant for itself. Names may be made so.
bool is_command(std::string_view text, bool begins) {
  return text.starts_with("##[") || (begins && text.starts_with("::"));
}

void append_hex(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

std::string escape(std::string_view text, bool keep_line_feeds) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (is_command(text, out.empty() || out.back() == '\n')) {
      append_hex(out, text.substr(0, 1));
      text.remove_prefix(1);
      continue;
    }
    const Character c = decode(text);
    const std::string_view bytes = text.substr(0, c.length);
    if (c.valid && (!hides_or_acts(c.value) || (keep_line_feeds && c.value == '\n'))) {
      out += bytes;
    } else {
      append_hex(out, bytes);
    }
    text.remove_prefix(c.length);
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) { return escape(text, /*keep_line_feeds=*/false); }

std::string escaped_lines(std::string_view text) { return escape(text, /*keep_line_feeds=*/true); }

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string format_seconds(double seconds) {
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string format_shape(const Box& extent) {
  std::vector<Index> sizes;
  sizes.reserve(static_cast<std::size_t>(extent.ndim()));
  for (int dim = 0; dim < extent.ndim(); ++dim) sizes.push_back(extent[dim].size());
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> known(candidates.begin(), candidates.end());
  return std::string(near_miss(word, known).value_or(std::string_view()));
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::vector<std::string> Table::lines(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> out;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      line += last ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace remesh
