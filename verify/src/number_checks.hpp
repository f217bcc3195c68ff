#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numbers.hpp"
#include "remesh/verify/verify.hpp"

/// @file
/// Whether the numbers of a checkpoint are such as training leaves behind. All of it are rules over
/// counts and digests, so that nothing depends on layout or threads; only masters are read again.

namespace remesh::detail {

/// A checkpoint of which every byte was read.
struct ReadNumbers {
  const Reader& reader;
  const Numbers& numbers;
  std::span<const Digest> digests;  ///< of each tensor, recomputed
  /// For each tensor: whether its bytes are all there and as recorded. The numbers of others mean
  /// nothing.
  std::vector<bool> sound;
  /// For each tensor: the number of the parameter of which it is a state, or -1.
  std::vector<std::int64_t> parameters;

  const TensorDesc& desc(std::size_t tensor) const { return reader.catalog().tensors[tensor]; }
  /// "exp_avg" of a state, empty of a parameter.
  std::string_view state(std::size_t tensor) const;
  bool all_zero(std::size_t tensor) const;
};

/// `findings` have all that is known of the checkpoint's bytes. All arguments but those outlive it.
ReadNumbers read_numbers(const Reader& reader, const Numbers& numbers,
                         std::span<const Digest> digests, std::span<const Finding> findings);

/// Adds what the numbers tell to `findings`.
void check_numbers(const JudgeContext& context, const ReadNumbers& read,
                   std::vector<Finding>& findings);

/// RM511: NaN, infinities, floods of denormals, and weight matrices that are all zero.
void check_values(const ReadNumbers& read, std::vector<Finding>& findings);

/// Of these, NaN and infinities alone.
void check_finite(const ReadNumbers& read, std::vector<Finding>& findings);

/// RM502, unless it was found before: parts of the optimizer that say different steps. RM503:
/// moments that are all zero. RM505: means of squares below zero.
void check_optimizer_states(const ReadNumbers& read, std::vector<Finding>& findings);

/// RM502, a warning: its trainer_state.json is of another step than the name of its directory says.
void check_named_step(const Reader& reader, std::int64_t named, Findings& findings);

/// The step that most parts of the checkpoint say: `step` states, the optimizer's files,
/// trainer_state.json. Nothing where nobody says one.
std::optional<std::int64_t> said_step(const ReadNumbers& read);

/// RM504: weights that are not their masters, rounded to nearest, ties to even. Reads both, a few
/// MiB at a time.
void check_masters(const JudgeContext& context, const ReadNumbers& read,
                   std::vector<Finding>& findings);

/// What config.json says otherwise. RM308: a tied output that is another tensor than its embedding.
/// RM531: fp8 weights without scales. RM541: more rows than the vocabulary.
void check_against_config(const ReadNumbers& read, std::vector<Finding>& findings);

/// What a model with this config.json must have, as the map that ships for it says. RM302: a tensor
/// that is missing, or, as one warning, that less than half of the model is there. RM305: the last
/// layers, all of them. RM303: one of another shape. Says nothing where `convert` would take it as
/// it is, and where no map fits.
void check_model(const ReadNumbers& read, const std::string& config,
                 std::vector<Finding>& findings);

/// RM306: weights and biases of shape [0].
void check_placeholders(std::span<const TensorDesc> tensors, Findings& findings);

/// Whether a name ends as those of embeddings and outputs do.
bool is_embedding_or_output(std::string_view name);

/// A finding about a tensor, or about one element of it, with its place in a file.
Finding about_tensor(const char* id, Severity severity, const ReadNumbers& read,
                     std::size_t tensor);
Finding about_element(const char* id, Severity severity, const ReadNumbers& read,
                      std::size_t tensor, Index number);

/// Makes the finding about all of these. Precondition: there is one.
void name_tensors(Finding& finding, const ReadNumbers& read, std::span<const std::size_t> tensors);

/// "'a', 'b', 'c' and 4 more".
std::string listed(const ReadNumbers& read, std::span<const std::size_t> tensors);

}  // namespace remesh::detail
