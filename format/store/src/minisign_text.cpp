#include "minisign_text.hpp"

#include <algorithm>
#include <sodium.h>

namespace remesh::native {

std::optional<std::vector<std::string_view>> lines_of(std::string_view text, std::size_t most) {
  std::vector<std::string_view> lines;
  lines.reserve(most);
  while (!text.empty()) {
    if (lines.size() == most) return std::nullopt;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::optional<std::string_view> after(std::string_view line, std::string_view prefix) noexcept {
  if (!line.starts_with(prefix)) return std::nullopt;
  return line.substr(prefix.size());
}

bool decode_base64(std::string_view text, std::span<std::byte> into) noexcept {
  // Four characters for each three bytes that are begun. libsodium takes only padded text whose
  // unused bits are zero, and with no characters to ignore nothing else; but where char is signed
  // it takes some characters beyond ASCII for '/' and '+'.
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (text.size() != (into.size() + 2) / 3 * 4 || !std::ranges::all_of(text, is_ascii)) {
    return false;
  }
  std::size_t written = 0;
  return ::sodium_base642bin(reinterpret_cast<unsigned char*>(into.data()), into.size(),
                             text.data(), text.size(), nullptr, &written, nullptr,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
         written == into.size();
}

std::string encode_base64(std::span<const std::byte> bytes) {
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), variant), '\0');
  ::sodium_bin2base64(text.data(), text.size(),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), variant);
  text.pop_back();  // the zero that ends it
  return text;
}

}  // namespace remesh::native
