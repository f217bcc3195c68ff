#include "remesh/store/seal.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faulty_file_system.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/forwarding_file_system.hpp"
#include "seal_format.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two files with a header of 8 bytes each: "w" lies in the second, "half" and "scalar" in the
// first, and "none" has no elements.
Seal small_seal() {
  Seal seal;
  seal.format = "hf";
  seal.tensors = {{"w", DType::bf16, Box{{0, 4}, {0, 2}}},
                  {"half", DType::u8, Box{{0, 3}}},
                  {"scalar", DType::f32, Box{}},
                  {"none", DType::f32, Box{{0, 0}, {0, 5}}}};
  seal.digests = {Digest{1}, Digest{2}, Digest{3}, Digest{}};
  std::vector<Extent> extents = {
      {.tensor = 0, .file = 1, .offset_bytes = 8, .length_bytes = 16, .box = Box{{0, 4}, {0, 2}}},
      {.tensor = 1, .file = 0, .offset_bytes = 8, .length_bytes = 3, .box = Box{{0, 3}}},
      {.tensor = 2, .file = 0, .offset_bytes = 11, .length_bytes = 4, .box = Box{}},
      {.tensor = 3, .file = 0, .box = Box{{0, 0}, {0, 5}}}};
  std::int64_t block = 0;
  for (Extent& extent : extents) extent.first_block = extent.length_bytes > 0 ? block++ : block;
  seal.extents = ExtentMap({{"a.safetensors", 15}, {"b.safetensors", 30}, {"config.json", 2}},
                           std::move(extents), {Digest{11}, Digest{12}, Digest{13}});
  seal.rest = {Digest{21}, Digest{22}, Digest{23}};
  return seal;
}

// The text with another end, so that it is refused for what stands in it and not for its digest.
std::string ended_anew(std::string_view text) {
  std::string out(text.substr(0, text.rfind(certificate_end)));
  const Digest digest = digest_of(std::as_bytes(std::span(out)));
  out += certificate_end;
  out += to_string(digest);
  out += "\"}";
  return out;
}

std::string replaced(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return ended_anew(std::string(text).replace(at, from.size(), to));
}

std::string id_of_refusal(std::string_view text) {
  try {
    parse_seal(text);
  } catch (const Error& error) {
    return error.id();
  }
  return "none";
}

TEST(Seal, SurvivesItsText) {
  const Seal seal = small_seal();
  const std::string text = seal_text(seal);
  const Seal again = parse_seal(text);
  EXPECT_EQ(again.format, "hf");
  EXPECT_EQ(again.tensors, seal.tensors);
  EXPECT_EQ(again.digests, seal.digests);
  EXPECT_EQ(again.rest, seal.rest);
  EXPECT_THAT(again.trees, IsEmpty());
  EXPECT_TRUE(again.extents.same_places(seal.extents));
  ASSERT_EQ(again.extents.files().size(), 3u);
  EXPECT_EQ(again.extents.files()[1], (ExtentMap::FileEntry{"b.safetensors", 30}));
  for (std::size_t at = 0; at < seal.extents.extents().size(); ++at) {
    const auto blocks = again.extents.blocks(again.extents.extents()[at]);
    const auto expected = seal.extents.blocks(seal.extents.extents()[at]);
    EXPECT_TRUE(std::ranges::equal(blocks, expected)) << at;
  }
  EXPECT_EQ(seal_text(again), text);
}

TEST(Seal, KeepsTreeHashes) {
  Seal seal = small_seal();
  seal.trees.resize(3);
  seal.trees[1].bytes[31] = std::byte{7};
  EXPECT_EQ(parse_seal(seal_text(seal)).trees, seal.trees);
}

TEST(Seal, IsRefusedWhereverItIsCut) {
  const std::string text = seal_text(small_seal());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_EQ(id_of_refusal(std::string_view(text).substr(0, bytes)), "RM110") << bytes;
  }
}

TEST(Seal, IsRefusedWhicheverBitIsFlipped) {
  std::string text = seal_text(small_seal());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    const auto mask = static_cast<char>(1 << bit % 8);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    EXPECT_EQ(id_of_refusal(text), "RM110") << "bit " << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
}

struct Defect {
  const char* name;
  const char* from;
  const char* to;
  const char* id = "RM110";
};

class SealDefects : public ::testing::TestWithParam<Defect> {};

TEST_P(SealDefects, IsRefused) {
  const Defect& defect = GetParam();
  EXPECT_EQ(id_of_refusal(replaced(seal_text(small_seal()), defect.from, defect.to)), defect.id);
}

constexpr Defect defects[] = {
    // clang-format off
    {"OtherFormat",        R"("remesh-seal")",             R"("remesh")"},
    {"NewerVersion",       R"("format_version":1)",        R"("format_version":2)",   "RM102"},
    {"TextAsVersion",      R"("format_version":1)",        R"("format_version":"1")"},
    {"NoJson",             R"("format")",                  R"(format)"},
    {"UnknownKey",         R"("format")",                  R"("more":1,"format")"},
    {"KeyTwice",           R"("format")",                  R"("format":"","format")", "RM608"},
    {"NoFormatName",       R"("sealed":"hf")",             R"("sealed":"")"},
    {"TreesOfOther",       R"("blake2b":null)",            R"("blake2b":[])"},
    {"TreeOfFewDigits",    R"("blake2b":null)",            R"("blake2b":["0","0","0"])"},
    {"FileOutside",        R"("a.safetensors")",           R"("../a.safetensors")",   "RM603"},
    {"FilesOutOfOrder",    R"("a.safetensors")",           R"("c.safetensors")"},
    {"FileTwice",          R"("a.safetensors")",           R"("b.safetensors")"},
    {"FileTooLong",        R"("size":15)",                 R"("size":9223372036854775808)"},
    {"FileNegative",       R"("size":15)",                 R"("size":-1)"},
    {"FileTooShort",       R"("size":30)",                 R"("size":23)"},
    {"RestNoDigest",       R"("rest":"crc64xz:)",          R"("rest":"crc64xy:)"},
    {"TensorTwice",        R"("name":"half")",             R"("name":"w")"},
    {"TensorWithoutName",  R"("name":"half")",             R"("name":"")"},
    {"TensorNoObject",     R"("tensors":[)",               R"("tensors":[1,)"},
    {"TensorUnknownKey",   R"("pieces":)",                 R"("more":1,"pieces":)"},
    {"UnknownDtype",       R"("bf16")",                    R"("bf17")"},
    {"NineDims",           R"("shape":[3])",               R"("shape":[3,1,1,1,1,1,1,1,1])"},
    {"NegativeDim",        R"("shape":[3])",               R"("shape":[-3])"},
    {"ShapeBeyondCount",   R"("shape":[4,2])",             R"("shape":[4611686018427387904,4])"},
    {"TensorNoDigest",     R"("digest":"crc64xz:)",        R"("digest":"crc64xz)"},
    {"BoxOfOtherDims",     R"("box":[[0,3]])",             R"("box":[[0,3],[0,1]])"},
    {"BoxOutside",         R"("box":[[0,3]])",             R"("box":[[0,4]])"},
    {"BoxBackwards",       R"("box":[[0,3]])",             R"("box":[[3,0]])"},
    {"BoxNegative",        R"("box":[[0,3]])",             R"("box":[[-1,3]])"},
    {"BoxOfTexts",         R"("box":[[0,3]])",             R"("box":[["0",3]])"},
    {"BoxOfNumbers",       R"("box":[[0,3]])",             R"("box":[3])"},
    {"BlockTooFew",        R"("blocks":"000000000000000b")", R"("blocks":"")"},
    {"BlockTooMany",       R"("blocks":"")",               R"("blocks":"0000000000000000")"},
    {"BlockOddDigits",     R"("blocks":"000000000000000b")", R"("blocks":"00000000000000b")"},
    {"BlockUpperCase",     R"("blocks":"000000000000000b")", R"("blocks":"000000000000000B")"},
    {"PieceInNoFile",      R"("file":1)",                  R"("file":3)"},
    {"PieceNegativeFile",  R"("file":1)",                  R"("file":-1)"},
    {"PieceBeyondEnd",     R"("offset":11)",               R"("offset":12)"},
    {"PieceBeyondCount",   R"("offset":11)",               R"("offset":9223372036854775807)"},
    {"PiecesOverlap",      R"("offset":11)",               R"("offset":10)"},
    {"CopyBeyondCount",    R"("copy":0)",                  R"("copy":4294967295)"},
    // clang-format on
};

INSTANTIATE_TEST_SUITE_P(All, SealDefects, ::testing::ValuesIn(defects),
                         [](const auto& defect) { return defect.param.name; });

TEST(Seal, OfAnotherVersionIsToldApartWhateverElseItSays) {
  const std::string text =
      ended_anew(R"({"format":"remesh-seal","format_version":2,"tensors":[[1.5]],)");
  EXPECT_EQ(id_of_refusal(text), "RM110");  // no JSON
  try {
    parse_seal(ended_anew(R"({"format":"remesh-seal","format_version":7,"tensors":[{"x":1}])"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM102");
    EXPECT_STREQ(error.what(), "it is a seal of version 7; this remesh reads version 1");
  }
}

TEST(Seal, TellsTheBytesThatAreNoTensors) {
  const auto rests = native::rests_of(small_seal().extents);
  EXPECT_THAT(rests, ElementsAre(ElementsAre(ByteRange{0, 8}),
                                 ElementsAre(ByteRange{0, 8}, ByteRange{24, 30}),
                                 ElementsAre(ByteRange{0, 2})));
}

TEST(Seal, HasNamesOfItsOwn) {
  for (const char* name : {"remesh-seal.json", "remesh-seal.json.minisig",
                           "m.safetensors.remesh-seal.json", "m.remesh-seal.json.minisig"}) {
    EXPECT_TRUE(is_seal_name(name)) << name;
  }
  for (const char* name : {"seal.json", "xremesh-seal.json", "remesh-seal.json.bak", ".minisig",
                           "remesh-seal.jsonminisig", ""}) {
    EXPECT_FALSE(is_seal_name(name)) << name;
  }
}

TEST(Seal, IsReadWithItsPathInWhatIsWrong) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory / "seal") << "{}";
  try {
    read_seal(posix_file_system(), directory / "seal");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM110");
    EXPECT_THAT(error.what(), HasSubstr("/seal': it does not end in its own digest"));
  }
}

TEST(Seal, IsNotReadIfItIsTooLong) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory / "seal") << "{}";
  fs::resize_file(directory / "seal", native::most_seal_bytes + 1);
  try {
    read_seal(posix_file_system(), directory / "seal");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM605") << error.what();
  }
  EXPECT_EQ(native::most_seal_bytes, std::int64_t{512} << 20);  // as SEAL.md has it
}

// Opens nothing.
class Refusing final : public ForwardingFileSystem {
 public:
  explicit Refusing(Errc code) : ForwardingFileSystem(posix_file_system()), code_(code) {}
  std::unique_ptr<File> open(const Path& /*path*/) const override { throw Error(code_, "refused"); }

 private:
  const Errc code_;
};

// What is wrong with a file's bytes was told already; what is wrong with the machine was not.
TEST(AttachSeal, KeepsNoFailureOfTheMachineToItself) {
  const Seal seal = small_seal();
  const auto attach = [&](Errc code) {
    OpenCheckpoint checkpoint;
    checkpoint.catalog.format = seal.format;
    checkpoint.catalog.tensors = seal.tensors;
    const auto files = seal.extents.files();
    const auto extents = seal.extents.extents();
    checkpoint.extents = ExtentMap({files.begin(), files.end()}, {extents.begin(), extents.end()});
    checkpoint.paths = {"a.safetensors", "b.safetensors", "config.json"};
    CollectedFindings findings;
    attach_seal(Refusing(code), std::move(checkpoint), seal, "seal", findings);
    EXPECT_THAT(findings.all, IsEmpty());
  };
  for (const Errc code : {Errc::not_found, Errc::corrupt, Errc::unsafe}) attach(code);
  for (const Errc code : {Errc::io, Errc::stopped, Errc::out_of_memory, Errc::internal}) {
    EXPECT_THROW(attach(code), Error) << to_string(code);
  }
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(WriteSeal, LeavesTheSealAndItsSignatureAlone) {
  const test::TemporaryDirectory directory;
  write_seal(posix_file_system(), directory / "remesh-seal.json", "text", "signature");
  EXPECT_THAT(names_in(directory.path()),
              ElementsAre("remesh-seal.json", "remesh-seal.json.minisig"));
  EXPECT_EQ(content_of(directory / "remesh-seal.json"), "text");
  EXPECT_EQ(content_of(directory / "remesh-seal.json.minisig"), "signature");
}

TEST(WriteSeal, ReplacesNothing) {
  const test::TemporaryDirectory directory;
  for (const char* taken : {"remesh-seal.json", "remesh-seal.json.minisig"}) {
    std::ofstream(directory / taken) << "older";
    try {
      write_seal(posix_file_system(), directory / "remesh-seal.json", "text", "signature");
      FAIL() << taken;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::exists) << error.what();
    }
    EXPECT_THAT(names_in(directory.path()), ElementsAre(taken));
    EXPECT_EQ(content_of(directory / taken), "older");
    fs::remove(directory / taken);
  }
}

// Whatever call is the last one: no seal, or a whole one with its signature. The next one is made
// in spite of what was left.
TEST(WriteSeal, StoppedAnywhereLeavesNoHalfSeal) {
  for (std::int64_t stop = 0;; ++stop) {
    const test::TemporaryDirectory directory;
    const fs::path path = directory / "remesh-seal.json";
    test::FaultyFileSystem files(posix_file_system());
    files.stop_at(stop);
    bool stopped = false;
    try {
      write_seal(files, path, "text", "signature");
    } catch (const Error&) {
      stopped = true;
    }
    if (fs::exists(path)) {
      EXPECT_EQ(content_of(path), "text") << stop;
      EXPECT_EQ(content_of(path.string() + ".minisig"), "signature") << stop;
    } else {
      fs::remove(path.string() + ".minisig");  // it says nothing alone; the user is told of it
      write_seal(posix_file_system(), path, "text", "signature");
      EXPECT_EQ(content_of(path), "text") << stop;
    }
    if (!stopped && stop >= files.calls()) break;
    ASSERT_LT(stop, 50);
  }
}

// However the path is spelled: what an earlier run left lies in the user's checkpoint.
TEST(WriteSeal, RemovesWhatWasLeftUnderAnotherSpelling) {
  const test::TemporaryDirectory directory;
  const fs::path path = directory / "remesh-seal.json";
  test::FaultyFileSystem files(posix_file_system());
  files.stop_at(3);
  EXPECT_THROW(write_seal(files, path, "text", ""), Error);
  ASSERT_EQ(names_in(directory.path()).size(), 1u);  // a temporary directory
  write_seal(posix_file_system(), fs::relative(path), "text", "");
  EXPECT_THAT(names_in(directory.path()), ElementsAre("remesh-seal.json"));
}

// A signature without its seal would be in the way of the next one, so both stay, or none.
TEST(WriteSeal, FailedOnceLeavesNothingBehindButNamesThatWereGiven) {
  using Names = std::vector<std::string>;
  const auto names_of_whole = [](std::string_view signature) {
    return signature.empty() ? Names{"remesh-seal.json"}
                             : Names{"remesh-seal.json", "remesh-seal.json.minisig"};
  };
  for (const char* const signature : {"", "signature"}) {
    std::int64_t fail = 0;
    for (bool failed = true; failed; ++fail) {
      ASSERT_LT(fail, 50) << "it never succeeds";
      const test::TemporaryDirectory directory;
      test::FaultyFileSystem files(posix_file_system());
      files.fail_at(fail);
      try {
        write_seal(files, directory / "remesh-seal.json", "text", signature);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::io) << error.what();
        const Names names = names_in(directory.path());
        EXPECT_TRUE(names.empty() || names == names_of_whole(signature))
            << "call " << fail << ": " << ::testing::PrintToString(names);
      }
      failed = fail < files.calls();
    }
  }
}

}  // namespace
}  // namespace remesh
