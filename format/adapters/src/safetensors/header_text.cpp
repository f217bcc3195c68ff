#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "header.hpp"

namespace remesh::safetensors {
namespace {

struct DTypeName {
  DType dtype;
  std::string_view name;
};

constexpr std::array dtype_names{
    DTypeName{DType::boolean, "BOOL"},
    DTypeName{DType::f4, "F4"},
    DTypeName{DType::f6_e2m3, "F6_E2M3"},
    DTypeName{DType::f6_e3m2, "F6_E3M2"},
    DTypeName{DType::u8, "U8"},
    DTypeName{DType::i8, "I8"},
    DTypeName{DType::f8_e5m2, "F8_E5M2"},
    DTypeName{DType::f8_e4m3, "F8_E4M3"},
    DTypeName{DType::f8_e8m0, "F8_E8M0"},
    DTypeName{DType::f8_e4m3fnuz, "F8_E4M3FNUZ"},
    DTypeName{DType::f8_e5m2fnuz, "F8_E5M2FNUZ"},
    DTypeName{DType::i16, "I16"},
    DTypeName{DType::u16, "U16"},
    DTypeName{DType::f16, "F16"},
    DTypeName{DType::bf16, "BF16"},
    DTypeName{DType::i32, "I32"},
    DTypeName{DType::u32, "U32"},
    DTypeName{DType::f32, "F32"},
    DTypeName{DType::c64, "C64"},
    DTypeName{DType::f64, "F64"},
    DTypeName{DType::i64, "I64"},
    DTypeName{DType::u64, "U64"},
};

using Text = fmt::memory_buffer;

void append(Text& text, std::string_view piece) {
  text.append(piece.data(), piece.data() + piece.size());
}

void append(Text& text, const fmt::format_int& number) {
  text.append(number.data(), number.data() + number.size());
}

// The letter behind the backslash where JSON has a short form, else 0.
char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\t':
      return 't';
    case '\n':
      return 'n';
    case '\f':
      return 'f';
    case '\r':
      return 'r';
    default:
      return 0;
  }
}

// As serde_json does: only what must be escaped is, in lower-case hexadecimal; all else stays
// UTF-8.
void append_quoted(Text& text, std::string_view value) {
  text.push_back('"');
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  if (std::ranges::all_of(value, is_plain)) {
    append(text, value);
    text.push_back('"');
    return;
  }
  for (const char c : value) {
    if (const char letter = short_escape(c)) {
      text.push_back('\\');
      text.push_back(letter);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(text), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text.push_back(c);
    }
  }
  text.push_back('"');
}

// The reference writer's order.
bool before(const TensorDesc& a, const TensorDesc& b) {
  return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
}

void append_metadata(Text& text, const Metadata& metadata) {
  append(text, "\"__metadata__\":{");
  for (std::size_t k = 0; k < metadata.size(); ++k) {
    if (k > 0) text.push_back(',');
    append_quoted(text, metadata[k].first);
    text.push_back(':');
    append_quoted(text, metadata[k].second);
  }
  text.push_back('}');
}

void append_tensor(Text& text, const HeaderTensor& tensor) {
  append_quoted(text, tensor.desc.name);
  append(text, R"(:{"dtype":")");
  append(text, dtype_name(tensor.desc.dtype));
  append(text, R"(","shape":[)");
  for (int dim = 0; dim < tensor.desc.extent.ndim(); ++dim) {
    if (dim > 0) text.push_back(',');
    append(text, fmt::format_int(tensor.desc.extent[dim].size()));
  }
  append(text, R"(],"data_offsets":[)");
  append(text, fmt::format_int(tensor.begin_bytes));
  text.push_back(',');
  append(text, fmt::format_int(tensor.end_bytes));
  append(text, "]}");
}

}  // namespace

std::string_view dtype_name(DType dtype) noexcept {
  const auto* const found = std::ranges::find(dtype_names, dtype, &DTypeName::dtype);
  return found->name;
}

std::optional<DType> parse_dtype_name(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(dtype_names, name, &DTypeName::name);
  if (found == dtype_names.end()) return std::nullopt;
  return found->dtype;
}

Header reference_header(Metadata metadata, std::vector<TensorDesc> tensors) {
  if (!std::ranges::is_sorted(tensors, before)) std::ranges::sort(tensors, before);
  Header header;
  header.metadata = std::move(metadata);
  header.tensors.reserve(tensors.size());
  std::int64_t end = 0;
  for (TensorDesc& tensor : tensors) {
    const std::int64_t begin = end;
    end += num_bytes(tensor);
    header.tensors.push_back({std::move(tensor), begin, end});
  }
  header.data_begin_bytes =
      length_word_bytes + static_cast<std::int64_t>(header_text(header).size());
  return header;
}

bool has_reference_order(const Header& header) noexcept {
  return std::ranges::is_sorted(header.tensors, before, &HeaderTensor::desc);
}

std::string header_text(const Header& header) {
  Text text;
  text.push_back('{');
  if (!header.metadata.empty()) append_metadata(text, header.metadata);
  for (std::size_t k = 0; k < header.tensors.size(); ++k) {
    if (k > 0 || !header.metadata.empty()) text.push_back(',');
    append_tensor(text, header.tensors[k]);
  }
  text.push_back('}');
  while (text.size() % 8 != 0) text.push_back(' ');
  return fmt::to_string(text);
}

std::string with_length_word(std::string_view text) {
  std::string bytes;
  bytes.reserve(length_word_bytes + text.size());
  auto length = static_cast<std::uint64_t>(text.size());
  for (int k = 0; k < length_word_bytes; ++k, length >>= 8) {
    bytes.push_back(static_cast<char>(length & 0xff));
  }
  return bytes += text;
}

}  // namespace remesh::safetensors
