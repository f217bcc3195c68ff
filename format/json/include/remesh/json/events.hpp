#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// @file
/// JSON written by strangers, as a stream of events. What is built to tell them has at most a few
/// times the bytes of the text.

namespace remesh {

/// A value that is neither an object nor an array.
struct JsonScalar {
  enum class Kind : std::uint8_t { null, boolean, natural, negative, real, text };

  Kind kind = Kind::null;
  std::uint64_t natural = 0;  ///< also 1 for true
  std::int64_t negative = 0;  ///< with -0
  double real = 0;            ///< of numbers with a fraction or an exponent, or beyond 64 bits
  std::string_view text;      ///< only until the event ends
};

/// Hears what a text holds, in its order. Each event returns whether to go on.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  virtual bool begin(bool is_object) = 0;      ///< of an object, or an array
  virtual bool key(std::string_view key) = 0;  ///< of the innermost object; only until it returns
  virtual bool scalar(const JsonScalar& value) = 0;
  virtual bool end() = 0;  ///< of the innermost object or array
};

/// Where a text stops being JSON.
struct JsonFault {
  std::size_t byte = 0;  ///< the first is 1; one behind the last where the text ends too early
  std::string why;
};

inline constexpr std::size_t json_padding_bytes = 64;

/// Tells `events` of all that `text` holds, until one of them says no. Returns what is wrong with a
/// text that is no JSON (RFC 8259) in UTF-8, or that holds a NUL; events may have been told of what
/// stands before. Repeated keys pass: who must not have them compares. O(text).
///
/// `padding_bytes`: how many bytes behind the text may be read too; what they hold does not matter.
/// With json_padding_bytes of them, a long text is not copied.
std::optional<JsonFault> read_json(std::string_view text, JsonEvents& events,
                                   std::size_t padding_bytes = 0);

}  // namespace remesh
