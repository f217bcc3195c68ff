#include "html_report.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layer_plots.hpp"
#include "layers.hpp"
#include "mesh_picture.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Finding finding(const std::string& id, const std::string& tensor, const std::string& message) {
  Finding made;
  made.id = id;
  made.tensor = tensor;
  made.message = message;
  return made;
}

Judgement judgement() {
  Judgement made;
  made.verb = "verify";
  made.title = "ckpt";
  made.sides.push_back({"ckpt", "remesh", parse_mesh("tp=2,pp=2"), false, true});
  made.groups.push_back({"ckpt", "", "123"});
  made.facts.emplace_back("path", "ckpt");
  return made;
}

std::size_t times(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST(LayerOf, IsTheFirstNumberThatIsNoExperts) {
  EXPECT_EQ(layer_of("model.layers.3.mlp.up_proj.weight"),
            (LayerName{3, "model.layers.*.mlp.up_proj.weight"}));
  EXPECT_EQ(layer_of("h.12.attn.c_attn.bias@exp_avg"),
            (LayerName{12, "h.*.attn.c_attn.bias@exp_avg"}));
  EXPECT_EQ(layer_of("model.layers.0.mlp.experts.7.w1"),
            (LayerName{0, "model.layers.*.mlp.experts.*.w1"}));
  EXPECT_EQ(layer_of("experts.7.w1"), (LayerName{no_layer, "experts.*.w1"}));
  EXPECT_EQ(layer_of("lm_head.weight"), (LayerName{no_layer, "lm_head.weight"}));
  EXPECT_EQ(layer_of("a.99999999999999999999.b"),
            (LayerName{no_layer, "a.99999999999999999999.b"}));
  EXPECT_EQ(layer_of(""), LayerName{});
  EXPECT_EQ(layer_of(".."), (LayerName{no_layer, ".."}));
}

TEST(HtmlReport, HostileNamesStayText) {
  Judgement made = judgement();
  const std::string hostile = "</script><img src=x onerror=\"a\">'\x1b\xe2\x80\xae";
  made.title = hostile;
  made.sides[0].path = hostile;
  made.facts.emplace_back(hostile, hostile);
  made.findings.push_back(finding("RM511", hostile, hostile));
  made.findings.back().file = hostile;
  made.findings.back().next_step = hostile;
  made.findings.back().found = hostile;
  made.ignored.rules.push_back({{"RM541", hostile, hostile, {}, hostile}, false, 1});
  made.ignored.findings.push_back({finding("RM541", hostile, hostile), 0});
  made.numbers.push_back({hostile + ".3", DType::bf16, 4, 1, 0, 0, 0, 0, -3, 2});
  const std::string page = html_report(made);
  EXPECT_EQ(times(page, "<script"), 1U);
  EXPECT_EQ(times(page, "</script"), 1U);
  EXPECT_EQ(times(page, "<img"), 0U);
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=&quot;a&quot;&gt;&#39;\\x1b"));
}

TEST(HtmlReport, AsksForNothing) {
  const std::string page = html_report(judgement());
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'; "
                              "script-src 'unsafe-inline'"));
  EXPECT_EQ(times(page, "://"), times(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  for (const char* word : {"url(", "@import", "<link", " src=", "fetch(", "XMLHttp"}) {
    EXPECT_EQ(times(page, word), 0U) << word;
  }
}

TEST(HtmlReport, CausesComeBeforeWhatFollows) {
  Judgement made = judgement();
  made.findings.push_back(finding("RM301", "a", "follows"));
  made.findings.push_back(finding("RM203", "", "cause"));
  made.findings.push_back(finding("RM108", "", "warns"));
  made.findings.back().severity = Severity::warn;
  const std::string page = html_report(made);
  EXPECT_LT(page.find(">cause<"), page.find(">follows<"));
  EXPECT_LT(page.find(">follows<"), page.find(">warns<"));
}

TEST(HtmlReport, ShowsTheGravestFindingsAndCountsTheRest) {
  Judgement made = judgement();
  for (int k = 0; k < 5000; ++k) {
    made.findings.push_back(finding("RM541", "model.layers.1.w", std::string(10'000, 'x')));
    made.findings.back().severity = Severity::warn;
  }
  made.findings.push_back(finding("RM202", "", "the grave one"));
  const std::string page = html_report(made);
  EXPECT_LT(page.size(), std::size_t{5} << 20);
  EXPECT_THAT(page, HasSubstr("the grave one"));
  EXPECT_THAT(page, HasSubstr("of 5001 findings, the gravest first"));
  EXPECT_LE(times(page, "<tr role=\"row\" data-severity"), 1000U);
}

TEST(HtmlReport, GreysWhatIsIgnoredAndSaysWhy) {
  Judgement made = judgement();
  using namespace std::chrono_literals;
  made.ignored.rules.push_back(
      {{"RM541", "", "padded", Day(2027y / 3 / 31), "remesh.toml line 3"}, false, 1});
  made.ignored.findings.push_back({finding("RM541", "embed", "more rows"), 0});
  const std::string page = html_report(made);
  EXPECT_THAT(page, HasSubstr("data-severity=\"ignored\" data-id=\"RM541\" class=\"is-ignored\""));
  EXPECT_THAT(page, HasSubstr("ignored by remesh.toml line 3 until 2027-03-31: padded"));
  EXPECT_THAT(page, HasSubstr("id=\"explain-RM541\""));
}

TEST(MeshPicture, DrawsEveryRankOfASmallMesh) {
  const std::string picture = mesh_picture(parse_mesh("tp=2,dp=3,pp=2"));
  for (int rank = 0; rank < 12; ++rank) {
    EXPECT_EQ(times(picture, ">" + std::to_string(rank) + "</text>"), rank == 3 ? 2U : 1U) << rank;
  }
  EXPECT_THAT(picture, HasSubstr(">tp 2 →</text>"));
  EXPECT_THAT(picture, HasSubstr(">dp ↓</text>"));
  EXPECT_THAT(picture, HasSubstr(">pp 1</text>"));
  EXPECT_THAT(picture, Not(HasSubstr("is drawn")));
  EXPECT_EQ(times(mesh_picture(Mesh()), "<rect"), 1U);
}

TEST(MeshPicture, SaysWhatItLeavesOutOfALargeOne) {
  const std::string picture = mesh_picture(parse_mesh("tp=64,cp=2,dp=512,pp=16"));
  EXPECT_LT(picture.size(), 300'000U);
  EXPECT_THAT(picture, HasSubstr("Of 1048576 ranks only tp 0-15 of 64, dp 0-2 of 512, pp 0-2 of 16 "
                                 "is drawn."));
  // dp 2, pp 2, cp 1, tp 15.
  EXPECT_THAT(picture, HasSubstr(">" + std::to_string(15 + 64 + 2 * 128 + 2 * 65536) + "</text>"));
}

TEST(LayerPlots, AreNothingWhereNothingIsKnown) {
  EXPECT_THAT(layer_plots(judgement()), IsEmpty());
}

TEST(LayerPlots, ShowBytesFindingsAndNumbersOfEachLayer) {
  Judgement made = judgement();
  made.sides[0].layer_bytes = {{no_layer, 5}, {0, 100}, {1, 50}};
  made.findings.push_back(finding("RM511", "layers.1.w", "x"));
  made.numbers.push_back({"layers.0.w", DType::bf16, 4, 1, 0, 0, 0, 0, -3, 2});
  made.numbers.push_back({"layers.1.w", DType::bf16, 4, 0, 2, 0, 0, 0, -9, -8});
  const std::string plots = layer_plots(made);
  EXPECT_THAT(plots, HasSubstr("at most 100 B a bar; 5 B in no layer"));
  EXPECT_THAT(plots, HasSubstr("layer 1: 1 finding"));
  EXPECT_THAT(plots, HasSubstr("<code>layers.<wbr>*.<wbr>w</code>"));
  EXPECT_THAT(plots, HasSubstr("layer 1: 2^-9 to 2^-8"));
  EXPECT_THAT(plots, HasSubstr(">2<sup>-9</sup> to 2<sup>2</sup></span></td>"));
  EXPECT_THAT(plots, HasSubstr("25.00 % (layer 0)"));
  EXPECT_THAT(plots, HasSubstr("<span class=\"badge error\">2</span>"));
}

TEST(LayerPlots, OfSeveralSidesTheDrawnOneAloneCounts) {
  Judgement made = judgement();
  made.sides.push_back({.path = "other", .layer_bytes = {{0, 1}, {1, 1}}, .name = "other"});
  made.drawn = "other";
  made.findings = {finding("RM511", "layers.0.w", "x"), finding("RM511", "layers.1.w", "x")};
  made.findings[0].side = "third";
  made.findings[1].side = "other";
  const std::string plots = layer_plots(made);
  EXPECT_THAT(plots, HasSubstr("layer 1: 1 finding"));
  EXPECT_THAT(plots, Not(HasSubstr("layer 0: 1 finding")));
  EXPECT_THAT(plots, HasSubstr("layer 0: 1 B"));
}

TEST(LayerPlots, AFindingOfALayerBeyondAllIsShownAtTheLast) {
  Judgement made = judgement();
  for (int layer = 0; layer < 1000; ++layer) made.sides[0].layer_bytes[layer] = 1;
  made.findings = {finding("RM310", "layers.900000000000000000.w", "x")};
  EXPECT_EQ(times(layer_plots(made), "1 finding"), 2U) << "a bar, and the highest of all";
}

TEST(LayerPlots, OfVeryManyLayersStayBounded) {
  Judgement made = judgement();
  for (int layer = 0; layer < 20'000; ++layer) made.sides[0].layer_bytes[layer] = 1;
  EXPECT_LT(layer_plots(made).size(), 100'000U);
}

}  // namespace
}  // namespace remesh
