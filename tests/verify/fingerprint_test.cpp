#include "remesh/verify/fingerprint.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<TensorDesc> tensors{{"b.weight", DType::bf16, Box{{0, 2}, {0, 3}}},
                                      {"a scalar%", DType::f32, Box{}},
                                      {"empty", DType::i8, Box{{0, 0}}}};
const std::vector<Digest> digests{{0x0123456789abcdef}, {0xfedcba9876543210}, {0}};

const std::string text =
    "# remesh fingerprint 1\n"
    "a%20scalar%25 f32 [] crc64xz:fedcba9876543210\n"
    "b.weight bf16 [2,3] crc64xz:0123456789abcdef\n"
    "empty i8 [0] crc64xz:0000000000000000\n";

TEST(Fingerprint, IsSortedTextWithOneLineForEachTensor) {
  EXPECT_EQ(fingerprint_text(tensors, digests), text);
}

TEST(Fingerprint, ReadsBackWhatItWrote) {
  const auto lines = parse_fingerprint(text, "lock");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], (FingerprintLine{"a scalar%", "f32", {}, digests[1]}));
  EXPECT_EQ(lines[1], (FingerprintLine{"b.weight", "bf16", {2, 3}, digests[0]}));
  EXPECT_EQ(lines[2], (FingerprintLine{"empty", "i8", {0}, digests[2]}));
  EXPECT_THAT(compare_fingerprint(lines, tensors, digests), IsEmpty());
}

TEST(Fingerprint, EachKindOfDifferenceHasItsId) {
  const auto lines = parse_fingerprint(text, "lock");
  std::vector<TensorDesc> other = tensors;
  std::vector<Digest> changed = digests;
  other[0].dtype = DType::f16;
  changed[1].value ^= 1;
  other[2].name = "new";
  EXPECT_THAT(compare_fingerprint(lines, other, changed),
              ElementsAre(Field(&Finding::id, "RM311"), Field(&Finding::id, "RM303"),
                          Field(&Finding::id, "RM302"), Field(&Finding::id, "RM310")));
}

TEST(Fingerprint, ATensorWithoutANameReadsBackToo) {
  const std::vector<TensorDesc> nameless{{"", DType::u8, Box{{0, 1}}}};
  const std::vector<Digest> one{{7}};
  const auto lines = parse_fingerprint(fingerprint_text(nameless, one), "lock");
  EXPECT_THAT(compare_fingerprint(lines, nameless, one), IsEmpty());
}

struct Defect {
  const char* text;
  Errc code;
  const char* message;
};

TEST(Fingerprint, RefusesWhatItDoesNotWrite) {
  const std::vector<Defect> defects{
      {"", Errc::invalid_argument, "line 1"},
      {"model.norm.weight bf16 [64] crc64xz:0123456789abcdef\n", Errc::invalid_argument, "line 1"},
      {"# remesh fingerprint 2\n", Errc::unsupported, "version 2"},
      {"# remesh fingerprint 1\na f32 [1]\n", Errc::invalid_argument, "line 2"},
      {"# remesh fingerprint 1\na f33 [1] crc64xz:0123456789abcdef\n", Errc::invalid_argument,
       "line 2"},
      {"# remesh fingerprint 1\na f32 [1,] crc64xz:0123456789abcdef\n", Errc::invalid_argument,
       "line 2"},
      {"# remesh fingerprint 1\na f32 [-1] crc64xz:0123456789abcdef\n", Errc::invalid_argument,
       "line 2"},
      {"# remesh fingerprint 1\na f32 [1] crc64xz:012\n", Errc::invalid_argument, "line 2"},
      {"# remesh fingerprint 1\na%2 f32 [1] crc64xz:0123456789abcdef\n", Errc::invalid_argument,
       "line 2"},
      {"# remesh fingerprint 1\na f32 [1] crc64xz:0123456789abcdef\n"
       "a f32 [1] crc64xz:0123456789abcdef\n",
       Errc::invalid_argument, "line 3"},
      {"# remesh fingerprint 1\n\n", Errc::invalid_argument, "line 2"},
  };
  for (const Defect& defect : defects) {
    SCOPED_TRACE(defect.text);
    try {
      parse_fingerprint(defect.text, "lock");
      ADD_FAILURE() << "read it";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), defect.code);
      EXPECT_THAT(error.what(), HasSubstr("cannot read lock"));
      EXPECT_THAT(error.what(), HasSubstr(defect.message));
    }
  }
}

}  // namespace
}  // namespace remesh
