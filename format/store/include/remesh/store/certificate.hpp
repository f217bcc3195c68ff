#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/catalog.hpp"

/// @file
/// What a job proved, as a text that others can check without a line of this project: proof.json,
/// section 10 of format/SPEC.md.

namespace remesh {

inline constexpr std::string_view certificate_name = "proof.json";

/// The text ends in the digest of all that is before: ,"this_digest":"crc64xz:0123456789abcdef"}
inline constexpr std::string_view certificate_end = R"(,"this_digest":")";
inline constexpr std::size_t certificate_end_bytes = certificate_end.size() + 24 + 2;

/// Something of the source that the target has not: a tensor or a side file, by name.
struct Dropped {
  std::string name;
  std::string reason;  ///< "--exclude"

  friend bool operator==(const Dropped&, const Dropped&) = default;
};

/// What goes into a certificate. All spans are in the order of the target's tensors.
struct CertificateParts {
  const Catalog& source;
  const Catalog& target;  ///< with its save id
  std::span<const std::size_t> source_of;
  std::span<const Digest> source_digests;
  std::span<const Digest> target_digests;
  std::span<const std::int64_t> rounded;  ///< values that the cast changed
  std::string cast_reason;                ///< "--dtype bf16"
  std::span<const Dropped> dropped;       ///< tensors of the source
  std::span<const Dropped> dropped_side;  ///< its side files
  std::optional<Digest> manifest;         ///< of the target, where it has one
  bool read_back = false;                 ///< whether the target's bytes were read again
};

/// Canonical JSON. Throws Error(unsupported) if some text is not UTF-8.
std::string certificate_text(const CertificateParts& parts);

/// The digest in the end of a certificate, of the bytes before `certificate_end`; nothing if
/// `end`, its last certificate_end_bytes bytes, are no such end.
std::optional<Digest> parse_certificate_end(std::string_view end);

}  // namespace remesh
