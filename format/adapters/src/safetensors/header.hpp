#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/schema/tensor.hpp"
#include "remesh/store/file_system.hpp"

/// @file
/// The header of one safetensors file: what README.md beside this file says of it, in types. Reader
/// and writer share this and nothing else.

namespace remesh::safetensors {

/// A header begins with its own length: a little-endian u64.
inline constexpr std::int64_t length_word_bytes = 8;

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A tensor and where its bytes lie, relative to the first byte behind the header.
struct HeaderTensor {
  TensorDesc desc;
  std::int64_t begin_bytes = 0;
  std::int64_t end_bytes = 0;

  friend bool operator==(const HeaderTensor&, const HeaderTensor&) = default;
};

struct Header {
  Metadata metadata;                  ///< `__metadata__`, in the order of the file
  std::vector<HeaderTensor> tensors;  ///< by place; they touch each other from 0 on
  std::int64_t data_begin_bytes = 0;  ///< the first byte behind the header
  std::string unknown_field;          ///< one that the format does not define, or empty

  std::int64_t data_bytes() const noexcept {
    return tensors.empty() ? 0 : tensors.back().end_bytes;
  }
  /// What the file must have, exactly.
  std::int64_t file_bytes() const noexcept { return data_begin_bytes + data_bytes(); }
};

/// A dtype's name in the format: "BF16".
std::string_view dtype_name(DType dtype) noexcept;
std::optional<DType> parse_dtype_name(std::string_view name) noexcept;

/// The bytes of length word and JSON together, from the first bytes of a file of `file_bytes`.
/// Nothing, and a finding about `file`, if there can be no header: an empty file or a git-lfs
/// pointer (RM201), a length that no header has (RM201), or one beyond the end of the file (RM202).
/// `head` holds the file's first bytes: 64 of them, or all.
std::optional<std::int64_t> header_bytes(std::span<const std::byte> head, std::int64_t file_bytes,
                                         std::string_view file, Findings& findings);

/// Parses and checks a header. `head` starts at the first byte of the file and holds at least the
/// header; the file has `file_bytes`.
///
/// Whatever is wrong goes to `findings`. The result is empty unless every tensor has a place; it is
/// there for a file that is too short (RM202) or too long (RM208), since its header still holds.
std::optional<Header> parse_header(std::span<const std::byte> head, std::int64_t file_bytes,
                                   std::string_view file, Findings& findings);

/// A header, and the JSON text that it was parsed from, with its padding.
struct ReadHeader {
  Header header;
  std::string text;
};

/// The same for an open file.
std::optional<ReadHeader> read_header(const File& file, std::string_view name, Findings& findings);

/// The header that the reference writer gives these tensors: ordered by dtype, wide ones first,
/// then by name; places in that order.
Header reference_header(Metadata metadata, std::vector<TensorDesc> tensors);

/// The JSON text of a header as the reference writer spells it, padded with spaces to a multiple of
/// 8 bytes, without the length word. Tensors stand in the order of header.tensors.
std::string header_text(const Header& header);

/// Whether its tensors lie in the order in which the reference writer lays them.
bool has_reference_order(const Header& header) noexcept;

/// Length word and text: the first bytes of a file.
std::string with_length_word(std::string_view text);

}  // namespace remesh::safetensors
