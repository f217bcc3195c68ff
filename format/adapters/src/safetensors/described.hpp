#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "defect.hpp"
#include "header.hpp"

namespace remesh::safetensors {

/// A tensor as a header's text describes it, before anything is believed.
struct DescribedTensor {
  /// A value that may be missing, and keeps its memory for the next tensor.
  template <typename T>
  struct Field {
    bool present = false;
    T value;
  };
  using Numbers = Field<std::vector<std::uint64_t>>;

  std::string name;
  Field<std::string> dtype;
  Numbers shape;
  Numbers offsets;

  /// A new tensor, of which nothing but the name is known.
  void begin(std::string_view new_name) {
    name = new_name;
    dtype.present = shape.present = offsets.present = false;
  }
};

/// What is wrong with a described tensor: "tensor 'NAME' WHAT".
Defect about(const DescribedTensor& tensor, std::string id, std::string_view what,
             std::string next_step = "the header is damaged");

/// The tensor that a description makes, if this build knows its dtype and can have that many dims,
/// if no product of its sizes overflows, and if they take whole bytes, exactly those of its
/// data_offsets. Otherwise nothing, and `objection` says why (RM210, RM303).
std::optional<HeaderTensor> checked(DescribedTensor& tensor, Defect& objection);

}  // namespace remesh::safetensors
