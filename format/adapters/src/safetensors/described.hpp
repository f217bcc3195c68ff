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
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

/// What is wrong with a described tensor: "tensor 'NAME' WHAT".
Defect about(const DescribedTensor& tensor, std::string id, std::string_view what,
             std::string next_step = "the header is damaged");

/// The tensor that a description makes, if this build knows its dtype and can have that many dims,
/// if no product of its sizes overflows, and if they take whole bytes, exactly those of its
/// data_offsets. Otherwise nothing, and `objection` says why (RM210, RM303).
std::optional<HeaderTensor> checked(DescribedTensor& tensor, Defect& objection);

}  // namespace remesh::safetensors
