#include "hdf5_view_text.hpp"

#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remesh::native {

std::string_view view_type(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16:
    case DType::i32:
    case DType::u32:
    case DType::f32:
    case DType::c64:
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return to_string(dtype);
    default:
      return to_string(DType::u8);
  }
}

std::string view_name(std::string_view name) {
  std::string text;
  text.reserve(name.size());
  for (const char character : name) {
    const bool plain =
        character > ' ' && character < '\x7f' && character != '%' && character != '/';
    if (plain) {
      text += character;
    } else {
      fmt::format_to(std::back_inserter(text), "%{:02X}", static_cast<unsigned char>(character));
    }
  }
  return text;
}

std::string view_numbers(std::span<const std::uint64_t> numbers) {
  return numbers.empty() ? "none" : fmt::format("{}", fmt::join(numbers, " "));
}

std::string view_numbers(std::span<const std::int64_t> numbers) {
  return numbers.empty() ? "none" : fmt::format("{}", fmt::join(numbers, " "));
}

std::string view_attribute(std::span<const std::uint64_t> dims,
                           std::span<const std::int64_t> values) {
  return fmt::format("i64 ({}) {}", view_numbers(dims), view_numbers(values));
}

std::string view_attribute(std::string_view text) {
  return fmt::format("text {}", view_name(text));
}

}  // namespace remesh::native
