#include "canonical_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::native {

std::string dump(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::type_error& error) {
    throw Error(Errc::unsupported,
                fmt::format("cannot write the manifest: some text is not UTF-8: {}", error.what()));
  }
}

// Most names have nothing to escape.
void append_text(std::string& out, const std::string& text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, is_plain)) {
    out += dump(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

void append_number(std::string& out, std::int64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_shape(std::string& out, const Box& extent) {
  out += '[';
  for (int dim = 0; dim < extent.ndim(); ++dim) {
    if (dim > 0) out += ',';
    append_number(out, extent[dim].end);
  }
  out += ']';
}

}  // namespace remesh::native
