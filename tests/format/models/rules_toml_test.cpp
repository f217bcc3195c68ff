#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lying.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;

std::string message_of(std::string_view toml) {
  try {
    ModelMap::parse(toml, "my.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "none";
}

struct Defect {
  std::string toml;
  const char* message;
};

void expect_messages(const std::vector<Defect>& table) {
  for (const Defect& row : table) {
    SCOPED_TRACE(row.toml);
    EXPECT_EQ(message_of(row.toml), std::string("cannot read model map my.toml: ") + row.message);
  }
}

// A map with one tensor, of which each entry but the name stands in `entries`, from line 10 on.
std::string tensor(const std::string& entries, const std::string& name = "w") {
  return "[model]\nname = 'm'\n[sizes]\nheads = 4\nhidden = 'd'\n[flags]\ntied = "
         "'t'\n[[tensor]]\nname = '" +
         name + "'\n" + entries + "\n";
}

TEST(ParseMap, RefusesWhatIsNoMap) {
  // clang-format off
  expect_messages({
      {"",                              "line 1, column 1: a model map has no 'model'"},
      {"[model]\nname = 'm'",           "line 1, column 1: a model map has no 'tensor'"},
      {"[model]\n[[tensor]]\nname='w'", "line 1, column 1: [model] has no 'name'"},
      {"[modle]\nname = 'm'",           "line 1, column 2: unknown key 'modle' in a model map; did you mean 'model'?"},
      {"[model]\nname = 'm'\n\n  nmae = 2", "line 4, column 3: unknown key 'nmae' in [model]; did you mean 'name'?"},
      {"[model]\nzz = 1\naa = 1",       "line 2, column 1: unknown key 'zz' in [model]"},
      {"model = 3",                     "line 1, column 9: 'model' is a whole number, but a table is expected"},
      {"[model]\nname = 1\n[[tensor]]", "line 2, column 8: 'name' is a whole number, but a text is expected"},
      {"[model]\nname = 'm'\nmodel_types = 'llama'\n[[tensor]]", "line 3, column 15: 'model_types' is a text, but a list is expected"},
      {"[model]\nname = 'm'\nmodel_types = ['a', 2.5]\n[[tensor]]", "line 3, column 21: 'model_types' is a fraction, but a text is expected"},
      {"[model]\nname = 'm'\nlayers = 'layers'\n[[tensor]]", "line 3, column 10: 'layers' speaks of 'layers', which is not among [sizes]"},
      {"tensor = []\n[model]\nname = 'm'", "line 1, column 10: there are 0 entries [[tensor]], but from 1 to 4096 are read"},
      {"[tensor]\nname = 'w'\n[model]\nname = 'm'", "line 1, column 1: 'tensor' is a table, but a list is expected"},
      {"tensor = [1]\n[model]\nname = 'm'", "line 1, column 11: 'tensor' is a whole number, but a table is expected"},
  });
  // clang-format on
}

TEST(ParseMap, RefusesWhatIsNoToml) {
  EXPECT_THAT(message_of("[model]\nname = 'm\n"),
              testing::StartsWith("cannot read model map my.toml: line 2, column 10: "));
  EXPECT_THAT(message_of("[model]\nname = 'm'\nname = 'n'\n"),
              testing::StartsWith("cannot read model map my.toml: line 3, column "));
  EXPECT_THAT(
      message_of(std::string(1048577, '#')),
      StrEq("cannot read model map my.toml: it has 1048577 bytes, but at most 1048576 are read"));
}

TEST(ParseMap, RefusesSizesAndFlags) {
  const std::string head = "[model]\nname = 'm'\n";
  const std::string tail = "\n[[tensor]]\nname = 'w'\n";
  // clang-format off
  expect_messages({
      {head + "[sizes]\nheads = 0" + tail,    "line 4, column 9: 'heads' is 0, but a size is positive"},
      {head + "[sizes]\nheads = true" + tail, "line 4, column 9: 'heads' is true or false, but a text is expected"},
      {head + "[sizes]\nheads = {default = 'a'}" + tail, "line 4, column 20: 'a' speaks of 'a', which is not among [sizes]"},
      {head + "[sizes]\nheads = {key = 'a', defualt = 'a'}" + tail, "line 4, column 21: unknown key 'defualt' in the size 'heads'; did you mean 'default'?"},
      {head + "[sizes]\nheads = {key = 'a', default = 'hedas'}" + tail, "line 4, column 31: 'hedas' speaks of 'hedas', which is not among [sizes]; did you mean 'heads'?"},
      {head + "[sizes]\nheads = {key = 'a', default = '2 +'}" + tail, "line 4, column 31: '2 +' is no size: it must be numbers and names joined by + - * / //"},
      {head + "[sizes]\na = {key = 'a', default = 'b'}\nb = {key = 'b', default = 'c'}\nc = {key = 'c', default = 'b'}" + tail, "line 4, column 5: the default of 'a' comes back to itself"},
      {head + "[sizes]\na = {key = 'a', default = 'a / 2'}" + tail, "line 4, column 5: the default of 'a' comes back to itself"},
      {"sizes = 3\n" + head + tail,           "line 1, column 9: 'sizes' is a whole number, but a table is expected"},
      {head + "[flags]\ntied = true" + tail,  "line 4, column 8: 'tied' is true or false, but a table is expected"},
      {head + "[flags]\ntied = {kye = 'a'}" + tail, "line 4, column 9: unknown key 'kye' in the flag 'tied'; did you mean 'key'?"},
      {head + "[flags]\ntied = {default = 'no'}" + tail, "line 4, column 19: 'default' is a text, but true or false is expected"},
      {head + "[flags]\ntied = {always = 'qwen2'}" + tail, "line 4, column 18: 'always' is a text, but a list is expected"},
  });
  // clang-format on
}

TEST(ParseMap, RefusesTensors) {
  // clang-format off
  expect_messages({
      {tensor("sahpe = ['d']"),                "line 10, column 1: unknown key 'sahpe' in [[tensor]]; did you mean 'shape'?"},
      {"[model]\nname = 'm'\n[[tensor]]\nshape = [2]", "line 3, column 1: [[tensor]] has no 'name'"},
      {tensor("shape = 'hidden'"),             "line 10, column 9: 'shape' is a text, but a list is expected"},
      {tensor("shape = [2, 'hiden']"),         "line 10, column 13: 'hiden' speaks of 'hiden', which is not among [sizes]; did you mean 'hidden'?"},
      {tensor("shape = ['hidden * (2)']"),     "line 10, column 10: 'hidden * (2)' is no size: it must be numbers and names joined by + - * / //"},
      {tensor("shape = [1.5]"),                "line 10, column 10: 'shape' is a fraction, but a text is expected"},
      {tensor("shape = [1,1,1,1,1,1,1,1,1]"),  "line 10, column 9: 'shape' has 9 dims, but at most 8 are possible"},
      {tensor("split = 1"),                    "line 10, column 9: 'split' is a whole number, but a list is expected"},
      {tensor("split = {over = ['tp']}"),      "line 10, column 9: 'split' has no 'dim'"},
      {tensor("split = {dim = 0, gruops = 2}"), "line 10, column 19: unknown key 'gruops' in 'split'; did you mean 'groups'?"},
      {tensor("split = {dim = '0'}"),          "line 10, column 16: 'dim' is a text, but a whole number is expected"},
      {tensor("split = {dim = 8}"),            "line 10, column 16: 'dim' is 8, but one from 0 to 7 is expected"},
      {tensor("split = {dim = -1}"),           "line 10, column 16: 'dim' is -1, but one from 0 to 7 is expected"},
      {tensor("shape = [2]\nsplit = {dim = 1}"), "line 11, column 9: 'dim' is 1, but the shape has 1 dims"},
      {tensor("split = {dim = 0, over = ['pp']}"), "line 10, column 26: 'over' names 'pp', but one of tp, cp, dp, etp, ep, edp is expected"},
      {tensor("split = {dim = 0, over = []}"), "line 10, column 26: 'over' names no axis"},
      {tensor("split = {dim = 0, over = 'tp'}"), "line 10, column 26: 'over' is a text, but a list is expected"},
      {tensor("split = {dim = 0, over = ['tp', 'tp']}"), "line 10, column 9: the tensor is split over tp twice"},
      {tensor("split = [{dim = 0}, {dim = 1}]"), "line 10, column 9: the tensor is split over tp twice"},
      {tensor("split = {dim = 0, rule = 'chunks'}"), "line 10, column 26: 'rule' is 'chunks', but one of balanced, chunk is expected"},
      {tensor("split = {dim = 0, rule = 'chunk', groups = 2}"), "line 10, column 9: 'groups' are always dealt evenly, but 'rule' asks for something else"},
      {tensor("split = {dim = 0, share = true}"), "line 10, column 9: 'share' is true, but there are no 'groups' to share"},
      {tensor("split = {dim = 0, groups = 2, share = 'yes'}"), "line 10, column 39: 'share' is a text, but true or false is expected"},
      {tensor("split = {dim = 0, unit = 3}"),  "line 10, column 26: 'unit' is a whole number, but a text is expected"},
      {tensor("stage = 'frist'"),              "line 10, column 9: 'stage' is 'frist', but one of all, layer, first, last, ends is expected"},
      {tensor("stage = 1"),                    "line 10, column 9: 'stage' is a whole number, but a text is expected"},
      {tensor("stage = 'layer'"),              "line 10, column 9: 'stage' is 'layer', but the name has no {layer}"},
      {tensor("stage = {tied = 'ends'}"),      "line 10, column 9: 'stage' must be a text, or have a flag and 'otherwise'"},
      {tensor("stage = {tied = 'ends', otherwise = 'layer'}"), "line 10, column 9: 'stage' is 'layer', but the name has no {layer}"},
      {tensor("stage = {teid = 'ends', otherwise = 'first'}"), "line 10, column 17: 'teid' is not among [flags]; did you mean 'tied'?"},
      {tensor("needed = 'teid'"),              "line 10, column 10: 'teid' is not among [flags]; did you mean 'tied'?"},
      {tensor("needed = '!tie'"),              "line 10, column 10: 'tie' is not among [flags]; did you mean 'tied'?"},
      {tensor("needed = '!'"),                 "line 10, column 10: '' is not among [flags]"},
      {tensor("needed = 1"),                   "line 10, column 10: 'needed' is a whole number, but a text is expected"},
      {tensor("", ""),                         "line 9, column 8: the name is empty"},
      {tensor("", "h.{head}.w"),               "line 9, column 8: the name 'h.{head}.w' has '{head}', but the placeholders are {layer} and {expert}"},
      {tensor("", "h.{layer}.{layer}.w"),      "line 9, column 8: the name 'h.{layer}.{layer}.w' has a placeholder twice"},
      {tensor("", "h.{expert}.w"),             "line 9, column 8: the name 'h.{expert}.w' has {expert}, but no {layer}"},
      {tensor("", "h.{layer}{expert}.w"),      "line 9, column 8: the name 'h.{layer}{expert}.w' has a placeholder beside a placeholder"},
      {tensor("", "h.{layer}.{expert}.w"),     "line 9, column 8: the name has {expert}, but [model] says no 'experts'"},
      {tensor("", "h.layer}.w"),               "line 9, column 8: the name 'h.layer}.w' has '}', but the placeholders are {layer} and {expert}"},
      {tensor("", "h.{layer.w"),               "line 9, column 8: the name 'h.{layer.w' has '{layer.w', but the placeholders are {layer} and {expert}"},
      {tensor("", "h{layer}0.w"),              "line 9, column 8: the name 'h{layer}0.w' has a digit beside a placeholder"},
      {tensor("", "h0{layer}.w"),              "line 9, column 8: the name 'h0{layer}.w' has a digit beside a placeholder"},
      {tensor("[[tensor]]\nname = 'w'"),       "line 10, column 1: the names are also those of the entry in line 8"},
      {tensor("[[tensor]]\nname = 'h.0.w'", "h.{layer}.w"), "line 10, column 1: the names are also those of the entry in line 8"},
  });
  // clang-format on
}

// A model that is nothing like a transformer, as a user might describe one.
constexpr std::string_view grid = R"(
[model]
name = "weather"

[sizes]
rows = 12
columns = {key = "columns", default = "rows / 2 + 1"}

[flags]
wide = {key = "wide", default = true}

[[tensor]]
name = "grid.{layer}.state"
shape = ["rows", "columns"]
split = [{dim = 0, over = ["tp", "dp"], rule = "chunk"}, {dim = 1, over = ["cp"]}]

[[tensor]]
name = "bands"
split = {dim = 0, groups = 3}
stage = {wide = "all", otherwise = "last"}

[[tensor]]
name = "grid.{layer}.extra2.bias"
needed = false
stage = "first"
)";

TEST(ParseMap, DescribesAnyModel) {
  const ModelMap map = ModelMap::parse(grid, "grid.toml");
  EXPECT_EQ(map.name(), "weather");
  EXPECT_FALSE(map.fits(R"({"model_type": "weather"})"))
      << "no model types, so it must be asked for";
  const std::vector<TensorDesc> tensors{{"bands", DType::f32, Box{{0, 6}}},
                                        {"grid.1.extra2.bias", DType::f32, Box{{0, 1}}},
                                        {"grid.0.state", DType::f32, Box{{0, 12}, {0, 7}}},
                                        {"grid.1.state", DType::f32, Box{{0, 12}, {0, 7}}}};
  const Layout layout = map.place(tensors, "", parse_mesh("tp=3,cp=2,dp=3,pp=2"));
  EXPECT_THAT(layout.stages().layers, ElementsAre(1, 1)) << "as many layers as the names show";

  // Rank 3 * (2 * (dp + 3 * pp) + cp) + tp; 12 rows in chunks of 2 over tp + 3 * dp.
  EXPECT_EQ(test::box_on(layout, tensors, 2, 0), (Box{{0, 2}, {0, 4}}));
  EXPECT_EQ(test::box_on(layout, tensors, 2, 4), (Box{{2, 4}, {4, 7}})) << "tp 1, cp 1, dp 0";
  EXPECT_EQ(test::box_on(layout, tensors, 2, 8), (Box{{10, 12}, {0, 4}})) << "tp 2, cp 0, dp 1";
  EXPECT_EQ(test::box_on(layout, tensors, 2, 12), std::nullopt) << "dp 2: chunks leave it nothing";
  EXPECT_EQ(test::box_on(layout, tensors, 2, 18), std::nullopt) << "pp 1";
  EXPECT_EQ(test::box_on(layout, tensors, 3, 18), (Box{{0, 2}, {0, 4}}));
  EXPECT_EQ(test::box_on(layout, tensors, 0, 1), (Box{{2, 4}}));
  EXPECT_EQ(test::box_on(layout, tensors, 0, 19), (Box{{2, 4}})) << "on all stages";
  EXPECT_EQ(test::box_on(layout, tensors, 1, 18), std::nullopt)
      << "on the first stage, whatever its layer";

  const Layout narrow = map.place(tensors, R"({"wide": false})", parse_mesh("tp=3,pp=2"));
  EXPECT_EQ(test::box_on(narrow, tensors, 0, 1), std::nullopt);
  EXPECT_EQ(test::box_on(narrow, tensors, 0, 4), (Box{{2, 4}}));
}

std::string place_message(const ModelMap& map, const std::vector<TensorDesc>& tensors,
                          std::string_view config, const char* mesh) {
  try {
    map.place(tensors, config, parse_mesh(mesh));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(ParseMap, DescribesAnyModelDownToItsErrors) {
  const ModelMap map = ModelMap::parse(grid, "grid.toml");
  std::vector<TensorDesc> tensors{{"bands", DType::f32, Box{{0, 6}}},
                                  {"grid.0.state", DType::f32, Box{{0, 12}, {0, 7}}}};
  EXPECT_EQ(place_message(map, tensors, "", "tp=2"),
            "cannot place the model on tp=2: it has 3 groups, which 2 does not divide; the "
            "nearest legal values are tp=1 and tp=3");
  EXPECT_EQ(
      place_message(map, tensors, R"({"columns": 8})", "tp=1"),
      "cannot place 'grid.0.state' (f32, [0, 12) x [0, 7)): in model 'weather' it is [0, 12) x "
      "[0, 8) (rows, columns); does config.json belong to another model?");
  tensors[0].extent = Box{{0, 7}};
  EXPECT_EQ(
      place_message(map, tensors, "", "tp=1"),
      "cannot place 'bands' (f32, [0, 7)): its dim 0 has 7 elements, which 3 groups do not divide");
  tensors[0].extent = Box{};
  EXPECT_EQ(
      place_message(map, tensors, "", "tp=1"),
      "cannot place 'bands' (f32, scalar): model 'weather' splits its dim 0, but it has 0 dims");
  tensors.pop_back();
  tensors[0].extent = Box{{0, 6}};
  EXPECT_EQ(place_message(map, tensors, "", "tp=1"), "none") << "no names, no layers";
  tensors.push_back({"grid.2.state", DType::f32, Box{{0, 12}, {0, 7}}});
  EXPECT_EQ(
      place_message(map, tensors, "", "tp=1"),
      "cannot place model 'weather': 2 tensors are absent: 'grid.0.state', 'grid.1.state'; is a "
      "file of the checkpoint missing?");
  EXPECT_THROW(map.needed_tensors("", DType::f32), Error) << "'bands' has no shape";
}

TEST(ParseMap, NumbersThatComeOutNegativeAreRefused) {
  const std::vector<TensorDesc> tensors{{"w", DType::f32, Box{{0, 6}}}};
  const std::string head =
      "[model]\nname = 'm'\n[sizes]\nd = {key = 'd', default = '2 - 5'}\nfive = 5\n";
  const auto place = [&](const std::string& entries) {
    const ModelMap map = ModelMap::parse(head + "[[tensor]]\nname = 'w'\n" + entries, "m.toml");
    return place_message(map, tensors, "", "tp=1");
  };
  const std::string cannot = "cannot use config.json for model 'm': ";
  EXPECT_EQ(place("shape = ['0 - five']"),
            cannot + "'0 - five' is -5, but the size of a dim is expected");
  EXPECT_EQ(place("shape = ['d']"), cannot + "'2 - 5' is -3, but a positive number is expected");
  EXPECT_EQ(place("split = {dim = 0, groups = 'five - 5'}"),
            cannot + "'five - 5' is 0, but a positive number is expected");
  EXPECT_EQ(place("shape = ['five + 1']"), "none");
}

TEST(ParseMap, AMapThatSplitsNothingRefusesToBeSplit) {
  const ModelMap map = ModelMap::parse("[model]\nname = 'm'\n[[tensor]]\nname = 'w'", "m.toml");
  const std::vector<TensorDesc> tensors{{"w", DType::f32, Box{{0, 6}}}};
  EXPECT_EQ(place_message(map, tensors, "", "dp=4,cp=2"), "none");
  EXPECT_EQ(
      place_message(map, tensors, "", "tp=2"),
      "cannot place the tensors on tp 2: no rule of their layout uses that axis; give rules that "
      "do with `--rules FILE`");
}

// The example of format/models/README.md, and what is said there about it.
TEST(ReadmeExample, IsAMapAndDoesWhatIsSaid) {
  std::ifstream file(REMESH_SOURCE_DIR "/format/models/README.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find("```toml\n") + 8;
  ASSERT_GT(begin, 8U);
  const ModelMap map =
      ModelMap::parse(page.substr(begin, page.find("```\n", begin) - begin), "README.md");
  const std::string_view config =
      R"({"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257})";

  const std::vector<TensorDesc> tensors = map.needed_tensors(config, DType::f32);
  ASSERT_EQ(tensors.size(), 26U);
  EXPECT_EQ(tensors[0].extent, (Box{{0, 50257}, {0, 768}}));
  EXPECT_EQ(tensors[24].name, "h.11.mlp.weight");
  EXPECT_EQ(tensors[24].extent, (Box{{0, 3072}, {0, 768}}));

  const Layout layout = map.place(tensors, config, parse_mesh("tp=4,pp=2"));
  EXPECT_EQ(test::box_on(layout, tensors, 11, 5), std::nullopt) << tensors[11].name;
  EXPECT_EQ(test::box_on(layout, tensors, 13, 5), (Box{{192, 384}, {0, 768}}))
      << "heads 3, 4, 5 of 64";
  EXPECT_EQ(test::box_on(layout, tensors, 24, 5), (Box{{768, 1536}, {0, 768}}));
  EXPECT_EQ(test::box_on(layout, tensors, 25, 5), (Box{{0, 768}}));
  EXPECT_EQ(test::box_on(layout, tensors, 0, 5), (Box{{12565, 25129}, {0, 768}}));
  EXPECT_EQ(place_message(map, tensors, config, "tp=5"),
            "cannot place the model on tp=5: it has 12 attention heads, which 5 does not divide; "
            "the nearest legal values are tp=4 and tp=6");
}

// Each default speaks of the one before, twice: worked out anew each time, that is 2^40 times.
TEST(Rules, EverySizeIsWorkedOutOnce) {
  std::string toml = "[model]\nname = \"m\"\n[sizes]\ns0 = 1\n";
  for (int i = 1; i <= 40; ++i) {
    toml += "s" + std::to_string(i) + " = {key = \"k" + std::to_string(i) + "\", default = \"s" +
            std::to_string(i - 1) + " + s" + std::to_string(i - 1) + "\"}\n";
  }
  toml += "[[tensor]]\nname = \"w\"\nshape = [\"s40\"]\n";
  const ModelMap map = ModelMap::parse(toml, "rules.toml");
  const auto tensors = map.needed_tensors("{}", DType::u8);
  EXPECT_EQ(tensors.front().extent, (Box{{0, Index{1} << 40}}));
}

}  // namespace
}  // namespace remesh
