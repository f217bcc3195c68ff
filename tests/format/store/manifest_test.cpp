#include "manifest.hpp"

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"

namespace remesh::native {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StrEq;

Manifest manifest() {
  Manifest manifest;
  Catalog& catalog = manifest.catalog;
  catalog = test::every_kind_of_tensor();
  catalog.digests = test::true_digests(catalog);
  catalog.packaging = {.files = {{"a.safetensors", {{"z", "1"}, {"a", "\u00e9\n"}}, "{}"}},
                       .file_of = std::vector<std::uint32_t>(catalog.tensors.size(), 0),
                       .index_text = "{\"a\": 1}\n"};
  catalog.save_id = save_id_of(catalog);
  manifest.shards = {{0, 8192, {0xAA}}, {3, 4096, {0xBB}}};
  return manifest;
}

void expect_equal(const Manifest& a, const Manifest& b) {
  EXPECT_EQ(a.shards, b.shards);
  EXPECT_EQ(a.catalog.tensors, b.catalog.tensors);
  EXPECT_EQ(a.catalog.digests, b.catalog.digests);
  EXPECT_EQ(a.catalog.layout, b.catalog.layout);
  EXPECT_EQ(a.catalog.side, b.catalog.side);
  EXPECT_EQ(a.catalog.packaging, b.catalog.packaging);
  EXPECT_EQ(a.catalog.run_id, b.catalog.run_id);
  EXPECT_EQ(a.catalog.save_id, b.catalog.save_id);
}

TEST(Manifest, ReadsBackAsItWasWritten) {
  const Manifest read = parse_manifest(to_json(manifest()));
  EXPECT_EQ(read.catalog.format, "remesh");
  expect_equal(read, manifest());
}

TEST(Manifest, ReadsBackEveryKindOfLayout) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Manifest drawn;
    drawn.catalog = test::Arbitrary(seed).catalog();
    drawn.catalog.digests.resize(drawn.catalog.tensors.size());
    drawn.catalog.save_id = save_id_of(drawn.catalog);
    expect_equal(parse_manifest(to_json(drawn)), drawn);
  }
}

TEST(Manifest, IsCanonicalJson) {
  const std::string text = to_json(manifest());
  EXPECT_EQ(json::parse(text).dump(), text) << "keys sorted, no white space";
}

TEST(Manifest, LooksLikeThis) {
  Manifest small;
  small.catalog.tensors = {{"w", DType::bf16, Box{{0, 4}, {0, 2}}}};
  small.catalog.digests = {{0x0123456789abcdef}};
  small.catalog.layout =
      Layout(Mesh({{"tp", 2}, {"pp", 1}}),
             {{.splits = {{.dim = 0, .over = {"tp"}, .groups = 2, .unit = "heads"}},
               .pins = {{.axis = "pp", .to = PinTo::layer, .coordinates = {}}}}},
             {{0, 1}}, Stages{{2}});
  small.catalog.side = {{"config.json", 3, {0xFF}}};
  small.catalog.save_id = save_id_of(small.catalog);
  small.shards = {{0, 5000, {0xAA}}};
  // clang-format off
  EXPECT_THAT(
      to_json(small),
      StrEq(
          R"({"blake2b":null,"files":[{"header_crc":"crc64xz:00000000000000aa","name":"shard-00000-of-00002.h5","size":5000}],)"
          R"("format":"remesh","format_version":1,"layout":{"placements":[{"flat":null,"pins":[{"axis":"pp","coordinates":[],"experts":0,"to":"layer"}],"scaled":[],)"
          R"("splits":[{"beyond":"refuse","block":1,"dim":0,"groups":2,"over":["tp"],"parts":[],"rule":"balanced","sizes":[],"unit":"heads"}]}],"stages":[2]},)"
          R"("mesh":{"axes":{"pp":1,"tp":2},"experts":{"axes":{},"order":[]},"order":["tp","pp"],"virtual_stages":1},"packaging":null,"run_id":"","save_id":")" +
          small.catalog.save_id +
          R"(","side":[{"digest":"crc64xz:00000000000000ff","name":"config.json","size":3}],)"
          R"("tensors":[{"digest":"crc64xz:0123456789abcdef","dtype":"bf16","layer":1,"name":"w","placement":0,"shape":[4,2]}]})"));
  // clang-format on
}

TEST(Manifest, CommitIsOneLineWithDigestAndSize) {
  EXPECT_EQ(commit_line("123456789"), "crc64xz:995dc9bbdf1939fa 9\n");
}

TEST(Manifest, RefusesToWriteTextThatIsNotUtf8) {
  Manifest broken = manifest();
  broken.catalog.tensors[0].name = "\xff";
  try {
    to_json(broken);
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
  }
}

TEST(SaveId, ChangesWithWhatIsSavedAndWithNothingElse) {
  const Catalog base = manifest().catalog;
  const auto changed = [&](const std::function<void(Catalog&)>& change) {
    Catalog catalog = base;
    change(catalog);
    return save_id_of(catalog);
  };
  EXPECT_EQ(changed([](Catalog& c) { c.save_id = "other"; }), base.save_id);
  EXPECT_EQ(changed([](Catalog& c) { c.format = "hf"; }), base.save_id);
  EXPECT_EQ(changed([](Catalog& c) { c.packaging = {}; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.digests[0].value ^= 1; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.tensors[0].name += "x"; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.tensors[0].dtype = DType::i8; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.tensors[0].extent[0].end += 2; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.run_id = "run 8"; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.side[0].digest.value ^= 1; }), base.save_id);
  EXPECT_NE(changed([](Catalog& c) { c.layout = Layout::replicated({}, c.tensors.size()); }),
            base.save_id);
}

// The reference is `b2sum -l 128` of the text.
TEST(SaveId, IsBlake2bOfTheIdentity) {
  std::string identity;
  write_identity({}, [&](std::string_view part) { identity += part; });
  EXPECT_EQ(
      identity,
      R"({"layout":{"placements":[],"stages":[]},"mesh":{"axes":{},"experts":{"axes":{},"order":[]},"order":[],"virtual_stages":1},)"
      R"("run_id":"","side":[],"tensors":[]})");
  EXPECT_EQ(save_id_of({}), "8973e43caf15f90b5a3cd4d9e283ab8d");
  EXPECT_EQ(parse_save_id("000102030405060708090a0b0c0d0eff")[15], std::byte{0xff});
  EXPECT_EQ(parse_save_id("000102030405060708090a0b0c0d0eff")[10], std::byte{0x0a});
}

std::string refusal(std::string_view text) {
  try {
    parse_manifest(text);
    return {};
  } catch (const Error& error) {
    return error.id() + ": " + error.what();
  }
}

// The quick look at the text must not take a save id of something else for that of the tensors.
TEST(SaveId, IsThatOfTheTensorsHoweverTheyAreSpelled) {
  Manifest spelled = manifest();
  const std::string text = to_json(spelled);
  const auto respelled = [&](const std::string& with, const std::string& save_id) {
    std::string other = text;
    const std::string key = R"("tensors":[)";
    other.replace(other.find(key), key.size(), with);
    other.replace(other.find(spelled.catalog.save_id), 32, save_id);
    return other;
  };
  const std::string of_none = save_id_of(spelled.catalog, "");
  for (const std::string with : {R"("tensors": [)", R"("tensor\u0073":[)"}) {
    EXPECT_EQ(parse_manifest(respelled(with, spelled.catalog.save_id)).catalog.save_id,
              spelled.catalog.save_id);
    EXPECT_THAT(refusal(respelled(with, of_none)), ::testing::HasSubstr("its content makes it"));
  }
  EXPECT_THAT(refusal(respelled(R"("tensors":[)", of_none)),
              ::testing::HasSubstr("its content makes it"));
}

struct Defect {
  const char* name;
  std::function<void(json&)> spoil;
  const char* refusal;
};

TEST(Manifest, EveryDefectIsRefusedByName) {
  // clang-format off
  const std::vector<Defect> defects{
      {"ranks without end", [](json& m) { m["mesh"]["axes"]["tp"] = 1073741823; }, "RM605: its mesh has"},
      {"a split over an axis twice",
       [](json& m) {
         m["layout"]["placements"][0]["splits"] = {{{"beyond", "refuse"}, {"block", 1}, {"dim", 0}, {"groups", 0},
             {"over", {"tp", "tp"}}, {"parts", json::array()}, {"rule", "balanced"}, {"sizes", json::array()},
             {"unit", ""}}};
       },
       "RM103: a placement is divided over 'tp' twice"},
      {"other format", [](json& m) { m["format"] = "hf"; },
       "RM103: it does not say that its format"},
      {"newer version", [](json& m) { m["format_version"] = 2; },
       "RM102: it has format version 2; this remesh reads version 1"},
      {"the draft", [](json& m) { m["format_version"] = 0; },
       "RM102: it has format version 0, which was a draft; this remesh reads version 1"},
      {"no roots", [](json& m) { m["blake2b"] = json::array(); }, "RM103: 'blake2b' is no object"},
      {"a root too few",
       [](json& m) { m["blake2b"] = {{"files", json::array()}, {"side", json::array()}}; },
       "RM103: 'files' of 'blake2b' has 0 roots for"},
      {"a root of capital letters",
       [](json& m) {
         m["blake2b"] = {{"files", json::array()}, {"side", {std::string(64, 'A')}}};
         for (std::size_t i = 0; i < m["files"].size(); ++i) {
           m["blake2b"]["files"].push_back(std::string(64, 'a'));
         }
       },
       "RM103: 'side' of 'blake2b' has other than 64"},
      {"a root of 63 digits",
       [](json& m) {
         m["blake2b"] = {{"files", {std::string(63, 'a')}}, {"side", json::array()}};
       },
       "RM103: 'files' of 'blake2b' has other than 64"},
      {"newer version with other keys",
       [](json& m) {
         m["format_version"] = 7;
         m["tensors"] = {{{"n", 1}}};
         m["x"] = 1;
       },
       "RM102: it has format version 7"},
      {"version as text", [](json& m) { m["format_version"] = "0"; },
       "RM103: it has format version \"0\""},
      {"unknown key", [](json& m) { m["extra"] = 1; }, "RM103: it has the unknown key \"extra\""},
      {"missing key", [](json& m) { m.erase("run_id"); }, "RM103: it lacks the key 'run_id'"},
      {"null where text is due", [](json& m) { m["run_id"] = nullptr; },
       "RM103: 'run_id' of it is null, but text"},
      {"tensors no array", [](json& m) { m["tensors"] = json::object(); },
       "RM103: 'tensors' of it is {}"},
      {"tensor no object", [](json& m) { m["tensors"][0] = 5; },
       "RM103: 'tensors' has other than objects"},
      {"tensor an array", [](json& m) { m["tensors"][0] = json::array(); },
       "RM103: tensor 0 is no object"},
      {"tensor with unknown key", [](json& m) { m["tensors"][1]["x"] = 0; },
       "RM103: tensor 1 has the unknown key \"x\""},
      {"tensor without shape", [](json& m) { m["tensors"][1].erase("shape"); },
       "RM103: tensor 1 lacks the key 'shape'"},
      {"unknown dtype", [](json& m) { m["tensors"][0]["dtype"] = "f128"; },
       "RM103: the dtype of tensor 0"},
      {"bad digest", [](json& m) { m["tensors"][0]["digest"] = "crc64xz:0"; },
       "RM103: 'digest' of tensor 0"},
      {"negative shape", [](json& m) { m["tensors"][0]["shape"] = {-1}; },
       "RM103: 'shape' of tensor 0 is [-1]"},
      {"fractional shape", [](json& m) { m["tensors"][0]["shape"] = {1.5}; },
       "RM103: the number 1.5 is no integer"},
      {"shape beyond 63 bits", [](json& m) { m["tensors"][0]["shape"] = {~std::uint64_t{0}}; },
       "RM103: the number 18446744073709551615"},
      {"product overflows",
       [](json& m) {
         m["tensors"][0]["shape"] = {INT64_MAX, 2};
       },
       "RM103: tensor 0 is impossible"},
      {"nine dims", [](json& m) { m["tensors"][0]["shape"] = std::vector<int>(9, 1); },
       "RM605: tensor 0 has 9 dims"},
      {"odd bits",
       [](json& m) {
         m["tensors"][0]["dtype"] = "f4";
         m["tensors"][0]["shape"] = {3};
       },
       "RM103: tensor 0 is impossible"},
      {"empty name", [](json& m) { m["tensors"][0]["name"] = ""; },
       "RM103: tensor 0 is impossible: it has no name"},
      {"long name", [](json& m) { m["tensors"][0]["name"] = std::string(4097, 'n'); },
       "its name has 4097 bytes"},
      {"a name twice", [](json& m) { m["tensors"][1]["name"] = m["tensors"][0]["name"]; },
       "RM304: the tensor"},
      {"unknown placement", [](json& m) { m["tensors"][0]["placement"] = 4; },
       "RM103: a tensor has placement 4"},
      {"placement beyond 32 bits",
       [](json& m) { m["tensors"][0]["placement"] = std::int64_t{1} << 32; },
       "RM103: 'placement' of tensor 0"},
      {"layer below -1", [](json& m) { m["tensors"][0]["layer"] = -2; },
       "RM103: 'layer' of tensor 0 is -2"},
      {"mesh without order", [](json& m) { m["mesh"].erase("order"); },
       "RM103: 'mesh' lacks the key 'order'"},
      {"order of another axis",
       [](json& m) {
         m["mesh"]["order"] = {"tp", "ep"};
       },
       "RM103: the axis \"ep\" of 'mesh' has no size"},
      {"order repeats",
       [](json& m) {
         m["mesh"]["order"] = {"tp", "tp"};
       },
       "RM103: "},
      {"order too short", [](json& m) { m["mesh"]["order"] = {"tp"}; }, "RM103: 'order' of 'mesh'"},
      {"axis of 0", [](json& m) { m["mesh"]["axes"]["tp"] = 0; }, "RM103: "},
      {"too many ranks", [](json& m) { m["mesh"]["axes"]["tp"] = std::int64_t{1} << 40; },
       "RM103: "},
      {"unknown rule", [](json& m) { m["layout"]["placements"][1]["splits"][0]["rule"] = "odd"; },
       "RM103: 'rule' of a split is \"odd\""},
      {"unknown pin", [](json& m) { m["layout"]["placements"][3]["pins"][0]["to"] = "odd"; },
       "RM103: 'to' of a pin is \"odd\""},
      {"pins out of order",
       [](json& m) {
         m["layout"]["placements"][3]["pins"][0]["coordinates"] = {1, 0};
       },
       "RM103: the coordinates of a pin"},
      {"ninth dim", [](json& m) { m["layout"]["placements"][1]["splits"][0]["dim"] = 8; },
       "RM103: 'dim' of a split is 8"},
      {"share no boolean",
       [](json& m) { m["layout"]["placements"][1]["splits"][0]["beyond"] = "no"; },
       "RM103: 'beyond'"},
      {"stages do not fit",
       [](json& m) {
         m["layout"]["stages"] = {1, 1, 1};
       },
       "RM103: "},
      {"endless layers",
       [](json& m) {
         m["layout"]["stages"] = {INT32_MAX, INT32_MAX};
       },
       "RM605: its stages"},
      {"shard of another mesh", [](json& m) { m["files"][0]["name"] = "shard-00000-of-00008.h5"; },
       "RM204: it lists the file"},
      {"rank beyond the mesh", [](json& m) { m["files"][1]["name"] = "shard-00004-of-00004.h5"; },
       "RM204: it lists the file"},
      {"endless rank",
       [](json& m) { m["files"][1]["name"] = "shard-" + std::string(90, '9') + "-of-00004.h5"; },
       "RM204: it lists the file"},
      {"shard elsewhere", [](json& m) { m["files"][0]["name"] = "../shard-00000-of-00004.h5"; },
       "RM204: it lists the file"},
      {"shard twice", [](json& m) { m["files"][1] = m["files"][0]; },
       "RM103: its files are not in order"},
      {"shard too small", [](json& m) { m["files"][0]["size"] = 4095; },
       "RM103: 'size' of a file is 4095"},
      {"side file elsewhere", [](json& m) { m["side"][0]["name"] = "../../etc/passwd"; },
       "RM603: "},
      {"side file twice", [](json& m) { m["side"][1] = m["side"][0]; },
       "RM103: its side files are not in order"},
      {"negative side size", [](json& m) { m["side"][0]["size"] = -1; },
       "RM103: 'size' of a side file is -1"},
      {"packaged file elsewhere", [](json& m) { m["packaging"]["files"][0]["name"] = "a/b"; },
       "RM603: "},
      {"packaging of other tensors", [](json& m) { m["packaging"]["file_of"].push_back(0); },
       "RM103: 'packaging' places"},
      {"packaging of no file", [](json& m) { m["packaging"]["file_of"][0] = 1; },
       "RM103: 'file_of' of 'packaging'"},
      {"metadata no pair", [](json& m) { m["packaging"]["files"][0]["metadata"][0] = {"a"}; },
       "RM103: the metadata"},
      {"another save id", [](json& m) { m["save_id"] = std::string(32, '0'); },
       "RM103: its save id is \"000"},
      {"save id no hex", [](json& m) { m["save_id"] = "zz"; }, "RM103: its save id is \"zz\""},
      {"tensor changed", [](json& m) { m["tensors"][0]["digest"] = "crc64xz:0000000000000000"; },
       "RM103: its save id"},
  };
  // clang-format on
  const json whole = json::parse(to_json(manifest()));
  ASSERT_EQ(refusal(whole.dump()), "");
  for (const Defect& defect : defects) {
    json spoiled = whole;
    defect.spoil(spoiled);
    EXPECT_THAT(refusal(spoiled.dump()), HasSubstr(defect.refusal)) << defect.name;
  }
}

TEST(Manifest, DefectsThatNoTreeCanHaveAreRefusedToo) {
  const std::string whole = to_json(manifest());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = whole;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(refusal(with(R"("run_id":)", R"("run_id":"","run_id":)")),
              HasSubstr("RM608: the key \"run_id\" stands twice"));
  EXPECT_THAT(refusal(with(R"("dtype":)", R"("dtype":"i8","dtype":)")), HasSubstr("RM608: "));
  EXPECT_THAT(refusal(with(R"("dtype")", R"("\u0064type":"i8","dtype")")), HasSubstr("RM608: "));
  EXPECT_THAT(refusal(whole + " x"), HasSubstr("RM103: it is no JSON at byte"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF" + whole.substr(1)), HasSubstr("RM103: "));
  EXPECT_THAT(refusal(""), HasSubstr("RM103: it is no JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("RM103: "));
  EXPECT_THAT(refusal("{\"a\":\"\xff\"}"), HasSubstr("RM103: it is no JSON"));
  EXPECT_THAT(refusal(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("RM605: its JSON is nested deeper than 64"));
  EXPECT_THAT(refusal("{\"tensors\":" + std::string(1'000'000, '[')), HasSubstr("RM605: "));
}

TEST(Manifest, EveryTruncationIsRefused) {
  const std::string whole = to_json(manifest());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(refusal(std::string_view(whole).substr(0, length)), HasSubstr("RM103: "));
  }
}

}  // namespace
}  // namespace remesh::native
