#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "json_tree.hpp"
#include "remesh/schema/tensor.hpp"

/// @file
/// Canonical JSON, appended to a text: many times faster than by way of a Json value, where there
/// are many of them.

namespace remesh::native {

/// Throws Error(unsupported) if some text in it is not UTF-8.
std::string dump(const Json& value);

/// A text as JSON has it. Throws as dump().
void append_text(std::string& out, const std::string& text);
void append_number(std::string& out, std::int64_t number);

/// The sizes of a shape: "[4,2]".
void append_shape(std::string& out, const Box& extent);

}  // namespace remesh::native
