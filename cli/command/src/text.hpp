#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/box.hpp"

/// @file
/// How the program writes names, counts and tables for people.

namespace remesh {

/// `text` with everything escaped that a terminal would act on or that would hide what stands
/// there: control characters, direction marks, bytes that are no UTF-8. "\x1b" becomes the four
/// characters
/// `\x1b`. A name from a file is never printed without it.
std::string escaped(std::string_view text);

/// The same, but line feeds stay: for messages of several lines.
std::string escaped_lines(std::string_view text);

/// "1 tensor", "65 tensors".
std::string counted(std::int64_t count, std::string_view noun);

/// "0.12 s", "31.6 s", "3 min 32 s".
std::string format_seconds(double seconds);

/// The sizes of a box along each dim: "[515, 64]"; "[]" for a scalar.
std::string format_shape(const Box& extent);

/// The word of `candidates` that `word` was probably meant to be; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c".
std::string joined(const std::vector<std::string>& words);

/// Lines of aligned columns, each two spaces from the next. The last column is not padded.
class Table {
 public:
  void add(std::vector<std::string> row);
  /// Each line begins with `indent` and has no line feed.
  std::vector<std::string> lines(std::string_view indent = {}) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace remesh
