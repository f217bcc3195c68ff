#include "number_checks.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.hpp"
#include "job.hpp"
#include "numbered_tensor.hpp"
#include "remesh/store/memory_store.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const fs::path fixtures = fs::path(REMESH_SOURCE_DIR) / "fixtures";
const std::string up = "model.layers.3.mlp.up_proj.weight";

// "RM511 error model.norm.weight [3, 4)": what must be the same in every layout.
std::string brief(const Finding& finding) {
  return fmt::format("{} {} {} {}", finding.id, to_string(finding.severity), finding.tensor,
                     finding.box ? to_string(*finding.box) : "");
}

std::vector<std::string> briefs(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& finding : findings) all.push_back(brief(finding));
  std::ranges::sort(all);
  return all;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void replace_in(const fs::path& file, const std::string& old, const std::string& with) {
  std::string text = text_of(file);
  const auto at = text.find(old);
  ASSERT_NE(at, std::string::npos) << old << " in " << file;
  text.replace(at, old.size(), with);
  std::ofstream(file, std::ios::binary) << text;
}

template <typename Word>
std::string raw(std::vector<Word> words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Word)};
}

class NumberChecks : public ::testing::Test {
 protected:
  fs::path copy(const std::string& fixture) {
    fs::copy(fixtures / fixture, directory_ / fixture);
    return directory_ / fixture;
  }

  std::vector<Finding> judge(const fs::path& path, Level level = Level::deep) {
    const Hdf5Viewer viewer = [&path](const std::string& file, const TextSink& sink) {
      write_hdf5_view(path / file, sink);
    };
    return verify(machine_.judge(), {test::opener(path), viewer}, level).findings;
  }

  std::vector<Finding> judge(const MemoryStore& store) {
    return verify(machine_.judge(), Opener([&store](Findings&) { return store.reader(); }),
                  Level::deep)
        .findings;
  }

  // The same tensors in three other layouts, one of them in frames, must have the same findings.
  void expect_the_same_in_every_layout(const fs::path& path,
                                       const std::vector<std::string>& expected) {
    const test::JobOptions jobs[] = {
        {.mesh = "tp=2,pp=2"},
        {.mesh = "tp=4,dp=2"},
        {.mesh = "tp=2", .writer = {.compress_level = 1, .job_id = "0123456789abcdef"}}};
    for (const test::JobOptions& job : jobs) {
      const fs::path native = directory_ / "native";
      fs::remove_all(native);
      test::run_job(machine_, path, native, job);
      EXPECT_EQ(briefs(judge(native)), expected) << job.mesh;
    }
  }

  // Overwrites a tensor of a directory with one weight file from element `number` on.
  static void poke(const fs::path& path, const std::string& name, Index number,
                   const std::string& bytes) {
    const auto reader = test::open_strictly(path);
    const auto tensor = reader->catalog().find(name);
    ASSERT_TRUE(tensor) << name;
    const ExtentMap& map = reader->extents();
    const Extent& extent = map.extents()[map.of(*tensor)[0]];
    std::fstream file(path / map.files()[extent.file].name,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(extent.offset_bytes + number * bits(reader->catalog().tensors[*tensor].dtype) / 8);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  // All of it the same word.
  template <typename Word>
  static void fill(const fs::path& path, const std::string& name, Word word) {
    const auto reader = test::open_strictly(path);
    const auto tensor = reader->catalog().find(name);
    ASSERT_TRUE(tensor) << name;
    const auto count =
        static_cast<std::size_t>(reader->catalog().tensors[*tensor].extent.num_elements());
    poke(path, name, 0, raw(std::vector<Word>(count, word)));
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
};

TEST_F(NumberChecks, FindNothingInWhatTrainingLeaves) {
  for (const std::string fixture :
       {"llama-gqa", "llama-gqa-sharded", "llama-state", "moe-state", "llama-tied-state"}) {
    EXPECT_THAT(briefs(judge(fixtures / fixture)), IsEmpty()) << fixture;
    expect_the_same_in_every_layout(fixtures / fixture, {});
  }
}

// Their bits are drawn, and so are some NaN: those, and no other tensors, are told of.
TEST_F(NumberChecks, TellOfGoldensWhatTheirDrawnBitsAre) {
  for (const test::Golden& golden : test::goldens()) {
    std::vector<std::string> expected;
    for (const TensorDesc& desc : golden.catalog.tensors) {
      if (!detail::is_counted_float(desc.dtype) || desc.extent.empty()) continue;
      const auto counts = detail::count_numbers(desc.dtype, test::numbered(desc));
      if (counts.nans + counts.infinities > 0) expected.push_back(desc.name);
    }
    std::vector<std::string> found;
    for (const Finding& finding : judge(fixtures / "golden/v1" / golden.name)) {
      if (finding.id == "RM210") {
        EXPECT_EQ(finding.file, "config.json") << "its bytes are drawn, too";
        continue;
      }
      EXPECT_EQ(finding.id, "RM511") << brief(finding);
      if (finding.severity == Severity::error) found.push_back(finding.tensor);
    }
    std::ranges::sort(expected);
    std::ranges::sort(found);
    EXPECT_EQ(found, expected) << golden.name;
  }
}

TEST_F(NumberChecks, TheFirstNanIsNamedWithItsPlace) {
  const fs::path path = copy("llama-gqa");
  poke(path, up, 5 * 64 + 7, raw<std::uint16_t>({0x7fc0, 0xff80}));
  poke(path, up, 50 * 64, raw<std::uint16_t>({0x7f81}));
  const std::vector<Finding> findings = judge(path);
  ASSERT_EQ(briefs(findings), std::vector{"RM511 error " + up + " [5, 6) x [7, 8)"});
  EXPECT_EQ(findings[0].found, "2 NaN and 1 infinite");
  EXPECT_EQ(findings[0].file, "model.safetensors");
  const auto reader = test::open_strictly(path);
  const ExtentMap& map = reader->extents();
  const Extent& extent = map.extents()[map.of(*reader->catalog().find(up))[0]];
  const std::int64_t byte = extent.offset_bytes + (5 * 64 + 7) * 2;
  EXPECT_EQ(findings[0].bytes, (ByteRange{byte, byte + 2}));
  EXPECT_THAT(findings[0].message, HasSubstr("of 6912 elements, the first at [5, 6) x [7, 8)"));
  EXPECT_THAT(judge(path, Level::full), IsEmpty()) << "only deep looks at numbers";
  expect_the_same_in_every_layout(path, briefs(findings));
}

TEST_F(NumberChecks, InfinityInAStateIsFound) {
  const fs::path path = copy("moe-state");
  poke(path, "model.norm.weight@exp_avg", 23, raw<std::uint32_t>({0xff800000}));
  const auto expected = std::vector<std::string>{"RM511 error model.norm.weight@exp_avg [23, 24)"};
  EXPECT_EQ(briefs(judge(path)), expected);
  expect_the_same_in_every_layout(path, expected);
}

TEST_F(NumberChecks, AFloodOfDenormalsIsAnErrorInWeightsAndDoubtfulInMoments) {
  const fs::path path = copy("llama-gqa");
  fill<std::uint16_t>(path, up, 0x8003);
  const auto expected = std::vector<std::string>{"RM511 error " + up + " [0, 108) x [0, 64)"};
  EXPECT_EQ(briefs(judge(path)), expected);
  EXPECT_THAT(judge(path)[0].message, HasSubstr("6912 of 6912 elements"));
  // Half of them are none.
  poke(path, up, 0, raw(std::vector<std::uint16_t>(3456, 0x3f80)));
  EXPECT_THAT(briefs(judge(path)), IsEmpty());
  poke(path, up, 0, raw<std::uint16_t>({0}));
  EXPECT_EQ(briefs(judge(path)), expected) << "zeros count for neither";

  const fs::path state = copy("llama-state");
  fill<std::uint32_t>(state, "model.norm.weight@exp_avg", 7);
  EXPECT_EQ(briefs(judge(state)),
            std::vector<std::string>{"RM511 warn model.norm.weight@exp_avg [0, 40)"});
}

TEST_F(NumberChecks, OfFewElementsADenormalMeansNothing) {
  test::GoldenCatalog golden(Mesh({{"tp", 1}}));
  golden.add({"few", DType::f32, Box{{0, 15}}}, {}).add({"more", DType::f32, Box{{0, 16}}}, {});
  MemoryStore store(golden.take());
  std::ranges::fill(store.bytes(0), std::byte{0});
  for (std::size_t k = 0; k < 31; ++k) store.bytes(0)[4 * k] = std::byte{1};
  EXPECT_EQ(briefs(judge(store)), std::vector<std::string>{"RM511 error more [0, 16)"});
}

TEST_F(NumberChecks, AMatrixOfZerosIsDoubtfulAVectorIsNot) {
  const fs::path path = copy("llama-gqa");
  fill<std::uint16_t>(path, up, 0x8000);
  fill<std::uint16_t>(path, "model.norm.weight", 0);
  const auto expected = std::vector<std::string>{"RM511 warn " + up + " [0, 108) x [0, 64)"};
  EXPECT_EQ(briefs(judge(path)), expected);
  poke(path, up, 6911, raw<std::uint16_t>({0x3f80}));
  EXPECT_THAT(briefs(judge(path)), IsEmpty()) << "rows may be zero";
}

class Moments : public NumberChecks {
 protected:
  void zero(const fs::path& path, const std::string& only) {
    const auto reader = test::open_strictly(path);
    for (const TensorDesc& desc : reader->catalog().tensors) {
      const bool is_moment = desc.name.ends_with("@exp_avg") || desc.name.ends_with("@exp_avg_sq");
      if (is_moment && desc.name.starts_with(only)) fill<std::uint32_t>(path, desc.name, 0);
    }
  }
};

TEST_F(Moments, ZeroedOnesAreAnErrorAfterTheFirstStep) {
  const fs::path path = copy("llama-state");
  zero(path, "");
  const std::vector<Finding> findings = judge(path);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, "RM503");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].found, "66 of 66");
  EXPECT_THAT(findings[0].message, HasSubstr("for 66 of 66 parameters at step 400"));
  expect_the_same_in_every_layout(path, briefs(findings));

  replace_in(path / "optimizer.safetensors", "\"step\":\"400\"", "\"step\":\"000\"");
  replace_in(path / "trainer_state.json", "\"step\": 400", "\"step\": 0");
  EXPECT_THAT(briefs(judge(path)), IsEmpty()) << "at step 0 there are none yet";
}

TEST_F(Moments, OneParametersAreANote) {
  const fs::path path = copy("moe-state");
  zero(path, "model.layers.2.mlp.experts.5.up_proj.weight");
  const std::vector<Finding> findings = judge(path);
  EXPECT_EQ(briefs(findings),
            std::vector<std::string>{"RM503 note model.layers.2.mlp.experts.5.up_proj.weight "});
  // One of the two moments alone says nothing.
  poke(path, "model.layers.2.mlp.experts.5.up_proj.weight@exp_avg", 3,
       raw<std::uint32_t>({0x3f800000}));
  EXPECT_THAT(briefs(judge(path)), IsEmpty());
}

TEST_F(Moments, ANegativeMeanOfSquaresIsAnError) {
  const fs::path path = copy("llama-tied-state");
  const std::string name = "model.layers.4.self_attn.q_proj.weight@exp_avg_sq";
  poke(path, name, 3 * 16 + 9, raw<float>({-1e-9F}));
  poke(path, name, 20 * 16, raw<float>({-2.0F, -0.0F}));
  const std::vector<Finding> findings = judge(path);
  const auto expected = std::vector<std::string>{"RM505 error " + name + " [3, 4) x [9, 10)"};
  ASSERT_EQ(briefs(findings), expected);
  EXPECT_EQ(findings[0].found, "2 below zero");
  expect_the_same_in_every_layout(path, expected);
}

TEST_F(Moments, StepsThatDifferAreFoundInAnyFormat) {
  test::GoldenCatalog golden(Mesh({{"tp", 1}}));
  for (const std::string name : {"a", "b", "c"}) {
    golden.add({name, DType::f32, Box{{0, 2}}}, {})
        .add({name + "@step", DType::f32, Box{}}, {})
        .add({name + "@exp_avg", DType::f32, Box{{0, 2}}}, {});
  }
  MemoryStore store(golden.take());
  const auto set = [&](std::size_t parameter, float step) {
    std::vector<float> values(5, 1.0F);
    values[2] = step;
    std::memcpy(store.bytes(0).data() + parameter * 20, values.data(), 20);
  };
  set(0, 8);
  set(1, 7);
  set(2, 7);
  const std::vector<Finding> findings = judge(store);
  ASSERT_EQ(briefs(findings), std::vector<std::string>{"RM502 error a@step "});
  EXPECT_EQ(findings[0].found, "8");
  EXPECT_EQ(findings[0].expected, "7");
  set(0, 7);
  EXPECT_THAT(briefs(judge(store)), IsEmpty());
}

TEST_F(NumberChecks, TheFirstWeightThatIsNotItsRoundedMasterIsNamed) {
  const fs::path path = copy("llama-state");
  const std::string name = "model.layers.3.self_attn.o_proj.weight";  // 40 x 64
  const auto reader = test::open_strictly(path);
  const std::size_t weight = *reader->catalog().find(name);
  std::uint16_t before = 0;
  reader->read(weight, Box{{2, 3}, {33, 34}}, std::as_writable_bytes(std::span(&before, 1)), {});
  const auto after = static_cast<std::uint16_t>(before ^ 1);
  poke(path, name, 2 * 64 + 33, raw<std::uint16_t>({after}));
  const std::vector<Finding> findings = judge(path);
  const auto expected = std::vector<std::string>{"RM504 error " + name + " [2, 3) x [33, 34)"};
  ASSERT_EQ(briefs(findings), expected);
  EXPECT_THAT(findings[0].found, HasSubstr(fmt::format("0x{:04x} (", after)));
  EXPECT_THAT(findings[0].expected, HasSubstr(fmt::format("0x{:04x} (", before)));
  EXPECT_THAT(findings[0].message, HasSubstr(": 1 of 2560 elements (0.0391 %) are not"));
  expect_the_same_in_every_layout(path, expected);
}

TEST_F(NumberChecks, ATieIsRoundedToEven) {
  test::GoldenCatalog golden(Mesh({{"tp", 1}}));
  golden.add({"b", DType::bf16, Box{{0, 4}}}, {})
      .add({"b@master", DType::f32, Box{{0, 4}}}, {})
      .add({"h", DType::f16, Box{}}, {})
      .add({"h@master", DType::f32, Box{}}, {});
  MemoryStore store(golden.take());
  const auto set = [&](std::vector<std::uint16_t> weights, std::uint16_t half) {
    // Two ties, a NaN whose bits cannot be kept, and a minus zero; 1 + 2^-11 is a tie of f16.
    const std::string all = raw(weights) +
                            raw<std::uint32_t>({0x3f808000, 0x3f818000, 0x7f800001, 0x80000000}) +
                            raw<std::uint16_t>({half}) + raw<std::uint32_t>({0x3f801000});
    std::memcpy(store.bytes(0).data(), all.data(), all.size());
  };
  const auto masters = [&] {
    auto findings = judge(store);
    std::erase_if(findings, [](const Finding& finding) { return finding.id != "RM504"; });
    return findings;
  };
  set({0x3f80, 0x3f82, 0x7fff, 0x8000}, 0x3c00);
  EXPECT_THAT(briefs(masters()), IsEmpty());
  set({0x3f81, 0x3f82, 0x7fff, 0x0000}, 0x3c01);
  const auto findings = masters();
  EXPECT_EQ(briefs(findings),
            (std::vector<std::string>{"RM504 error b [0, 1)", "RM504 error h scalar"}));
  EXPECT_THAT(findings[0].message, HasSubstr("2 of 4 elements (50 %)"))
      << "a zero with another sign is another number";
}

// One element each, as the whole of a tensor, so that no other one is the reason.
TEST_F(NumberChecks, EachElementIsComparedExactly) {
  struct Case {
    std::uint32_t master;
    std::uint16_t weight;
    bool same;
  };
  const Case cases[] = {
      {0x3f818000, 0x3f82, true},  // a tie goes to the even one
      {0x3f818000, 0x3f81, false}, {0x3f808000, 0x3f80, true},  {0x3f808000, 0x3f81, false},
      {0x3f808001, 0x3f81, true},  {0x3f817fff, 0x3f81, true},  {0x7f7fffff, 0x7f80, true},
      {0x7fffffff, 0x8000, false},  // a NaN whose bits run over when they are rounded
      {0x7fffffff, 0x7fc1, true},  {0xffffffff, 0x0000, false}, {0xffc00000, 0x7fc0, true},
      {0x00000000, 0x8000, false}, {0x00000000, 0x0000, true},  {0x00008000, 0x0000, true},
  };
  for (const auto& [master, weight, same] : cases) {
    test::GoldenCatalog golden(Mesh({{"tp", 1}}));
    golden.add({"w", DType::bf16, Box{{0, 1}}}, {}).add({"w@master", DType::f32, Box{{0, 1}}}, {});
    MemoryStore store(golden.take());
    std::memcpy(store.bytes(0).data(), &weight, sizeof weight);
    std::memcpy(store.bytes(0).data() + sizeof weight, &master, sizeof master);
    const auto found = briefs(judge(store));
    EXPECT_EQ(std::ranges::count(found, "RM504 error w [0, 1)"), same ? 0 : 1)
        << fmt::format("{:08x} {:04x}", master, weight);
  }
}

// A large pair is compared in panels.
TEST_F(NumberChecks, MastersOfManyMiBAreComparedToTheLastElement) {
  test::GoldenCatalog golden(Mesh({{"tp", 2}}));
  const Box shape{{0, 3}, {0, 700'001}};
  golden.add({"w", DType::bf16, shape}, {.splits = {{.dim = 1, .over = {"tp"}}}})
      .add({"w@master", DType::f32, shape}, {.splits = {{.dim = 0, .over = {"tp"}}}});
  MemoryStore store(golden.take());
  for (const Rank rank : {0, 1}) {  // 1 everywhere
    const auto bytes = store.bytes(rank);
    for (const Extent& extent : store.extents().extents()) {
      if (extent.rank != rank) continue;
      const bool is_master = extent.tensor == 1;
      for (std::int64_t at = 0; at < extent.length_bytes; at += is_master ? 4 : 2) {
        const std::uint32_t one = is_master ? 0x3f800000 : 0x3f80;
        std::memcpy(bytes.data() + extent.offset_bytes + at, &one, is_master ? 4 : 2);
      }
    }
  }
  EXPECT_THAT(briefs(judge(store)), IsEmpty());
  const auto reader = store.reader();
  const auto last = detail::place_of_element(*reader, 1, 3 * 700'001 - 1);
  store.bytes(last.file)[static_cast<std::size_t>(last.bytes.begin) + 2] ^= std::byte{0x01};
  store.bytes(last.file)[static_cast<std::size_t>(last.bytes.begin) + 3] ^= std::byte{0x01};
  EXPECT_EQ(briefs(judge(store)),
            std::vector<std::string>{"RM504 error w [2, 3) x [700000, 700001)"});
}

TEST_F(NumberChecks, ATiedOutputThatIsAnotherTensorIsStale) {
  const fs::path path = copy("llama-gqa");
  replace_in(path / "config.json", "\"tie_word_embeddings\": false",
             "\"tie_word_embeddings\": true");
  const auto reader = test::open_strictly(path);
  EXPECT_EQ(briefs(judge(path)),
            std::vector<std::string>{"RM308 error lm_head.weight [0, 515) x [0, 64)"});
  std::vector<std::byte> bytes(515 * 64 * 2);
  reader->read(*reader->catalog().find("model.embed_tokens.weight"), Box{{0, 515}, {0, 64}}, bytes,
               {});
  poke(path, "lm_head.weight", 0, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  EXPECT_THAT(briefs(judge(path)), IsEmpty());
}

TEST_F(NumberChecks, RowsBehindTheVocabularyArePadding) {
  const fs::path path = copy("llama-gqa");
  replace_in(path / "config.json", "\"vocab_size\": 515", "\"vocab_size\": 500");
  EXPECT_THAT(briefs(judge(path)),
              ElementsAre("RM541 warn lm_head.weight [500, 515) x [0, 64)",
                          "RM541 warn model.embed_tokens.weight [500, 515) x [0, 64)"));
  replace_in(path / "config.json", "\"vocab_size\": 500", "\"vocab_size\": 257");
  const auto findings = judge(path);
  EXPECT_THAT(briefs(findings),
              ElementsAre("RM541 error lm_head.weight [257, 515) x [0, 64)",
                          "RM541 error model.embed_tokens.weight [257, 515) x [0, 64)"));
  EXPECT_THAT(findings[0].message, HasSubstr("it was padded twice"));
}

TEST_F(NumberChecks, AnFp8WeightNeedsItsScale) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const std::string weight =
      "{\"" + name + R"(":{"dtype":"F8_E4M3","shape":[16],"data_offsets":[0,16]})";
  const std::string scale =
      ",\"" + name + R"(_scale_inv":{"dtype":"F32","shape":[1],"data_offsets":[16,20]})";
  const fs::path path = directory_ / "fp8";
  fs::create_directory(path);
  const auto write = [&](bool with_scale) {
    const std::string header = weight + (with_scale ? scale : "") + "}";
    std::ofstream(path / "model.safetensors", std::ios::binary)
        << raw<std::uint64_t>({header.size()}) << header << std::string(16, '8')
        << (with_scale ? raw<float>({0.5F}) : "");
  };
  write(/*with_scale=*/false);
  EXPECT_EQ(briefs(judge(path)), std::vector<std::string>{"RM531 warn " + name + " [0, 16)"});
  std::ofstream(path / "config.json")
      << R"({"model_type": "qwen3_moe", "vocab_size": 8, "hidden_size": 128, "num_experts": 2,)"
         R"( "moe_intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 1,)"
         R"( "head_dim": 128, "quantization_config": {}})";
  // It is one tensor of that model alone, and smaller, as its scale is.
  const auto judge_scales = [&](std::size_t others) {
    auto findings = judge(path);
    const auto is_other = [](const Finding& finding) { return finding.id < "RM5"; };
    EXPECT_EQ(std::erase_if(findings, is_other), others);
    return findings;
  };
  const auto findings = judge_scales(2);
  ASSERT_EQ(briefs(findings), std::vector<std::string>{"RM531 error " + name + " [0, 16)"});
  EXPECT_EQ(findings[0].expected, "'" + name + "_scale_inv'");
  write(/*with_scale=*/true);
  EXPECT_THAT(briefs(judge_scales(3)), IsEmpty());
}

// What is damaged has been told of; what its numbers are means nothing.
TEST_F(NumberChecks, TheNumbersOfDamagedTensorsAreNotJudged) {
  const fs::path native = directory_ / "native";
  test::run_job(machine_, fixtures / "llama-gqa", native, {.mesh = "tp=2"});
  const ExtentMap map = test::open_strictly(native)->extents();
  const Extent& extent = map.extents()[map.of(0)[0]];
  std::fstream file(native / map.files()[extent.file].name,
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(extent.offset_bytes);
  file << raw<std::uint16_t>({0x7fc0});
  file.close();
  const auto findings = judge(native);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, "RM207");
}

// Where a file ends too early, zeros are read, and no more is told than that.
TEST_F(NumberChecks, WhatIsNotThereIsNotTakenForZeros) {
  const fs::path path = copy("llama-state");
  const fs::path file = path / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) / 2);
  const auto findings = briefs(judge(path));
  EXPECT_THAT(findings, Not(IsEmpty()));
  EXPECT_EQ(findings, briefs(judge(path, Level::full)));
}

}  // namespace
}  // namespace remesh
