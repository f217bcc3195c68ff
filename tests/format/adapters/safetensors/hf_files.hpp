#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "safetensors/header.hpp"

/// @file
/// Files for the tests of this adapter.

namespace remesh::test {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline void put(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A safetensors file of one-byte elements: for each tensor its name and its bytes.
inline std::string plain_file(const std::vector<std::pair<std::string, std::string>>& tensors) {
  std::string text = "{";
  std::string data;
  for (const auto& [name, bytes] : tensors) {
    if (!data.empty() || text.size() > 1) text += ",";
    text += "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(bytes.size()) +
            "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += bytes;
    text += std::to_string(data.size()) + "]}";
  }
  text += "}";
  while (text.size() % 8 != 0) text += ' ';
  return safetensors::with_length_word(text) + data;
}

/// "error RM202, note RM108".
inline std::string ids(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    if (!text.empty()) text += ", ";
    text += std::string(to_string(finding.severity)) + " " + finding.id;
  }
  return text;
}

}  // namespace remesh::test
