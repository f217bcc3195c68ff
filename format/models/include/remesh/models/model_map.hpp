#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// How a model's tensors lie over any mesh, as data: which dim tensor parallelism splits, in which
/// groups, and which pipeline stage has what. Read from TOML; the schema stands in
/// format/models/README.md.
class ModelMap {
 public:
  /// Parses a map. `where` names it in errors.
  /// Throws Error(invalid_argument) with line and column, and the key that was meant where one is
  /// near, for anything that is not exactly the schema.
  static ModelMap parse(std::string_view toml, std::string_view where);

  ModelMap(ModelMap&&) noexcept;
  ModelMap& operator=(ModelMap&&) noexcept;
  ~ModelMap();

  const std::string& name() const noexcept;

  /// Whether the map is meant for a model with this config.json (by model_type). An empty text fits
  /// no map. Throws Error(corrupt) if the text is no JSON object.
  bool fits(std::string_view config_json) const;

  /// Places every tensor on `mesh`, layers as `stages` says, evenly without it. Sizes come from
  /// config.json; `config_json` may be empty where the map needs no sizes.
  ///
  /// Throws Error(invalid_argument) if the mesh is illegal for the model: attention heads that tp
  /// does not divide, KV groups that tp neither divides nor is a multiple of, more stages than
  /// layers; each with both numbers and the nearest legal values.
  /// Throws Error(incomplete, RM302) if a tensor that the map requires is absent, Error(corrupt,
  /// RM303) if a shape is not what config.json says, Error(unsupported, RM310) if the map claims no
  /// tensor of a name (the message lists the first few and says `--rules FILE`).
  /// Throws Error(incomplete) if config.json does not say a size that the map needs, and
  /// Error(corrupt) if it is no JSON object or says something that is no size; each names the key.
  /// Costs O(tensors), a hash of each name.
  Layout place(std::span<const TensorDesc> tensors, std::string_view config_json, const Mesh& mesh,
               const std::optional<StageRule>& stages = {}) const;

  /// What the layers of a model with this config.json cost, in multiplications for each token: the
  /// elements of its tensors of two dims and more, of experts those that a token sees; an embedding
  /// (of the first stage alone) costs nothing, an output (of the last) does. What grows with the
  /// length of the sequence is left out. Throws as needed_tensors does.
  StageCosts stage_costs(std::string_view config_json) const;

  /// The tensors in the order of the model's state dict (their numbers); those that the map does
  /// not order come last, in their own order.
  std::vector<std::size_t> state_dict_order(std::span<const TensorDesc> tensors) const;

  /// The tensors that a model with this config.json must have, in the order of its state dict, with
  /// the shapes that the map gives them and all of one dtype: what `place` would accept.
  /// Throws as `place` does, Error(invalid_argument) if the map gives a needed tensor no shape, and
  /// Error(unsupported) if there are more than a million.
  std::vector<TensorDesc> needed_tensors(std::string_view config_json, DType dtype) const;

 private:
  struct Rules;
  explicit ModelMap(std::unique_ptr<Rules> rules);
  std::unique_ptr<Rules> rules_;
};

/// The map that ships for a model with this config.json; nothing if none fits. Throws as `fits`
/// does.
const ModelMap* shipped_map(std::string_view config_json);

/// The names of the maps that ship: "llama".
std::vector<std::string> shipped_map_names();

}  // namespace remesh
