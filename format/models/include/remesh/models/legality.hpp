#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/mesh.hpp"
#include "remesh/schema/stages.hpp"

/// @file
/// Which meshes a model can have, by rules of whole numbers: nothing is placed here. What is not
/// known is not judged.

namespace remesh {

/// The sizes of a model that a mesh divides, as far as its config.json says them.
struct ModelSizes {
  std::optional<Index> layers;
  std::optional<Index> hidden;
  std::optional<Index> heads;
  std::optional<Index> kv_heads;
  std::optional<Index> head_dim;
  std::optional<Index> width;         ///< of the MLP of layers without experts
  std::optional<Index> shared_width;  ///< of the experts that see every token, taken together
  std::optional<Index> expert_width;  ///< of one of the others
  std::optional<Index> experts;       ///< in a layer, those that see every token not counted
  std::optional<Index> vocabulary;
  bool latent_attention = false;  ///< multi-head latent attention: there are no KV heads

  friend bool operator==(const ModelSizes&, const ModelSizes&) = default;
};

/// Reads the keys of Hugging Face transformers, under whichever of their names they stand, and for
/// models of several kinds of input those of `text_config`. A size that is no whole number, or none
/// that a model can have, is left out: whoever needs it will say so.
///
/// Throws Error(corrupt) if the text is no JSON object. An empty text says nothing.
ModelSizes model_sizes(std::string_view config_json);

/// How many ways each axis splits, whether or not a Mesh can be so: a row of a published table.
struct Degrees {
  Index tp = 1;
  Index cp = 1;
  std::optional<Index> dp;  ///< left out: what the other axes leave of the world
  Index pp = 1;
  Index ep = 1;
  /// Left out: as for a Mesh, 1 where ep is said, and otherwise experts lie as all else does.
  std::optional<Index> etp;
  Index vpp = 1;

  friend bool operator==(const Degrees&, const Degrees&) = default;
};

/// Axes other than tp, cp and pp count as dp.
Degrees degrees_of(const Mesh& mesh);

/// What a job has beside its mesh. Rules that need what is left out are not judged.
struct JobShape {
  std::optional<Index> world;  ///< ranks
  std::optional<Index> sequence;
  std::optional<Index> global_batch;  ///< sequences in a step
  std::optional<Index> micro_batch;   ///< of those, how many a rank has at a time
  std::optional<bool> sequence_parallel;
  std::optional<Index> shards;  ///< over how many ranks FSDP deals the rows of each tensor
};

/// A rule that a mesh breaks. Where it is neither `impossible` nor `refused_by` anybody, the mesh
/// is legal, and the message is worth knowing all the same.
struct BrokenRule {
  std::string rule;     ///< a name that stays: "heads"
  std::string message;  ///< with all numbers: "the model has 32 attention heads, which tp 6 ..."
  /// The nearest values on either side that keep this rule, and for tp, ep and etp the others of
  /// that axis too: "tp=4 and tp=8". Empty where there are none.
  std::string nearest;
  bool impossible = false;  ///< nobody can have such a mesh, remesh included
  /// Otherwise: those of "Megatron-Core", "torchtitan" and "DeepSpeed" that are known to refuse it.
  /// Whether remesh takes it is then up to the model's map: those that ship cut no heads.
  std::vector<std::string> refused_by;

  friend bool operator==(const BrokenRule&, const BrokenRule&) = default;
};

/// Every rule that is broken, in an order that depends on the arguments alone. `stages`: which
/// layers each stage has, where somebody says so; null: as even as can be.
///
/// The names of rules: world, expert-world, heads, kv-heads, head-dim, width, shared-width,
/// expert-width, experts, stages, layers-vpp, vocabulary, empty-shards, sequence-cp, sequence-tp,
/// expert-sequence-parallel, batch, micro-batches.
///
/// Throws Error(invalid_argument) if a number is below 1 or above 2^31, or if one grid of the
/// degrees has more than 2^31 ranks.
std::vector<BrokenRule> broken_rules(const ModelSizes& model, const Degrees& degrees,
                                     const JobShape& job = {}, const Stages* stages = nullptr);

/// The same of a mesh. Its ranks are the world, if the job says no other.
std::vector<BrokenRule> broken_rules(const ModelSizes& model, const Mesh& mesh,
                                     const JobShape& job = {}, const Stages* stages = nullptr);

}  // namespace remesh
