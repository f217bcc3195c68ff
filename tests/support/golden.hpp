#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "remesh/schema/catalog.hpp"

/// @file
/// What the checkpoints of fixtures/golden/v1 hold: together every kind of placement, every dtype
/// and every part of a manifest. Their tensors are numbered (numbered_tensor.hpp), their side files
/// are what native_fixture.hpp says.

namespace remesh::test {

struct Golden {
  std::string name;
  Catalog catalog;
  std::int64_t copies = 1;
  std::optional<int> compress_level = {};
  bool as_today = true;  ///< today's writer makes the same bytes
};

/// Adds tensors that each have a placement of their own.
class GoldenCatalog {
 public:
  explicit GoldenCatalog(Mesh mesh, Stages stages = {})
      : mesh_(std::move(mesh)), stages_(std::move(stages)) {}

  GoldenCatalog& add(TensorDesc desc, Placement placement, std::int32_t layer = -1,
                     std::int32_t expert = -1) {
    catalog_.tensors.push_back(std::move(desc));
    placed_.push_back({static_cast<std::uint32_t>(placements_.size()), layer, expert});
    placements_.push_back(std::move(placement));
    return *this;
  }

  Catalog take() {
    catalog_.format = "remesh";
    catalog_.layout = Layout(mesh_, std::move(placements_), std::move(placed_), stages_);
    return std::move(catalog_);
  }

 private:
  Mesh mesh_;
  Stages stages_;
  Catalog catalog_;
  std::vector<Placement> placements_;
  std::vector<Placed> placed_;
};

inline TensorDesc golden_tensor(std::string name, Box extent, DType dtype = DType::bf16) {
  return {std::move(name), dtype, std::move(extent)};
}

/// Every dtype in halves, a scalar, tensors without elements, names that must be encoded.
inline Catalog golden_dtypes() {
  const Split halves{.dim = 0, .over = {"tp"}};
  GoldenCatalog golden(Mesh({{"tp", 2}}));
  for (const DType dtype : all_dtypes()) {
    golden.add(golden_tensor("all." + std::string(to_string(dtype)), Box{{0, 4}, {0, 8}}, dtype),
               {.splits = {halves}});
  }
  golden.add(golden_tensor("scalar", Box{}, DType::f32), {});
  golden.add(golden_tensor("empty", Box{{0, 0}, {0, 3}}), {});
  golden.add(golden_tensor("empty.split", Box{{0, 4}, {0, 0}}), {.splits = {halves}});
  golden.add(golden_tensor("odd \"name\"/with%/\u00e9.@exp_avg", Box{{0, 7}}, DType::u8), {});
  golden.add(golden_tensor("..", Box{{0, 2}}, DType::u16), {});
  golden.add(golden_tensor("one row", Box{{0, 1}, {0, 9}}), {.splits = {halves}});
  return golden.take();
}

/// Splits by every rule, with groups, parts, blocks and scales, of one dim, of two, and nested.
inline Catalog golden_splits() {
  const std::vector<Part> parts{{.size = 8, .groups = 4},
                                {.size = 2, .groups = 1, .beyond = Beyond::share},
                                {.size = 2, .groups = 1, .beyond = Beyond::share}};
  GoldenCatalog golden(Mesh({{"tp", 2}, {"dp", 2}}));
  golden.add(golden_tensor("replicated", Box{{0, 5}}), {})
      .add(golden_tensor("balanced", Box{{0, 5}, {0, 3}}), {.splits = {{.dim = 0, .over = {"tp"}}}})
      .add(golden_tensor("chunk", Box{{0, 5}, {0, 3}}),
           {.splits = {{.dim = 0, .over = {"tp", "dp"}, .rule = SplitRule::chunk}}})
      .add(golden_tensor("sizes", Box{{0, 5}}),
           {.splits = {{.dim = 0, .over = {"tp"}, .rule = SplitRule::sizes, .sizes = {1, 4}}}})
      .add(golden_tensor("two dims", Box{{0, 3}, {0, 5}}),
           {.splits = {{.dim = 1, .over = {"tp"}}, {.dim = 0, .over = {"dp"}}}})
      .add(golden_tensor("nested", Box{{0, 7}, {0, 2}}),
           {.splits = {{.dim = 0, .over = {"tp"}},
                       {.dim = 0, .over = {"dp"}, .rule = SplitRule::chunk}}})
      .add(golden_tensor("groups", Box{{0, 12}}),
           {.splits = {{.dim = 0, .over = {"tp"}, .groups = 4, .unit = "heads"}}})
      .add(golden_tensor("shared", Box{{0, 6}}),
           {.splits = {{.dim = 0, .over = {"tp", "dp"}, .groups = 2, .beyond = Beyond::share}}})
      .add(golden_tensor("divided", Box{{0, 9}}),
           {.splits = {{.dim = 0, .over = {"tp", "dp"}, .groups = 3, .beyond = Beyond::divide}}})
      .add(golden_tensor("parts", Box{{0, 12}, {0, 2}}),
           {.splits = {{.dim = 0, .over = {"tp"}, .parts = parts, .unit = "heads"}}})
      .add(golden_tensor("vocabulary", Box{{0, 11}, {0, 2}}),
           {.splits = {{.dim = 0, .over = {"tp", "dp"}, .rule = SplitRule::chunk, .block = 4}}})
      .add(golden_tensor("weight in blocks", Box{{0, 10}, {0, 3}}, DType::f8_e4m3),
           {.splits = {{.dim = 0, .over = {"tp"}}}, .scaled = {{.dim = 0, .block = 4}}})
      .add(golden_tensor("its scales", Box{{0, 3}, {0, 1}}, DType::f32),
           {.splits = {{.dim = 0, .over = {"tp"}}}, .scaled = {{.dim = 0, .block = 4, .of = 10}}});
  Catalog catalog = golden.take();
  catalog.run_id = "run 7";
  return catalog;
}

/// A pipeline of two with two virtual stages each, uneven: pins of every kind but by expert.
inline Catalog golden_stages() {
  const auto pin = [](PinTo to) { return Placement{.pins = {{.axis = "pp", .to = to}}}; };
  GoldenCatalog golden(Mesh({{"tp", 1}, {"dp", 2}, {"pp", 2}}, {}, 2), Stages{{2, 0, 1, 2}});
  golden.add(golden_tensor("embed", Box{{0, 4}}), pin(PinTo::first));
  for (std::int32_t layer = 0; layer < 5; ++layer) {
    golden.add(golden_tensor("layers." + std::to_string(layer) + ".w", Box{{0, 3}}),
               pin(PinTo::layer), layer);
  }
  golden.add(golden_tensor("norm", Box{{0, 4}}), pin(PinTo::last))
      .add(golden_tensor("tied", Box{{0, 4}}), pin(PinTo::ends))
      .add(golden_tensor("second replica", Box{{0, 2}}),
           {.pins = {{.axis = "dp", .to = PinTo::coordinates, .coordinates = {1}}}});
  return golden.take();
}

/// Two grids over four ranks: experts as tensors of their own, and stacked.
inline Catalog golden_experts() {
  GoldenCatalog golden(Mesh({{"tp", 2}, {"dp", 2}}, {{"etp", 1}, {"ep", 2}, {"edp", 2}}),
                       Stages{{1}});
  golden.add(golden_tensor("router", Box{{0, 3}}), {});
  for (std::int32_t expert = 0; expert < 3; ++expert) {
    golden.add(golden_tensor("experts." + std::to_string(expert) + ".w", Box{{0, 4}, {0, 2}}),
               {.splits = {{.dim = 0, .over = {"etp"}}},
                .pins = {{.axis = "ep", .to = PinTo::expert, .coordinates = {}, .experts = 3}}},
               0, expert);
  }
  golden.add(golden_tensor("stacked", Box{{0, 4}, {0, 2}, {0, 2}}),
             {.splits = {{.dim = 0, .over = {"ep"}, .groups = 4, .unit = "experts"}}});
  return golden.take();
}

/// Lines of every unit: of all tensors, of a layer, of one; backwards, aligned, padded, in buckets;
/// and replicas that are cut at different places, since their lines differ.
inline Catalog golden_lines() {
  const std::vector<std::string> dp{"dp"};
  const Flat backwards{.over = dp, .name = "exp_avg", .reversed = true, .align = 4, .pad = 8};
  const Flat buckets{.over = dp, .name = "buckets", .bucket = 8, .pad_each = 2};
  const Flat of_layer{.over = dp, .unit = FlatUnit::layer, .name = "layer"};
  const Flat alone{.over = {"tp", "dp"}, .unit = FlatUnit::tensor};
  const Split rows{.dim = 0, .over = {"tp"}};
  GoldenCatalog golden(Mesh({{"tp", 2}, {"dp", 2}}), Stages{{2}});
  golden
      .add(golden_tensor("a@exp_avg", Box{{0, 5}, {0, 3}}, DType::f32),
           {.splits = {rows}, .flat = backwards})
      .add(golden_tensor("b@exp_avg", Box{{0, 7}}, DType::f32), {.flat = backwards})
      .add(golden_tensor("c", Box{{0, 3}, {0, 3}}), {.flat = buckets})
      .add(golden_tensor("d", Box{{0, 2}}), {.flat = buckets})
      .add(golden_tensor("e", Box{{0, 6}}), {.flat = buckets})
      .add(golden_tensor("layers.0.w", Box{{0, 5}}), {.flat = of_layer}, 0)
      .add(golden_tensor("layers.1.w", Box{{0, 5}}), {.flat = of_layer}, 1)
      .add(golden_tensor("cube", Box{{0, 3}, {0, 3}, {0, 3}}), {.flat = alone});
  return golden.take();
}

/// Two copies of each piece, side files, and how a Hugging Face directory was packed.
inline Catalog golden_copies() {
  GoldenCatalog golden(Mesh({{"tp", 1}, {"dp", 3}}));
  golden.add(golden_tensor("w", Box{{0, 4}, {0, 2}}), {}).add(golden_tensor("b", Box{{0, 3}}), {});
  Catalog catalog = golden.take();
  catalog.packaging.files = {{"model-00001-of-00002.safetensors", {{"format", "pt"}}, ""},
                             {"model-00002-of-00002.safetensors", {}, "{\"b\":{}}"}};
  catalog.packaging.file_of = {0, 1};
  catalog.packaging.index_text = "{\"weight_map\": {}}\n";
  return catalog;
}

/// Frames of elements of one, two and four bytes, and one that is the chunk itself; what is too
/// small to be compressed, and what is narrower than a byte.
inline Catalog golden_compressed() {
  const Split rows{.dim = 0, .over = {"tp"}};
  GoldenCatalog golden(Mesh({{"tp", 2}}));
  golden.add(golden_tensor("flags", Box{{0, 97}, {0, 100}}, DType::boolean), {.splits = {rows}})
      .add(golden_tensor("halves.few", Box{{0, 3}, {0, 23}, {0, 40}}), {})
      .add(golden_tensor("words.few", Box{{0, 2}, {0, 1030}}, DType::f32), {.splits = {rows}})
      .add(golden_tensor("noise", Box{{0, 67}, {0, 32}}), {})
      .add(golden_tensor("small.few", Box{{0, 9}}, DType::f32), {.splits = {rows}})
      .add(golden_tensor("narrow.few", Box{{0, 8400}}, DType::f4), {})
      .add(golden_tensor("empty", Box{{0, 0}}), {});
  return golden.take();
}

inline std::vector<Golden> goldens() {
  // The first writer let zstd look for matches at every byte.
  return {{"compressed", golden_compressed(), 1, 1, /*as_today=*/false},
          {"copies", golden_copies(), 2},
          {"dtypes", golden_dtypes()},
          {"experts", golden_experts()},
          {"lines", golden_lines()},
          {"packed", golden_compressed(), 1, 1},
          {"splits", golden_splits()},
          {"stages", golden_stages()}};
}

}  // namespace remesh::test
