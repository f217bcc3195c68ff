#include "remesh/store/signed_checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "manifest.hpp"
#include "native_fixture.hpp"
#include "remesh/store/signature.hpp"
#include "temporary_directory.hpp"
#include "write_numbered.hpp"

namespace remesh {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Key 1 of RFC 8032, section 7.1: seed, then what belongs to it; and key 2.
constexpr unsigned char rfc_key_1[] = {
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
    0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
    0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
constexpr unsigned char rfc_key_2[] = {
    0x4c, 0xcd, 0x08, 0x9b, 0x28, 0xff, 0x96, 0xda, 0x9d, 0xb6, 0xc3, 0x46, 0xec, 0x11, 0x4e, 0x0f,
    0x5b, 0x8a, 0x31, 0x9f, 0x35, 0xab, 0xa6, 0x24, 0xda, 0x8c, 0xf6, 0xed, 0x4f, 0xb8, 0xa6, 0xfb,
    0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e, 0xbc,
    0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4, 0x66, 0x0c};

std::shared_ptr<const SecretKey> key_of(const unsigned char (&bytes)[64], std::uint64_t id) {
  Secret secret(sizeof bytes);
  std::memcpy(secret.bytes().data(), bytes, sizeof bytes);
  return std::make_shared<const SecretKey>(KeyId{id}, std::move(secret));
}

class SignedCheckpoint : public ::testing::Test {
 protected:
  SignedCheckpoint() { write(path_, key_); }

  static void write(const FileSystem::Path& path, std::shared_ptr<const SecretKey> key,
                    int threads = 1, const StopFlag* stop = nullptr) {
    Catalog catalog = test::small_catalog({{TensorDesc{"a", DType::f32, Box{{0, 8}, {0, 64}}}, 1},
                                           {TensorDesc{"b", DType::bf16, Box{{0, 5}}}, 0}});
    catalog.side = {test::side_file("config.json")};
    WriterOptions options;
    options.job_id = "0123456789abcdef";
    options.sign = std::move(key);
    options.sign_threads = threads;
    options.sign_stop = stop;
    const auto writer =
        create_native(posix_file_system(), path, std::move(catalog), test::side_bytes, options);
    test::Arbitrary arbitrary(1);
    test::write_and_seal_numbered(*writer, arbitrary);
    writer->publish();
  }

  SignedCheck check(const PublicKey& key, SignedPart part = SignedPart::all) const {
    ThreadPool pool(2);
    Progress progress;
    const StopFlag stop;
    return check_signed(posix_file_system(), path_, key, part, pool, progress, stop);
  }
  SignedCheck check(SignedPart part = SignedPart::all) const {
    return check(key_->public_key(), part);
  }

  // "RM104 manifest.json: ..." of each finding.
  std::vector<std::string> complaints(SignedPart part = SignedPart::all) const {
    std::vector<std::string> texts;
    for (const Finding& finding : check(part).findings) {
      texts.push_back(finding.id + " " + finding.file + ": " + finding.message);
    }
    return texts;
  }

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::string shard() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == ".h5") return entry.path().filename().string();
    }
    return {};
  }
  void flip(const std::string& name, std::size_t at) const {
    std::string content = test::content_of(file(name));
    content.at(at) = static_cast<char>(content.at(at) ^ 1);
    test::set_content(file(name), content);
  }
  void sign_manifest(const std::string& text) const {
    test::set_content(file("manifest.json"), text);
    test::set_content(file("manifest.json.minisig"),
                      sign(std::as_bytes(std::span(text)), *key_, "by hand"));
  }

  const test::TemporaryDirectory directory_;
  const FileSystem::Path path_ = directory_ / "checkpoint";
  const std::shared_ptr<const SecretKey> key_ = key_of(rfc_key_1, 0xABCDEF);
};

TEST_F(SignedCheckpoint, IsWhatWasSigned) {
  const SignedCheck found = check();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_TRUE(found.manifest_fits);
  EXPECT_GE(found.files, 3);
  EXPECT_EQ(found.files_checked, found.files);
  StrictFindings strict;
  const auto reader = open_native(posix_file_system(), path_, strict);
  EXPECT_EQ(found.trusted_comment, "save " + reader->catalog().save_id);
  EXPECT_THAT(strict.rest(), IsEmpty()) << "the signature is a file that belongs there";
}

TEST_F(SignedCheckpoint, TheSameKeySignsTheSameBytesWithAnyNumberOfThreads) {
  const FileSystem::Path again = directory_ / "again";
  write(again, key_, 3);
  for (const char* const name : {"manifest.json", "manifest.json.minisig", "COMMIT"}) {
    EXPECT_EQ(test::content_of(again / name), test::content_of(file(name))) << name;
  }
}

TEST_F(SignedCheckpoint, WithoutAKeyNothingOfASignatureIsWritten) {
  const FileSystem::Path plain = directory_ / "plain";
  write(plain, nullptr);
  EXPECT_FALSE(std::filesystem::exists(plain / "manifest.json.minisig"));
  EXPECT_THAT(test::content_of(plain / "manifest.json"), HasSubstr(R"("blake2b":null)"));
}

TEST_F(SignedCheckpoint, EachChangedFileIsFoundAlone) {
  for (const std::string& name : {shard(), std::string("side/config.json")}) {
    const std::string before = test::content_of(file(name));
    flip(name, before.size() / 2);
    EXPECT_THAT(complaints(), ElementsAre(AllOf(HasSubstr("RM104 " + name + ": "),
                                                HasSubstr("is not the file that was signed"))));
    EXPECT_EQ(check().files_checked, check().files - 1);
    EXPECT_THAT(complaints(SignedPart::manifest), IsEmpty());
    test::set_content(file(name), before);
  }
}

TEST_F(SignedCheckpoint, AFileThatGrewOrIsMissingIsNotWhatWasSigned) {
  const std::string name = shard();
  test::set_content(file(name), test::content_of(file(name)) + "x");
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("RM104 " + name)));
  std::filesystem::remove(file(name));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("RM203 " + name)));
}

TEST_F(SignedCheckpoint, AChangedManifestIsNotParsed) {
  const std::string text = test::content_of(file("manifest.json"));
  test::set_content(file("manifest.json"), "{" + text);
  EXPECT_THAT(complaints(), ElementsAre(AllOf(HasSubstr("RM104 manifest.json.minisig: "),
                                              HasSubstr("does not fit"))));
  EXPECT_FALSE(check().manifest_fits);
  EXPECT_EQ(check().files_checked, 0);
}

TEST_F(SignedCheckpoint, WithoutASignatureNobodyVouches) {
  std::filesystem::remove(file("manifest.json.minisig"));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("RM611 manifest.json.minisig: ")));
  EXPECT_FALSE(check().manifest_fits);
}

TEST_F(SignedCheckpoint, AnotherKeyIsNamedBesideTheWantedOne) {
  const SignedCheck found = check(key_of(rfc_key_2, 0x123)->public_key());
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].id, "RM612");
  EXPECT_THAT(found.findings[0].message,
              AllOf(HasSubstr("0000000000ABCDEF"), HasSubstr("0000000000000123")));
}

TEST_F(SignedCheckpoint, WhoAsksToStopIsHeardWhileFilesAreHashed) {
  StopFlag stop;
  stop.request(15);
  const FileSystem::Path path = directory_ / "stopped";
  try {
    write(path, key_, 2, &stop);
    FAIL() << "nobody listened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::stopped);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  write(path, nullptr, 2, &stop);  // nothing is hashed
  EXPECT_TRUE(std::filesystem::exists(path));
}

// Anybody can write a key's id into a signature.
TEST_F(SignedCheckpoint, AnotherKeyOfTheSameNameDoesNotFit) {
  const SignedCheck found = check(key_of(rfc_key_2, 0xABCDEF)->public_key());
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].id, "RM104");
}

TEST_F(SignedCheckpoint, ASignedManifestWithoutHashesSignsNoFile) {
  native::Manifest manifest = native::parse_manifest(test::content_of(file("manifest.json")));
  manifest.trees.reset();
  sign_manifest(native::to_json(manifest));
  EXPECT_THAT(complaints(),
              ElementsAre(AllOf(HasSubstr("RM611 manifest.json: "), HasSubstr("not signed"))));
  EXPECT_FALSE(check().manifest_fits);
}

TEST_F(SignedCheckpoint, HashesOfShardsAndSideFilesAreNotMixedUp) {
  native::Manifest manifest = native::parse_manifest(test::content_of(file("manifest.json")));
  ASSERT_EQ(manifest.trees->side.size(), 1U);
  std::swap(manifest.trees->files.front(), manifest.trees->side.front());
  sign_manifest(native::to_json(manifest));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("RM104 shard-00000-of-00004.h5"),
                                        HasSubstr("RM104 side/config.json")));
}

TEST_F(SignedCheckpoint, CanBeStopped) {
  ThreadPool pool(1);
  Progress progress;
  StopFlag stop;
  stop.request(2);
  try {
    check_signed(posix_file_system(), path_, key_->public_key(), SignedPart::all, pool, progress,
                 stop);
    ADD_FAILURE() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::stopped);
  }
}

}  // namespace
}  // namespace remesh
