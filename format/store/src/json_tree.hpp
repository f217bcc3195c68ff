#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// @file
/// Strict JSON: what read_json accepts, less repeated keys, fractions and depth without end.

namespace remesh::native {

using Json = nlohmann::json;

/// An object of texts, integers and arrays of integers, whose memory is used again for the next
/// one.
class FlatObject {
 public:
  struct Member {
    enum class Kind : std::uint8_t { text, integer, integers };
    std::string key;
    Kind kind = Kind::text;
    std::string text;
    std::int64_t integer = 0;
    std::vector<std::int64_t> integers;
  };

  void clear() noexcept { size_ = 0; }
  Member& add();
  std::size_t size() const noexcept { return size_; }
  /// The member of that name and kind; null if there is none.
  const Member* find(std::string_view key, Member::Kind kind) const noexcept;

 private:
  std::vector<Member> members_;  // of which the first size_ count
  std::size_t size_ = 0;
};

/// Thrown where an element is not flat, or JsonStream::take_flat does not want it.
struct NotFlat {};

/// Takes the elements of the top-level array `key` as they end, so that they need not be kept.
struct JsonStream {
  std::string key;
  std::function<void(const Json& element)> take;
  /// If given, elements are read as flat objects, many times faster than as trees, and the first
  /// that is none, or for which this returns false, ends the parse by NotFlat: then `take` may look
  /// at all of them, and say what is wrong.
  std::function<bool(const FlatObject& element)> take_flat = nullptr;
};

/// Parses `text`, whole. Throws Error(corrupt): RM103 if it is not JSON or holds a number with a
/// fraction or beyond 63 bits, RM608 for a repeated key; Error(out_of_memory, RM605) if it is
/// nested deeper than 64 or has more than 16 million values besides those that `stream` takes.
/// `padding_bytes` is read_json's.
Json parse_json(std::string_view text, const JsonStream& stream, std::size_t padding_bytes = 0);

/// The members of a JSON object, asked for by name and kind. Every question that the object cannot
/// answer is Error(corrupt, RM103), which names `where`.
class Members {
 public:
  /// `keys`: all that there must be, and there must be no others. With a `number`, the place is
  /// "<where> <number>".
  Members(const Json& value, std::string where, std::initializer_list<std::string_view> keys,
          std::int64_t number = -1);

  const Json& at(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const Json& array(std::string_view key) const;
  bool boolean(std::string_view key) const;
  /// Throws also if it is not in [least, most].
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least,
                                     std::int64_t most) const;
  std::vector<std::string> texts(std::string_view key) const;

  std::string where() const;

 private:
  [[noreturn]] void wrong(std::string_view key, std::string_view expected) const;

  const Json& value_;
  std::string where_;
  std::int64_t number_;
};

}  // namespace remesh::native
