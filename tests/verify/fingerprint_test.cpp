#include "remesh/verify/fingerprint.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "dense_store.hpp"
#include "job.hpp"
#include "remesh/core/error.hpp"
#include "seeds.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<TensorDesc> tensors{{"b.weight", DType::bf16, Box{{0, 2}, {0, 3}}},
                                      {"a scalar%", DType::f32, Box{}},
                                      {"empty", DType::i8, Box{{0, 0}}}};
const std::vector<std::string> digests{"crc64xz:0123456789abcdef", "crc64xz:fedcba9876543210",
                                       "crc64xz:0000000000000000"};

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
  std::vector<std::string> changed = digests;
  other[0].dtype = DType::f16;
  changed[1].back() = '1';
  other[2].name = "new";
  EXPECT_THAT(compare_fingerprint(lines, other, changed),
              ElementsAre(Field(&Finding::id, "RM311"), Field(&Finding::id, "RM303"),
                          Field(&Finding::id, "RM302"), Field(&Finding::id, "RM310")));
}

TEST(Fingerprint, ATensorWithoutANameReadsBackToo) {
  const std::vector<TensorDesc> nameless{{"", DType::u8, Box{{0, 1}}}};
  const std::vector<std::string> one{"crc64xz:0000000000000007"};
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
      {"", Errc::corrupt, "line 1"},
      {"model.norm.weight bf16 [64] crc64xz:0123456789abcdef\n", Errc::corrupt, "line 1"},
      {"# remesh fingerprint 2\n", Errc::unsupported, "version 2"},
      {"# remesh fingerprint 1\na f32 [1]\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f33 [1] crc64xz:0123456789abcdef\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [1,] crc64xz:0123456789abcdef\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [-1] crc64xz:0123456789abcdef\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [1] crc64xz:012\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na%2 f32 [1] crc64xz:0123456789abcdef\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [1] crc64xz:0123456789abcdef\n"
       "a f32 [1] crc64xz:0123456789abcdef\n",
       Errc::corrupt, "line 3"},
      {"# remesh fingerprint 1\n\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [1] sha256:00\n", Errc::unsupported,
       "line 2 has a digest of kind 'sha256', but this build reads crc64xz and blake2b"},
      {"# remesh fingerprint 1\na f32 [1] blake2b:0123456789abcdef\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [1] crc64xz:0123456789ABCDEF\n", Errc::corrupt, "line 2"},
      {"# remesh fingerprint 1\na f32 [1] crc64xz:0123456789abcdef\n"
       "b f32 [1] blake2b:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
       Errc::corrupt, "line 3 has a digest of another kind"},
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

std::vector<std::string> blake2b_of(const std::vector<test::Dense>& all, int threads,
                                    test::Arbitrary* layouts) {
  test::Machine machine(threads);
  const auto store = test::stored(all, layouts);
  return fingerprint_digests(machine.judge(), *store->reader(), DigestKind::blake2b);
}

// The hash of "abc" is that of RFC 7693's function with 32 bytes of output, as `b2sum -l 256` has
// it.
TEST(Fingerprint, Blake2bIsOfTheLogicalBytes) {
  const test::Dense abc{{"abc", DType::u8, Box{{0, 3}}},
                        {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}};
  const test::Dense none{{"none", DType::f32, Box{{0, 0}}}, {}};
  EXPECT_THAT(
      blake2b_of({abc, none}, 1, nullptr),
      ElementsAre("blake2b:bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
                  "blake2b:0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"));
}

TEST(Fingerprint, Blake2bDependsOnNoLayout) {
  for (unsigned seed = 0; seed < test::num_seeds(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    std::vector<test::Dense> drawn;
    for (TensorDesc& desc : arbitrary.tensors()) {
      const auto size = num_bytes(desc);
      drawn.push_back({std::move(desc), arbitrary.bytes(size)});
    }
    EXPECT_EQ(blake2b_of(drawn, 3, &arbitrary), blake2b_of(drawn, 1, nullptr));
  }
}

// Rows that are longer than what is read at a time, and a last part that is shorter.
TEST(Fingerprint, Blake2bOfSeveralPanels) {
  test::Arbitrary arbitrary(1);
  test::Dense wide{{"wide", DType::bf16, Box{{0, 3}, {0, 700'000}}}, arbitrary.bytes(4'200'000)};
  test::Dense flat{{"flat", DType::u8, Box{{0, 4'200'000}}}, wide.bytes};
  const auto found = blake2b_of({wide, flat}, 2, nullptr);
  EXPECT_EQ(found[0], found[1]);
  flat.bytes.back() ^= std::byte{1};
  EXPECT_NE(blake2b_of({flat}, 2, nullptr)[0], found[0]);
}

TEST(Fingerprint, GuessesTheNamesOfAnotherModel) {
  std::vector<TensorDesc> theirs;
  for (const TensorDesc& desc : tensors)
    theirs.push_back({"model." + desc.name, desc.dtype, desc.extent});
  EXPECT_THAT(fingerprint_hint(parse_fingerprint(text, "lock"), theirs),
              HasSubstr("3 of the 3 names that only the lock file has are those of the checkpoint "
                        "with 'model.' before them"));
  EXPECT_EQ(fingerprint_hint(parse_fingerprint(text, "lock"), tensors), "");
}

}  // namespace
}  // namespace remesh
