#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "defect.hpp"
#include "remesh/json/events.hpp"

/// @file
/// JSON of foreign files: remesh/json/events.hpp within limits, and without repeated keys.

namespace remesh::safetensors {

/// The most bytes of JSON that is read at all: the reference reader's limit for a header.
inline constexpr std::int64_t max_json_bytes = 100'000'000;
/// The deepest nesting of objects and arrays.
inline constexpr std::size_t max_json_depth = 64;
/// The most keys in one text, and the most tensors of a checkpoint.
inline constexpr std::size_t max_keys = 10'000'000;
/// The longest key, in bytes.
inline constexpr std::size_t max_key_bytes = 4096;

/// Hears what a text holds. `depth` counts the objects and arrays that are open: 1 within the
/// outermost. Each returns true to go on, or refuse(...).
class JsonHandler {
 public:
  JsonHandler() = default;
  JsonHandler(const JsonHandler&) = delete;
  JsonHandler& operator=(const JsonHandler&) = delete;
  virtual ~JsonHandler() = default;

  /// An object (or an array) begins; it is the one at `depth`.
  virtual bool open(std::size_t depth, bool is_object) = 0;
  /// It ends.
  virtual bool close(std::size_t depth) = 0;
  /// A key of the object at `depth`.
  virtual bool key(std::size_t depth, std::string_view key) = 0;
  /// A plain value directly within the object or array at `depth`; 0 for one that is the whole
  /// text.
  virtual bool scalar(std::size_t depth, const JsonScalar& value) = 0;

  /// The first objection.
  std::optional<Defect> objection;

 protected:
  bool refuse(Defect what);
};

/// Feeds `text` to the handler. Refuses, through handler.objection, what is no JSON in UTF-8
/// (RM210), a key that an object has twice (RM608), and what exceeds the limits above (RM605).
/// Returns whether all of it passed. O(text).
bool parse_json(std::string_view text, JsonHandler& handler);

}  // namespace remesh::safetensors
