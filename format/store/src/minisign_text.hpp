#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What minisign's files have in common: few lines, some of them base64.

namespace remesh::native {

/// The lines of a text, or nothing if there are more than `most`. A line ends with "\n" or "\r\n";
/// the last one may lack it.
std::optional<std::vector<std::string_view>> lines_of(std::string_view text, std::size_t most);

/// What follows `prefix`, or nothing if the line does not begin so.
std::optional<std::string_view> after(std::string_view line, std::string_view prefix) noexcept;

/// Whether the text is the one way to write so many bytes in base64; if so, they are written.
bool decode_base64(std::string_view text, std::span<std::byte> into) noexcept;

std::string encode_base64(std::span<const std::byte> bytes);

inline constexpr std::string_view untrusted_comment = "untrusted comment: ";

}  // namespace remesh::native
