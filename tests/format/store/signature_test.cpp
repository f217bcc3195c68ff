#include "remesh/store/signature.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Keys for tests alone, by minisign 0.11 (`minisign -G -W`).
constexpr const char* public_line = "RWSnFX2UA59giCuMd+t8oAWFV0rI5ZbTqPYI5xVH9R9XwQBIhXlORLv7";
constexpr const char* secret_line =
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAApxV9lAOfYIgw4l5sLS2+"
    "5Y4kY5V6LMcRl2qnsvwgcmHo8nMTAcT/"
    "FCuMd+t8oAWFV0rI5ZbTqPYI5xVH9R9XwQBIhXlORLv7AAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAA=";
constexpr const char* other_line = "RWR2kQj3RHh1GrzKfe2ExXNEf6OEGVCUduHdhA1ZEnVRMmbOh8zRMdoJ";

// The same key with its checksum, and encrypted with the password "correct horse" at little cost,
// both put together by Python: hashlib.blake2b, and hashlib.scrypt(password, salt=bytes(range(32)),
// n=1024, r=8, p=1, dklen=104), which is what 32768 operations and 16 MiB come to.
constexpr const char* summed_line =
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAApxV9lAOfYIgw4l5sLS2+"
    "5Y4kY5V6LMcRl2qnsvwgcmHo8nMTAcT/"
    "FCuMd+t8oAWFV0rI5ZbTqPYI5xVH9R9XwQBIhXlORLv70bPWdklwIcvzNvgOoAsN"
    "yslwg6vTV2itHVebXkhJSDc=";
constexpr const char* encrypted_line =
    "RWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AgAAAAAAAAAAAAAEAAAAAuLRJHFce6hZ+"
    "cmm8bGVpfnYq"
    "hFmyuaMIDj0FFX9zXeFVyeR+"
    "2OF60ET76qEmVuHCwRD82wjElpzH8yCAOw5hD5xVy0vinvjQUnkQYNE1dixH0hzQ7BcLQTsc"
    "kCw1UmqR2hNH+hSi8fw=";

// `minisign -S` over "hello" with the trusted comment "step:1000"; the second with -l.
constexpr const char* by_minisign =
    "untrusted comment: signature from minisign secret key\n"
    "RUSnFX2UA59giEBuRTGITFcJ2cAz2O1FDheF52HeBM4ViOSugGqE37DUFpMPCwWYGwHg9hH3Tpe+"
    "SGPQ5oLHxEO5TA2IJaXO"
    "9Qw=\n"
    "trusted comment: step:1000\n"
    "ywc+G1mHxPLS2OT/4cNJmBLnfo1fKMM4V2uzgfNq/+QgVVqrFgvJopKDlnvrtLrewvvULW4Z5jHwftBTzy4MCA==\n";
constexpr const char* by_minisign_legacy =
    "untrusted comment: signature from minisign secret key\n"
    "RWSnFX2UA59giAsN6RkppgLaUFGxFXLNpxsGzIO37AOyYex6C0TI31s72d67Ks0BSA1Vicx4CBJeZ7Wr+"
    "RDuor20XCrwe7u1"
    "mgU=\n"
    "trusted comment: step:1000\n"
    "LM03tneMgWB1NTZMF2jUk5mV11fMiEJCZwkop9T7xDIznQGXdIvr0QPTrAc+IoWCohECL7LAvYVG8YCkKPjeDQ==\n";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

SecretKey secret_key() { return parse_secret_key(secret_line, {}); }

Secret right_password() { return Secret(std::string_view("correct horse")); }

std::string checked(std::string_view content, std::string_view signature,
                    const char* key = public_line) {
  return check_signature(bytes_of(content), signature, parse_public_key(key));
}

template <typename Action>
std::string refusal_of(const Action& action) {
  try {
    static_cast<void>(action());
    return "accepted";
  } catch (const Error& error) {
    return fmt::format("{} {}: {}", to_string(error.code()), error.id(), error.what());
  }
}

std::string refusal(std::string_view content, std::string_view signature) {
  return refusal_of([&] { return checked(content, signature); });
}

// With line `number` (from 0) replaced.
std::string with_line(std::size_t number, std::string_view line) {
  std::string text = by_minisign;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < number; ++i) begin = text.find('\n', begin) + 1;
  return text.replace(begin, text.find('\n', begin) - begin, line);
}

TEST(Signature, ByMinisignIsAccepted) {
  EXPECT_EQ(checked("hello", by_minisign), "step:1000");
  EXPECT_EQ(checked("hello", by_minisign_legacy), "step:1000");
}

// Ed25519 has no random part, so that ours and minisign's differ in the untrusted comment alone.
TEST(Signature, IsWhatMinisignWrites) {
  EXPECT_EQ(sign(bytes_of("hello"), secret_key(), "step:1000"),
            with_line(0, "untrusted comment: signature by remesh"));
}

TEST(Signature, ReadsBackForEveryContentAndComment) {
  for (const std::string& content : {std::string(), std::string(100'000, 'x')}) {
    for (const std::string& comment :
         {std::string(), std::string("a\tb \u00e9"), std::string(longest_comment_bytes, 'c')}) {
      const std::string signature = sign(bytes_of(content), secret_key(), comment);
      EXPECT_EQ(checked(content, signature), comment);
    }
  }
}

TEST(Signature, ACommentIsOneLineOfText) {
  for (const std::string& comment :
       {std::string("a\nb"), std::string("a\r"), std::string("\x1b[2J"), std::string("\x7f"),
        std::string(1, '\0'), std::string(longest_comment_bytes + 1, 'c')}) {
    EXPECT_THAT(refusal_of([&] { return sign(bytes_of("hello"), secret_key(), comment); }),
                HasSubstr("invalid_argument : cannot sign with this trusted comment"));
  }
}

TEST(Signature, EveryFlippedBitOfTheFileIsRefused) {
  for (const std::string text : {by_minisign, by_minisign_legacy}) {
    const std::size_t comment_begins = std::string_view("untrusted comment: ").size();
    const std::size_t comment_ends = text.find('\n');
    for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
      const std::size_t at = bit / 8;
      if (at >= comment_begins && at < comment_ends) continue;
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (bit % 8)));
      EXPECT_THAT(refusal("hello", flipped),
                  ::testing::AnyOf(HasSubstr("unsafe RM104: "), HasSubstr("unsafe RM612: ")))
          << "bit " << bit << " of:\n"
          << text;
    }
  }
}

TEST(Signature, EveryFlippedBitOfTheContentIsRefused) {
  const std::string content = "hello";
  for (const char* text : {by_minisign, by_minisign_legacy}) {
    for (std::size_t bit = 0; bit < 8 * content.size(); ++bit) {
      std::string flipped = content;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_THAT(refusal(flipped, text), HasSubstr("unsafe RM104: the signature by key "
                                                    "88609F03947D15A7 does not fit: the content"));
    }
  }
}

TEST(Signature, OfAShorterOrLongerContentIsRefused) {
  for (const char* content : {"", "hell", "hello!", "hello\n"}) {
    EXPECT_THAT(refusal(content, by_minisign), HasSubstr("RM104")) << content;
  }
}

TEST(Signature, TheTrustedCommentIsSignedToo) {
  EXPECT_THAT(refusal("hello", with_line(2, "trusted comment: step:1001")),
              HasSubstr("unsafe RM104: the signature by key 88609F03947D15A7 does not fit its "
                        "trusted comment"));
}

TEST(Signature, ByAnotherKeyIsRefusedWithBothIds) {
  EXPECT_THAT(refusal_of([] { return checked("hello", by_minisign, other_line); }),
              AllOf(HasSubstr("unsafe RM612: the signature is by key 88609F03947D15A7"),
                    HasSubstr("key 1A757844F7089176 was to be checked")));
}

TEST(Signature, AnotherKeyUnderTheSameIdIsRefused) {
  PublicKey key = parse_public_key(other_line);
  key.id = parse_public_key(public_line).id;
  EXPECT_THAT(refusal_of([&] { return check_signature(bytes_of("hello"), by_minisign, key); }),
              HasSubstr("unsafe RM104"));
}

TEST(Signature, WindowsLineEndsAndALastLineWithoutOneAreAccepted) {
  std::string text = by_minisign;
  text.pop_back();
  EXPECT_EQ(checked("hello", text), "step:1000");
  std::string windows;
  for (const char c : text) windows.append(c == '\n' ? 1 : 0, '\r').push_back(c);
  EXPECT_EQ(checked("hello", windows), "step:1000");
}

struct Malformed {
  const char* name;
  std::string text;
  const char* complaint;
};

TEST(Signature, EveryMalformedFileIsRefused) {
  const std::string text = by_minisign;
  const std::string record = text.substr(text.find('\n') + 1, 100);
  const Malformed all[] = {
      {"empty", "", "four lines"},
      {"no lines", "hello", "four lines"},
      {"three lines", text.substr(0, text.find("ywc+")), "four lines"},
      {"five lines", text + "\n", "four lines"},
      {"more after the end", text + "x", "four lines"},
      {"two signatures", text + text, "four lines"},
      {"too long", with_line(0, fmt::format("untrusted comment: {:17000}", "x")), "four lines"},
      {"no untrusted comment", with_line(0, "comment: x"), "lines 1 and 3"},
      {"no trusted comment", with_line(2, "untrusted comment: step:1000"), "lines 1 and 3"},
      {"steers a terminal", with_line(2, "trusted comment: \x1b[2J"), "control characters"},
      {"ends early", with_line(2, fmt::format("trusted comment: step{}", '\0')),
       "control characters"},
      {"no record", with_line(1, ""), "line 2"},
      {"record too short", with_line(1, record.substr(4)), "line 2"},
      {"record too long", with_line(1, record + "AAAA"), "line 2"},
      {"record unpadded", with_line(1, record.substr(0, 99)), "line 2"},
      {"unused bits set", with_line(1, record.substr(0, 98) + "x="), "line 2"},
      {"blank before", with_line(1, " " + record.substr(0, 99)), "line 2"},
      {"blank after", with_line(1, record + " "), "line 2"},
      {"URL's base64", with_line(1, "RUS-" + record.substr(4)), "line 2"},
      {"unknown algorithm", with_line(1, "RVSn" + record.substr(4)), "neither 'ED' nor 'Ed'"},
      {"no second signature", with_line(3, ""), "line 4"},
      {"second signature cut", with_line(3, "ywc+"), "line 4"},
      {"all zero", with_line(3, fmt::format("{:A<86}==", "")), "trusted comment"},
  };
  for (const auto& [name, malformed, complaint] : all) {
    EXPECT_THAT(refusal("hello", malformed),
                AllOf(HasSubstr("unsafe RM104: "), HasSubstr(complaint)))
        << name;
  }
}

// All of one small order: S = 0, R and the key the neutral element, which fits any content where
// such keys are taken.
TEST(Signature, AKeyThatFitsEverythingFitsNothing) {
  PublicKey weak = parse_public_key(public_line);
  weak.bytes = {std::byte{1}};
  // 10 bytes of algorithm and id, then R = 1 and S = 0.
  const std::string text = with_line(1, fmt::format("RUSnFX2UA59giAE{:A<84}=", ""));
  EXPECT_THAT(refusal_of([&] { return check_signature(bytes_of("hello"), text, weak); }),
              HasSubstr("unsafe RM104"));
}

TEST(Signature, ThatIsMissingIsItsOwnFinding) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "manifest.json.minisig";
  const auto read = [&] { return read_signature(posix_file_system(), path); };
  EXPECT_THAT(refusal_of(read), AllOf(HasSubstr("unsafe RM611: "), HasSubstr(path.string())));
  write_whole(posix_file_system(), path, bytes_of(by_minisign));
  EXPECT_EQ(read(), by_minisign);
}

TEST(Signature, ThatIsNoSmallFileIsNotRead) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "manifest.json.minisig";
  write_whole(posix_file_system(), path, bytes_of(std::string(16'385, 'x')));
  EXPECT_THAT(refusal_of([&] { return read_signature(posix_file_system(), path); }),
              HasSubstr("out_of_memory RM605: "));
}

TEST(PublicKey, ReadsTheLineOrTheFile) {
  const PublicKey key = parse_public_key(public_line);
  EXPECT_EQ(to_string(key.id), "88609F03947D15A7");
  EXPECT_EQ(to_string(key), public_line);
  const std::string comment = "untrusted comment: minisign public key 88609F03947D15A7";
  EXPECT_EQ(parse_public_key(fmt::format("{}\n{}\n", comment, public_line)), key);
  EXPECT_EQ(parse_public_key(fmt::format("{}\r\n{}\r\n", comment, public_line)), key);
  EXPECT_EQ(parse_public_key(fmt::format("{}\n", public_line)), key);
}

TEST(PublicKey, NothingElseIsOne) {
  const std::string line = public_line;
  for (const std::string& text :
       {std::string(), std::string("\n"), line.substr(1), line + "A", line + "AAAA", " " + line,
        line + " ", "RXSn" + line.substr(4), fmt::format("{}\n{}", line, line), "comment\n" + line,
        fmt::format("untrusted comment: x\n{}\nx", line), "untrusted comment: x\n\n" + line,
        fmt::format("untrusted comment: {:5000}\n{}", "x", line)}) {
    EXPECT_THAT(refusal_of([&] { return parse_public_key(text); }),
                HasSubstr("invalid_argument : it is no public key"))
        << text;
  }
}

TEST(PublicKey, ASecretOneInItsPlaceIsNamedAndNotQuoted) {
  EXPECT_THAT(refusal_of([] { return parse_public_key(secret_line); }),
              AllOf(HasSubstr("it is a secret key"), Not(HasSubstr("KSNiXm"))));
}

TEST(SecretKey, ReadsEveryKindThatMinisignWrites) {
  const PublicKey expected = parse_public_key(public_line);
  EXPECT_EQ(parse_secret_key(secret_line, {}).public_key(), expected);
  EXPECT_EQ(parse_secret_key(summed_line, {}).public_key(), expected);
  const SecretKey encrypted = parse_secret_key(encrypted_line, right_password);
  EXPECT_EQ(encrypted.public_key(), expected);
  EXPECT_EQ(sign(bytes_of("hello"), encrypted, "step:1000"),
            sign(bytes_of("hello"), secret_key(), "step:1000"));
}

TEST(SecretKey, NeedsTheRightPassword) {
  EXPECT_THAT(refusal_of([] { return parse_secret_key(encrypted_line, {}).public_key().id.value; }),
              HasSubstr("invalid_argument : it is encrypted with a password"));
  for (const std::string_view password : {"", "correct hors", "correct horse ", "Correct horse"}) {
    const auto ask = [&] { return Secret(password); };
    EXPECT_THAT(
        refusal_of([&] { return parse_secret_key(encrypted_line, ask).public_key().id.value; }),
        HasSubstr("invalid_argument : the password is wrong"));
  }
}

TEST(SecretKey, NobodyIsAskedForAPasswordThatIsNotNeeded) {
  const AskPassword ask = []() -> Secret { throw Error(Errc::internal, "asked"); };
  EXPECT_EQ(parse_secret_key(secret_line, ask).public_key(), parse_public_key(public_line));
}

// What lies at so many bytes of a key, in base64 of whole triples.
std::string with_text(std::string line, std::size_t byte, std::string_view base64) {
  return line.replace(byte / 3 * 4, base64.size(), base64);
}

TEST(SecretKey, NothingElseIsOne) {
  const std::string line = secret_line;
  const std::string encrypted = encrypted_line;
  const struct {
    const char* name;
    std::string text;
    const char* complaint;
  } all[] = {
      {"empty", "", "no secret key"},
      {"a public key", public_line, "no secret key"},
      {"three lines", fmt::format("untrusted comment: x\n{}\nx", line), "no secret key"},
      {"another signing algorithm", with_text(line, 0, "RWUA"), "no secret key"},
      {"another checksum", with_text(line, 3, "AEIz"), "no secret key"},
      {"another encryption", with_text(line, 0, "RWRTZEIy"), "does not know"},
      {"seed changed", with_text(line, 63, "MOJf"), "two halves do not belong together"},
      {"public half changed", with_text(line, 96, "ZZZZ"), "two halves do not belong together"},
      {"checksum changed", with_text(summed_line, 129, "AAAA"), "its checksum does not fit"},
      {"salt changed", with_text(encrypted, 6, "AAEA"), "the password is wrong, or"},
      {"operations without end", with_text(encrypted, 42, "AAAB"), "would cost"},
      {"memory without end", with_text(encrypted, 48, "AAAB"), "would cost"},
  };
  for (const auto& bad : all) {
    EXPECT_THAT(refusal_of([&] {
                  return parse_secret_key(bad.text, right_password).public_key().id.value;
                }),
                AllOf(HasSubstr("invalid_argument : "), HasSubstr(bad.complaint)))
        << bad.name;
  }
}

TEST(SecretKey, ReadFromAFileIsNamedWithItsPath) {
  const test::TemporaryDirectory directory;
  const auto good = directory / "good.key";
  const auto long_file = directory / "long.key";
  write_whole(posix_file_system(), good,
              bytes_of(fmt::format("untrusted comment: x\n{}\n", secret_line)));
  write_whole(posix_file_system(), long_file, bytes_of(std::string(4097, 'x')));
  const auto read = [&](const auto& path) {
    return read_secret_key(posix_file_system(), path, {}).public_key();
  };
  EXPECT_EQ(read(good), parse_public_key(public_line));
  EXPECT_THAT(refusal_of([&] { return read(long_file).id.value; }),
              AllOf(HasSubstr("invalid_argument : cannot use the secret key"),
                    HasSubstr(long_file.string()), HasSubstr("4097 bytes")));
  EXPECT_THAT(refusal_of([&] { return read(directory / "none.key").id.value; }),
              HasSubstr("not_found"));
}

TEST(Secret, MovesAndShrinksAndIsNeverCopied) {
  static_assert(!std::is_copy_constructible_v<Secret> && !std::is_copy_assignable_v<Secret>);
  Secret secret(std::string_view("abcdef"));
  secret.shrink(3);
  const Secret moved = std::move(secret);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()),
            "abc");
  EXPECT_TRUE(secret.bytes().empty());  // NOLINT(bugprone-use-after-move): empty is what is asked
  EXPECT_TRUE(Secret().bytes().empty());
}

}  // namespace
}  // namespace remesh
