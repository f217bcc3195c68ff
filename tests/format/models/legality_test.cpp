#include "remesh/models/legality.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {

void PrintTo(const BrokenRule& broken, std::ostream* out) {
  *out << broken.rule << ": " << broken.message << " [" << broken.nearest << "]"
       << (broken.impossible ? " impossible" : "");
  for (const std::string& framework : broken.refused_by) *out << " " << framework;
}

namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

using Names = std::vector<std::string>;

struct Asked {
  ModelSizes model;
  Degrees at;
  JobShape job;
  std::vector<Index> stages;  // empty: not listed
};

std::vector<BrokenRule> judged(const Asked& asked) {
  const Stages stages{asked.stages};
  return broken_rules(asked.model, asked.at, asked.job, asked.stages.empty() ? nullptr : &stages);
}

Names names(const std::vector<BrokenRule>& rules) {
  Names names;
  for (const BrokenRule& broken : rules) names.push_back(broken.rule);
  return names;
}

const Names megatron{"Megatron-Core"};
const Names torchtitan{"torchtitan"};
const Names both{"Megatron-Core", "torchtitan"};
const Names impossible{"everybody"};

struct Row {
  const char* rule;
  Asked asked, legal;  // neighbours
  Names refused_by;
  const char *nearest, *message;
};

// Whatever a row does not say is not judged, so that each breaks one rule.
TEST(BrokenRules, AreNamedEachByItself) {
  // clang-format off
  const Row rows[] = {
      {"world", {.at = {.tp = 3}, .job = {.world = 8}}, {.at = {.tp = 3}, .job = {.world = 9}}, impossible, "world=6 and world=9", "the world of 8 is no multiple of tp 3 * cp 1 * pp 1 = 3"},
      {"world", {.at = {.tp = 8, .cp = 2, .pp = 4}, .job = {.world = 32}}, {.at = {.tp = 8, .pp = 4}, .job = {.world = 32}},
       impossible, "world=64", "the world of 32 is no multiple of tp 8 * cp 2 * pp 4 = 64"},
      {"world", {.at = {.tp = 2, .dp = 2, .pp = 2}, .job = {.world = 16}}, {.at = {.tp = 2, .dp = 4, .pp = 2}, .job = {.world = 16}},
       impossible, "dp=4", "tp 2 * cp 1 * dp 2 * pp 2 is 8 ranks, but the world is 16"},
      {"world", {.at = {.tp = 2, .dp = 2, .pp = 2}, .job = {.world = 10}}, {.at = {.tp = 2, .dp = 2, .pp = 2}, .job = {.world = 8}},
       impossible, "world=8", "tp 2 * cp 1 * dp 2 * pp 2 is 8 ranks, but the world is 10"},
      {"expert-world", {.at = {.dp = 6, .ep = 4}}, {.at = {.dp = 6, .ep = 3}}, impossible, "ep=3 and ep=6", "the world of 6 is no multiple of the experts' etp 1 * ep 4 * pp 1 = 4"},
      {"expert-world", {.model = {.experts = 8}, .at = {.dp = 12, .ep = 8}}, {.model = {.experts = 8}, .at = {.dp = 12, .ep = 4}},
       impossible, "ep=4", "the world of 12 is no multiple of the experts' etp 1 * ep 8 * pp 1 = 8"},
      {"expert-world", {.at = {.tp = 2, .dp = 2, .ep = 2, .etp = 3}}, {.at = {.tp = 2, .dp = 2, .ep = 2, .etp = 2}},
       impossible, "etp=2", "the world of 4 is no multiple of the experts' etp 3 * ep 2 * pp 1 = 6"},
      {"heads", {.model = {.heads = 32}, .at = {.tp = 6}}, {.model = {.heads = 32}, .at = {.tp = 8}}, both, "tp=4 and tp=8", "the model has 32 attention heads, which tp 6 does not divide"},
      {"kv-heads", {.model = {.heads = 48, .kv_heads = 8}, .at = {.tp = 6}}, {.model = {.heads = 48, .kv_heads = 8}, .at = {.tp = 4}},
       both, "tp=4 and tp=8", "the model has 8 KV heads, and tp 6 neither divides 8 nor is a multiple of it"},
      {"kv-heads", {.model = {.heads = 48, .kv_heads = 8}, .at = {.tp = 16}}, {.model = {.heads = 48, .kv_heads = 8}, .at = {.tp = 8}},
       torchtitan, "tp=8", "the model has 8 KV heads, so that 2 ranks of tp 16 share each; Megatron-Core takes this from v0.16 on"},
      {"head-dim", {.model = {.hidden = 2880, .heads = 50}}, {.model = {.hidden = 2880, .heads = 50, .head_dim = 64}},
       megatron, "", "the hidden size is 2880, which 50 attention heads do not divide; no head_dim is said"},
      {"width", {.model = {.heads = 42, .width = 11008}, .at = {.tp = 3}}, {.model = {.heads = 42, .width = 11008}, .at = {.tp = 2}},  // 4 divides no 42
       megatron, "tp=2", "the MLP is 11008 wide, which tp 3 does not divide"},
      {"shared-width", {.model = {.shared_width = 5632}, .at = {.tp = 3}}, {.model = {.shared_width = 5632}, .at = {.tp = 2}},
       megatron, "tp=2 and tp=4", "the shared experts are 5632 wide, which tp 3 does not divide"},
      {"expert-width", {.model = {.expert_width = 1408}, .at = {.tp = 3, .ep = 2, .etp = 3}}, {.model = {.expert_width = 1408}, .at = {.tp = 3, .ep = 2}},
       megatron, "etp=2 and etp=4", "an expert is 1408 wide, which etp 3 does not divide"},
      {"expert-width", {.model = {.expert_width = 1408}, .at = {.tp = 3}}, {.model = {.expert_width = 1408}, .at = {.tp = 3, .etp = 1}},
       megatron, "tp=2 and tp=4", "an expert is 1408 wide, which tp 3 does not divide"},
      {"experts", {.model = {.experts = 60}, .at = {.ep = 8}}, {.model = {.experts = 60}, .at = {.ep = 10}}, impossible, "ep=6 and ep=10", "a layer has 60 experts, which ep 8 does not divide"},
      {"experts", {.model = {.experts = 60}, .at = {.dp = 8, .ep = 8}}, {.model = {.experts = 60}, .at = {.dp = 8, .ep = 4}},  // 6 and 10 divide no 8
       impossible, "ep=4", "a layer has 60 experts, which ep 8 does not divide"},
      {"stages", {.model = {.layers = 30}, .at = {.pp = 33}}, {.model = {.layers = 30}, .at = {.pp = 30}}, impossible, "pp=30", "the model has 30 layers, fewer than the stages of pp 33"},
      {"stages", {.model = {.layers = 126}, .at = {.pp = 16, .vpp = 8}}, {.model = {.layers = 126}, .at = {.pp = 6, .vpp = 7}},  // Llama 3 405B
       megatron, "pp=15", "the model has 126 layers, fewer than the stages of pp 16 * vpp 8 = 128; Megatron-Core takes it where the embedding and the loss count as a layer each, as remesh does with --stages balanced"},
      {"stages", {.model = {.layers = 30}, .at = {.pp = 31}}, {.model = {.layers = 30}, .at = {.pp = 15}},
       megatron, "pp=30", "the model has 30 layers, fewer than the stages of pp 31; Megatron-Core takes it where the embedding or the loss counts as a layer, as remesh does with --stages balanced"},
      {"stages", {.model = {.layers = 5}, .at = {.pp = 2, .vpp = 4}}, {.model = {.layers = 8}, .at = {.pp = 2, .vpp = 4}},
       impossible, "", "the model has 5 layers, fewer than the stages of pp 2 * vpp 4 = 8"},
      {"stages", {.model = {.layers = 32}, .at = {.vpp = 2}}, {.model = {.layers = 32}, .at = {.pp = 2, .vpp = 2}},
       impossible, "vpp=1", "vpp is 2, but pp is 1; virtual stages are for pipelines of 2 and more"},
      {"stages", {.model = {.layers = 30}, .at = {.pp = 4}, .stages = {7, 7, 7, 7}}, {.model = {.layers = 30}, .at = {.pp = 4}, .stages = {7, 8, 8, 7}},
       impossible, "", "the listed stages have 28 layers, but the model has 30"},
      {"stages", {.model = {.layers = 30}, .at = {.pp = 2, .vpp = 2}, .stages = {15, 15}}, {.model = {.layers = 30}, .at = {.pp = 2, .vpp = 2}, .stages = {7, 8, 8, 7}},
       impossible, "", "2 stages are listed, but there are pp 2 * vpp 2 = 4"},
      {"stages", {.at = {.pp = 3}, .stages = {4, 0, 4}}, {.at = {.pp = 3}, .stages = {3, 1, 4}}, impossible, "", "stage 1 of the list has no layer"},
      {"layers-vpp", {.model = {.layers = 60}, .at = {.pp = 8}}, {.model = {.layers = 60}, .at = {.pp = 8}, .stages = {7, 8, 8, 8, 8, 8, 7, 6}},
       megatron, "pp=6 and pp=10", "the model has 60 layers, which pp 8 does not divide; Megatron-Core must be told the layers of the first or last stage, or a layout string"},
      {"layers-vpp", {.model = {.layers = 126}, .at = {.pp = 8, .vpp = 8}}, {.model = {.layers = 128}, .at = {.pp = 8, .vpp = 8}},
       megatron, "", "the model has 126 layers, which pp 8 * vpp 8 = 64 does not divide; Megatron-Core takes it where the embedding and the loss count as a layer each"},
      {"layers-vpp", {.model = {.layers = 80}, .at = {.pp = 8, .vpp = 3}}, {.model = {.layers = 80}, .at = {.pp = 8, .vpp = 5}},
       megatron, "vpp=2 and vpp=5", "the model has 80 layers, which pp 8 * vpp 3 = 24 does not divide; Megatron-Core must be told the layers of the first or last stage, or a layout string"},
      {"layers-vpp", {.model = {.layers = 31}, .at = {.pp = 4}}, {.model = {.layers = 32}, .at = {.pp = 4}},
       megatron, "pp=1 and pp=31", "the model has 31 layers, which pp 4 does not divide; Megatron-Core takes it where the embedding or the loss counts as a layer"},
      {"vocabulary", {.model = {.vocabulary = 50257}, .at = {.tp = 8}}, {.model = {.vocabulary = 50264}, .at = {.tp = 8}},
       {}, "", "the vocabulary has 50257 rows, which tp 8 does not divide; Megatron-Core pads it to 51200, a multiple of 128 * tp"},
      {"empty-shards", {.model = {.hidden = 768}, .job = {.shards = 1024}}, {.model = {.hidden = 768}, .job = {.shards = 768}},
       {}, "shards=768", "1024 shards of the 768 rows of a norm leave 256 without any"},
      {"empty-shards", {.model = {.hidden = 10}, .job = {.shards = 8}}, {.model = {.hidden = 10}, .job = {.shards = 5}},  // 2 each, as torch.chunk does it
       {}, "shards=5 and shards=10", "8 shards of the 10 rows of a norm leave 3 without any"},
      {"empty-shards", {.model = {.hidden = 512, .heads = 8, .kv_heads = 8}, .at = {.tp = 8}, .job = {.shards = 128}}, {.model = {.kv_heads = 8, .head_dim = 64}, .at = {.tp = 8}, .job = {.shards = 64}},
       {}, "shards=64", "128 shards of the 64 rows of K on tp 8 leave 64 without any"},
      {"empty-shards", {.model = {.width = 1024}, .at = {.tp = 4}, .job = {.shards = 512}}, {.model = {.width = 1024}, .at = {.tp = 4}, .job = {.shards = 256}},
       {}, "shards=256", "512 shards of the 256 rows of the MLP on tp 4 leave 256 without any"},
      {"sequence-cp", {.at = {.cp = 2}, .job = {.sequence = 8190}}, {.at = {.cp = 2}, .job = {.sequence = 8192}},
       both, "sequence=8188 and sequence=8192", "the sequence of 8190 is no multiple of 2 * cp 2 = 4"},
      {"sequence-tp", {.at = {.tp = 8}, .job = {.sequence = 4100, .sequence_parallel = true}}, {.at = {.tp = 8}, .job = {.sequence = 4100, .sequence_parallel = false}},
       both, "sequence=4096 and sequence=4104", "the sequence of 4100 is no multiple of cp 1 * tp 8 = 8"},
      {"sequence-tp", {.at = {.tp = 8, .cp = 2}, .job = {.sequence = 4104, .sequence_parallel = true}}, {.at = {.tp = 4, .cp = 2}, .job = {.sequence = 4104, .sequence_parallel = true}},
       both, "sequence=4096 and sequence=4112", "the sequence of 4104 is no multiple of cp 2 * tp 8 = 16"},
      {"expert-sequence-parallel", {.at = {.tp = 2, .ep = 8}, .job = {.sequence_parallel = false}}, {.at = {.tp = 1, .ep = 8}, .job = {.sequence_parallel = false}},
       megatron, "", "ep 8 beside tp 2 needs sequence parallelism, which is off"},
      {"batch", {.at = {.dp = 12}, .job = {.global_batch = 1538, .micro_batch = 4}}, {.at = {.dp = 12}, .job = {.global_batch = 1536, .micro_batch = 4}},  // as GPT-NeoX printed it
       {"Megatron-Core", "DeepSpeed"}, "global_batch=1536 and global_batch=1584", "the global batch of 1538 is no multiple of micro batch 4 * dp 12 = 48"},
      {"batch", {.at = {.tp = 4}, .job = {.world = 32, .global_batch = 6, .micro_batch = 1}}, {.at = {.tp = 4}, .job = {.world = 32, .global_batch = 8, .micro_batch = 1}},
       {"Megatron-Core", "DeepSpeed"}, "global_batch=8", "the global batch of 6 is no multiple of micro batch 1 * dp 8 = 8"},
      {"micro-batches", {.at = {.dp = 2, .pp = 4, .vpp = 2}, .job = {.global_batch = 12, .micro_batch = 1}}, {.at = {.dp = 2, .pp = 4}, .job = {.global_batch = 12, .micro_batch = 1}},
       megatron, "global_batch=8 and global_batch=16", "a pipeline has 6 micro batches, no multiple of pp 4, as interleaving (vpp 2) asks"},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message);
    const bool nobody_can = row.refused_by == impossible;
    const BrokenRule broken{row.rule, row.message, row.nearest, nobody_can,
                            nobody_can ? Names() : row.refused_by};
    EXPECT_THAT(judged(row.asked), ElementsAre(broken));
    EXPECT_THAT(judged(row.legal), IsEmpty());
  }
}

TEST(BrokenRules, AreAllNamedInAFixedOrder) {
  const Asked asked{.model = {.layers = 10, .heads = 32, .kv_heads = 8, .width = 100, .experts = 6},
                    .at = {.tp = 6, .cp = 2, .pp = 4, .ep = 4},
                    .job = {.world = 100, .sequence = 4094, .sequence_parallel = false}};
  EXPECT_THAT(names(judged(asked)),
              ElementsAre("world", "expert-world", "heads", "kv-heads", "width", "experts",
                          "layers-vpp", "sequence-cp", "expert-sequence-parallel"));
  EXPECT_EQ(judged(asked), judged(asked));
}

TEST(BrokenRules, AreNotJudgedByWhatIsNotSaid) {
  // clang-format off
  EXPECT_THAT(judged({.at = {.tp = 7, .cp = 3, .pp = 5, .ep = 11, .vpp = 13}}), IsEmpty());
  EXPECT_THAT(judged({.at = {.tp = 7, .ep = 2}, .job = {.sequence = 5}}), IsEmpty()) << "sequence_parallel";
  EXPECT_THAT(judged({.at = {.tp = 7}, .job = {.global_batch = 5, .micro_batch = 2}}), IsEmpty()) << "dp";
  EXPECT_THAT(judged({.at = {.dp = 7}, .job = {.global_batch = 5}}), IsEmpty()) << "micro_batch";
  EXPECT_THAT(judged({.model = {.hidden = 100, .heads = 8, .kv_heads = 2, .latent_attention = true}, .at = {.tp = 4}, .job = {.shards = 50}}), IsEmpty()) << "heads of other sizes";
  EXPECT_THAT(names(judged({.model = {.heads = 8, .kv_heads = 8}, .at = {.tp = 3}})), ElementsAre("heads")) << "each has its own K and V";
  // clang-format on
}

TEST(BrokenRules, RefuseNumbersThatNoMeshHas) {
  const auto error_of = [](const Asked& asked) -> std::string {
    try {
      judged(asked);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return error.what();
    }
    return "none";
  };
  const Index most = Index{1} << 31;
  const std::string start = "cannot judge a mesh: ";
  const std::string end = ", but 1 to 2147483648 is expected";
  EXPECT_EQ(error_of({.at = {.tp = 0}}), start + "tp is 0" + end);
  EXPECT_EQ(error_of({.at = {.dp = -1}}), start + "dp is -1" + end);
  EXPECT_EQ(error_of({.model = {.kv_heads = 0}}), start + "kv_heads is 0" + end);
  EXPECT_EQ(error_of({.job = {.shards = most + 1}}), start + "shards is 2147483649" + end);
  EXPECT_EQ(error_of({.at = {.tp = 65536, .cp = 65536}}),
            start + "tp * cp * dp * pp is more than 2147483648 ranks");
  EXPECT_EQ(error_of({.at = {.pp = most, .ep = most, .etp = most}}),
            start + "etp * ep * pp is more than 2147483648 ranks");

  // clang-format off
  const ModelSizes model{.layers = most, .hidden = most, .heads = most, .kv_heads = most - 1, .head_dim = most,
                         .width = most, .shared_width = most, .expert_width = most, .experts = most, .vocabulary = most};
  const JobShape job{.world = most, .sequence = most, .global_batch = most, .micro_batch = most,
                     .sequence_parallel = true, .shards = most};
  // clang-format on
  for (const Index many : {Index{3}, most - 1, most}) {
    EXPECT_EQ(error_of({model, {.tp = many, .vpp = most}, job, {}}), "none");
    EXPECT_EQ(error_of({model, {.pp = many, .vpp = most}, job, {}}), "none");
    EXPECT_EQ(error_of({model, {.cp = many, .ep = many}, job, {}}), "none");
  }
}

TEST(BrokenRules, OfAMeshAreThoseOfItsDegrees) {
  const Mesh folded = parse_mesh("tp=2,cp=2,dp=4,pp=3,ep=8,etp=2,vpp=5");
  const Degrees at{.tp = 2, .cp = 2, .dp = 4, .pp = 3, .ep = 8, .etp = 2, .vpp = 5};
  EXPECT_EQ(degrees_of(folded), at);
  EXPECT_EQ(degrees_of(parse_mesh("tp=2,dp=3")), (Degrees{.tp = 2, .dp = 3}));
  EXPECT_EQ(degrees_of(Mesh({{"tp", 2}, {"row", 3}, {"dp", 5}})), (Degrees{.tp = 2, .dp = 15}));
  EXPECT_EQ(degrees_of(Mesh()), (Degrees{.dp = 1}));
  const ModelSizes model{.layers = 31, .heads = 9, .expert_width = 7, .experts = 12};
  const JobShape job{.sequence = 6, .global_batch = 9, .micro_batch = 2};
  const auto rules = names(broken_rules(model, folded, job));
  EXPECT_EQ(broken_rules(model, folded, job), broken_rules(model, at, job));
  EXPECT_THAT(
      rules, ElementsAre("heads", "expert-width", "experts", "layers-vpp", "sequence-cp", "batch"));
  EXPECT_THAT(names(broken_rules(model, folded, {.world = 96})), Contains("world")) << "it has 48";
  const Stages listed = StageRule::parse("3,*").deal(31, 3, 5);
  EXPECT_THAT(names(broken_rules(model, folded, job, &listed)), Not(Contains("layers-vpp")));
}

// ---- The values that are offered

Index& number(Asked& asked, const std::string& name) {
  if (name == "tp") return asked.at.tp;
  if (name == "pp") return asked.at.pp;
  if (name == "ep") return asked.at.ep;
  if (name == "vpp") return asked.at.vpp;
  if (name == "dp") return *asked.at.dp;
  if (name == "etp") return *asked.at.etp;
  if (name == "world") return *asked.job.world;
  if (name == "sequence") return *asked.job.sequence;
  return name == "shards" ? *asked.job.shards : *asked.job.global_batch;
}

// The rules that a value of `name` must keep, where `rule` is complained of.
std::set<std::string> rules_of(const std::string& name, const std::string& rule) {
  if (name == "tp") return {"heads", "kv-heads", "width", "shared-width", "expert-width"};
  if (name == "ep") return {"experts", "expert-world"};
  if (name == "etp") return {"expert-width", "expert-world"};
  if (name == "pp" || name == "vpp") return {rule, "stages"};
  return name == "global_batch" ? std::set<std::string>{rule, "batch"} : std::set{rule};
}

bool shares_kv_heads(const BrokenRule& broken) {
  return broken.rule == "kv-heads" && broken.refused_by == torchtitan;
}

// The nearest of all values, up to some way above.
std::string by_brute_force(Asked asked, const std::string& name, const BrokenRule& complaint) {
  std::set<std::string> rules = rules_of(name, complaint.rule);
  const auto keeps = [&](Index value) {
    number(asked, name) = value;
    return std::ranges::none_of(judged(asked), [&](const BrokenRule& broken) {
      return rules.contains(broken.rule) &&
             (!shares_kv_heads(broken) || shares_kv_heads(complaint));
    });
  };
  const Index value = number(asked, name);
  if (name == "tp" && asked.at.etp) rules.erase("expert-width");
  // No ep helps where etp alone is too much for the world, and the other way round.
  number(asked, name) = 1;
  const bool never = std::ranges::count(names(judged(asked)), "expert-world") != 0;
  if (never && complaint.rule != "expert-world") rules.erase("expert-world");

  std::string found;
  for (Index lower = value - 1; lower > 0 && found.empty(); --lower) {
    if (keeps(lower)) found = name + "=" + std::to_string(lower);
  }
  const Index above = name == "world" || name == "global_batch" ? 2000 : 200;
  for (Index upper = value + 1; upper <= value + above; ++upper) {
    if (!keeps(upper)) continue;
    return found + (found.empty() ? "" : " and ") + name + "=" + std::to_string(upper);
  }
  return found;
}

Asked random_asked(std::mt19937& random) {
  const auto up_to = [&](Index most) { return 1 + static_cast<Index>(random()) % most; };
  const auto perhaps = [&](Index most) {
    return random() % 2 == 0 ? std::optional<Index>(up_to(most)) : std::nullopt;
  };
  // clang-format off
  if (random() % 8 == 0) return {.model = {.hidden = up_to(60)}, .job = {.shards = up_to(70)}};
  Asked asked{.model = {.layers = perhaps(40), .heads = perhaps(40), .kv_heads = perhaps(8), .width = perhaps(60),
                        .shared_width = perhaps(60), .expert_width = perhaps(30), .experts = perhaps(30)},
              .at = {.tp = up_to(12), .cp = up_to(3), .dp = perhaps(9), .pp = up_to(5)},
              .job = {.world = perhaps(96), .sequence = perhaps(100), .global_batch = perhaps(99),
                      .micro_batch = perhaps(3), .sequence_parallel = random() % 2 == 0}};
  // clang-format on
  if (asked.at.pp > 1) asked.at.vpp = up_to(4);
  if (random() % 2 == 0) asked.at.ep = up_to(12);
  if (asked.at.ep > 1 || random() % 4 == 0) asked.at.etp = up_to(3);
  return asked;
}

// What would have been turned, where a rule offers nothing.
std::string usual_name(const Asked& asked, const std::string& rule) {
  if (rule == "experts" || rule == "expert-world") return "ep";
  if (rule == "expert-width" && asked.at.etp) return "etp";
  return rule == "stages" || rule == "layers-vpp" ? "pp" : "tp";
}

TEST(NearestValues, AreThoseOfBruteForce) {
  std::set<std::string> offers;
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const Asked asked = random_asked(random);
    for (const BrokenRule& broken : judged(asked)) {
      if (broken.rule == "expert-sequence-parallel") continue;  // it has nothing to turn
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ::testing::PrintToString(broken));
      const std::string offered = broken.nearest.substr(0, broken.nearest.find('='));
      const std::string name = offered.empty() ? usual_name(asked, broken.rule) : offered;
      EXPECT_EQ(broken.nearest, by_brute_force(asked, name, broken));
      if (!offered.empty()) offers.insert(broken.rule + " " + offered);
    }
  }
  // clang-format off
  EXPECT_THAT(offers, ElementsAre(
      "batch global_batch", "empty-shards shards", "expert-width etp", "expert-width tp", "expert-world ep", "expert-world etp",
      "experts ep", "heads tp", "kv-heads tp", "layers-vpp pp", "layers-vpp vpp", "micro-batches global_batch", "sequence-cp sequence",
      "sequence-tp sequence", "shared-width tp", "stages pp", "width tp", "world dp", "world world"));
  // clang-format on
}

// ---- Published jobs

TEST(PublishedJobs, OfTablesAreLegal) {
  // clang-format off
  const Index jobs[][8] = {  // heads, hidden, layers, tp, pp, dp, world, global batch
      // Narayanan et al. 2021, table 1
      {24, 2304, 24, 1, 1, 32, 32, 512}, {32, 3072, 30, 2, 1, 32, 64, 512}, {32, 4096, 36, 4, 1, 32, 128, 512}, {48, 6144, 40, 8, 1, 32, 256, 1024},
      {64, 8192, 48, 8, 2, 32, 512, 1536}, {80, 10240, 60, 8, 4, 32, 1024, 1792}, {96, 12288, 80, 8, 8, 24, 1536, 2304},
      {128, 16384, 96, 8, 16, 15, 1920, 2160}, {128, 20480, 105, 8, 35, 9, 2520, 2520}, {160, 25600, 128, 8, 64, 6, 3072, 3072},
      // the README of Megatron-LM, H100
      {16, 2048, 24, 1, 1, 48, 48, 192}, {32, 4096, 30, 2, 1, 48, 96, 192}, {48, 6144, 32, 4, 1, 48, 192, 192}, {56, 7168, 48, 8, 1, 48, 384, 192},
      {64, 8192, 84, 8, 2, 48, 768, 384}, {80, 10240, 92, 8, 4, 48, 1536, 768}, {96, 12288, 96, 8, 6, 48, 2304, 1152},
      {128, 16384, 96, 8, 8, 48, 3072, 1536}, {144, 18432, 112, 8, 16, 48, 6144, 3072},
  };
  for (const auto& [heads, hidden, layers, tp, pp, dp, world, global_batch] : jobs) {
    EXPECT_THAT(judged({.model = {.layers = layers, .hidden = hidden, .heads = heads}, .at = {.tp = tp, .dp = dp, .pp = pp},
                        .job = {.world = world, .global_batch = global_batch, .micro_batch = 1}}), IsEmpty()) << world;
  }
  // BLOOM: 70 layers over 12 stages, the embedding and the output as one each.
  EXPECT_THAT(judged({.model = {.layers = 70, .heads = 112, .vocabulary = 250880}, .at = {.tp = 4, .pp = 12},
                      .job = {.world = 384, .global_batch = 2048, .micro_batch = 2},
                      .stages = {5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}}), IsEmpty());
  // Megatron's guide: DeepSeek-V3 on 1024 ranks, though tp * pp * ep is 2048.
  EXPECT_THAT(judged({.at = {.tp = 2, .pp = 16, .ep = 64}, .job = {.world = 1024}}), IsEmpty());
  // Llama 3's long contexts, as the paper has them now, and as it had them at first.
  EXPECT_THAT(judged({.at = {.tp = 8, .cp = 16, .dp = 8, .pp = 16}, .job = {.world = 16384}}), IsEmpty());
  EXPECT_THAT(judged({.at = {.tp = 8, .cp = 16, .dp = 4, .pp = 16}, .job = {.world = 16384}}),
              ElementsAre(BrokenRule{"world", "tp 8 * cp 16 * dp 4 * pp 16 is 8192 ranks, but the world is 16384", "dp=8", true, {}}));
  // NVIDIA's dgxc tables print the experts' dp for Kimi K2.
  EXPECT_THAT(judged({.at = {.dp = 4, .pp = 4, .ep = 16}, .job = {.world = 256}}),
              ElementsAre(BrokenRule{"world", "tp 1 * cp 1 * dp 4 * pp 4 is 16 ranks, but the world is 256; dp 4 looks like that of "
                                              "the experts (edp)", "dp=64", true, {}}));
  // clang-format on
}

// Published files that are not ours to ship.
fs::path shared_file(const std::string& name) {
  return fs::path(REMESH_SOURCE_DIR) / "../shared/data" / name;
}

// The performance tables of Megatron-Bridge. They have no etp: it is 1 there. With Megatron's own
// default, which is tp, 19 of the rows would be no mesh at all.
const fs::path bridge = shared_file("advise/megatron_bridge_rows.csv");

#define REMESH_NEEDS(path)                                        \
  if (!fs::exists(path)) {                                        \
    GTEST_SKIP() << "did not run: " << (path) << " is not there"; \
  }

struct BridgeRow {
  std::string model;
  Degrees at;
  JobShape job;
};

std::vector<BridgeRow> bridge_rows() {
  std::ifstream file(bridge);
  std::vector<BridgeRow> rows;
  std::string line;
  std::getline(file, line);  // release,kind,model,system,gpus,precision,gbs,mbs,seq,fsdp,tp,pp,...
  while (std::getline(file, line)) {
    Names cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    // "n/a" is 1. Of "1 (4)", two settings in one row, the other columns are for the first.
    const auto number = [&](std::size_t at) {
      return std::max<Index>(1, std::strtol(cells.at(at).c_str(), nullptr, 10));
    };
    // clang-format off
    rows.push_back({cells.at(2), {.tp = number(10), .cp = number(12), .pp = number(11), .ep = number(14), .vpp = number(13)},
                    {.world = number(4), .sequence = number(8), .global_batch = number(6), .micro_batch = number(7)}});
    // clang-format on
  }
  return rows;
}

TEST(BridgeRows, AreLegalByTheFoldedRuleAlone) {
  REMESH_NEEDS(bridge);
  int refused_by_product = 0;
  int refused_by_etp = 0;
  const std::vector<BridgeRow> rows = bridge_rows();
  for (const auto& [model, at, job] : rows) {
    EXPECT_THAT(broken_rules({}, at, job), IsEmpty()) << model;
    if (*job.world % (at.tp * at.pp * at.cp * at.ep) != 0) ++refused_by_product;
    Degrees wide = at;
    wide.etp = at.tp;
    if (names(broken_rules({}, wide, job)) == Names{"expert-world"}) ++refused_by_etp;
  }
  EXPECT_EQ(rows.size(), 278U);
  EXPECT_EQ(refused_by_product, 19) << "ep is no factor beside the others";
  EXPECT_EQ(refused_by_etp, 19);
}

TEST(BridgeRows, AreRefusedOnceTheyAreSpoilt) {
  REMESH_NEEDS(bridge);
  for (const auto& [model, at, job] : bridge_rows()) {
    const auto refused = [good = at, world = job.world](Index Degrees::*axis, Index factor) {
      Degrees bad = good;
      bad.*axis *= factor;
      return names(broken_rules({}, bad, {.world = world}));
    };
    EXPECT_THAT(refused(&Degrees::tp, 2 * *job.world), Contains("world"));
    EXPECT_THAT(refused(&Degrees::cp, 3), ElementsAre("world"));
    EXPECT_THAT(refused(&Degrees::ep, 3), ElementsAre("expert-world"));
    EXPECT_THAT(refused(&Degrees::pp, 3), Contains("world"));
  }
}

// ---- The sizes of models

TEST(ModelSizes, AreReadUnderAnyOfTheirNames) {
  // clang-format off
  const std::pair<const char*, ModelSizes> table[] = {
      {"", {}},
      {R"({"n_embd": 1280, "n_head": 20, "n_layer": 36, "n_inner": null, "vocab_size": 50257})",
       {.layers = 36, .hidden = 1280, .heads = 20, .width = 5120, .vocabulary = 50257}},
      {R"({"n_embd": 1280, "n_inner": 4000})", {.hidden = 1280, .width = 4000}},
      {R"({"hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072})",
       {.layers = 28, .hidden = 1024, .heads = 16, .kv_heads = 8, .head_dim = 128, .width = 3072}},
      {R"({"intermediate_size": 14336, "num_local_experts": 8})", {.expert_width = 14336, .experts = 8}},
      {R"({"intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "decoder_sparse_step": 1})", {.expert_width = 768, .experts = 128}},
      {R"({"intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "decoder_sparse_step": 2})", {.width = 6144, .expert_width = 768, .experts = 128}},
      {R"({"intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 16, "interleave_moe_layer_step": 2})", {.width = 16384, .expert_width = 8192, .experts = 16}},
      {R"({"num_experts": 60, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632})", {.shared_width = 5632, .expert_width = 1408, .experts = 60}},
      {R"({"n_routed_experts": 256, "moe_intermediate_size": 2048, "n_shared_experts": 2, "intermediate_size": 18432, "first_k_dense_replace": 3, "num_key_value_heads": 128, "kv_lora_rank": 512})",
       {.width = 18432, .shared_width = 4096, .expert_width = 2048, .experts = 256, .latent_attention = true}},
      {R"({"hidden_size": 9, "text_config": {"hidden_size": 2816, "num_attention_heads": 16}, "vision_config": {"num_hidden_layers": 27}})", {.hidden = 9, .heads = 16}},
      {R"({"hidden_size": "x", "num_attention_heads": [8], "num_hidden_layers": 0, "head_dim": -1, "vocab_size": 2147483649, "num_experts": 0, "n_embd": 1e9})", {}},
  };
  // clang-format on
  for (const auto& [config, sizes] : table) EXPECT_EQ(model_sizes(config), sizes) << config;
  EXPECT_THROW(model_sizes("[]"), Error);
}

TEST(BridgeRows, OfKnownModelsAreUnevenAtMost) {
  // clang-format off
  const std::map<std::string, std::string> configs{
      {"LLAMA3_8B", "meta-llama--Meta-Llama-3.1-8B"}, {"LLAMA3_70B", "meta-llama--Meta-Llama-3.1-70B"}, {"Kimi_K2", "moonshotai--Kimi-K2-Instruct"},
      {"LLAMA3.1_405B", "meta-llama--Meta-Llama-3.1-405B"}, {"Qwen3_30B_a3B", "Qwen--Qwen3-30B-A3B"}, {"Qwen3_235B_a22B", "Qwen--Qwen3-235B-A22B"},
      {"DeepSeekV3", "deepseek-ai--DeepSeek-V3"}, {"GPT OSS 120B", "openai--gpt-oss-120b"}, {"Nemotron_3_Nano", "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"}};
  // clang-format on
  REMESH_NEEDS(bridge);
  REMESH_NEEDS(shared_file("real/configs"));
  std::map<std::string, int> broken;
  for (const auto& [model, at, job] : bridge_rows()) {
    if (!configs.contains(model)) continue;
    std::ifstream file(shared_file("real/configs/" + configs.at(model) + ".config.json"));
    const std::string config{std::istreambuf_iterator<char>(file), {}};
    for (const BrokenRule& rule : broken_rules(model_sizes(config), at, job)) {
      EXPECT_EQ(rule.refused_by, megatron) << "and it takes these where it is told how";
      ++broken[rule.rule];
    }
  }
  EXPECT_THAT(broken, ElementsAre(std::pair("layers-vpp", 86), std::pair("stages", 9)));
}

}  // namespace
}  // namespace remesh
