#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "sealing.hpp"
#include "temporary_directory.hpp"

// A foreign checkpoint with a seal is judged as a native one is: every flipped bit is found, in its
// file and block. Without the seal most of them are not.

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string seal_file(seal_name);

void put(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A safetensors file: a length word, the header, and the data.
std::string file_of(std::string header, std::string_view data) {
  while (header.size() % 8 != 0) header += ' ';
  std::string text(8, '\0');
  for (std::size_t byte = 0; byte < 8; ++byte) {
    text[byte] = static_cast<char>(header.size() >> 8 * byte & 0xFF);
  }
  text += header;
  text += data;
  return text;
}

void put_checkpoint(const fs::path& directory) {
  put(directory / "model-00001-of-00002.safetensors",
      file_of(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],)"
              R"("data_offsets":[0,12]},"e":{"dtype":"F32","shape":[0],"data_offsets":[12,12]}})",
              "abcdefghijkl"));
  put(directory / "model-00002-of-00002.safetensors",
      file_of(R"({"b":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "01234"));
  put(directory / "model.safetensors.index.json",
      R"({"metadata":{"total_size":17},"weight_map":{"a":"model-00001-of-00002.safetensors",)"
      R"("b":"model-00002-of-00002.safetensors","e":"model-00001-of-00002.safetensors"}})");
  put(directory / "config.json", R"({"model_type":"none"})");
  put(directory / "tokenizer.model", "tokens");
}

class Sealed : public ::testing::Test {
 protected:
  Sealed() { put_checkpoint(checkpoint_); }

  Report judge(const fs::path& path) {
    return verify(machine_.judge(), test::opener(path), Level::full);
  }
  std::vector<Finding> errors() {
    std::vector<Finding> found = judge(checkpoint_).findings;
    std::erase_if(found, [](const Finding& each) { return each.severity != Severity::error; });
    return found;
  }
  std::string refusal() {
    try {
      test::open_strictly(checkpoint_);
    } catch (const Error& error) {
      return error.id() + ": " + error.what();
    }
    return "none";
  }

  test::TemporaryDirectory directory_;
  fs::path checkpoint_ = directory_ / "hf";
  test::Machine machine_;
};

TEST_F(Sealed, IsJudgedByWhatTheSealRecords) {
  const Report before = judge(checkpoint_);
  EXPECT_EQ(before.bytes_unprotected, 17);
  EXPECT_EQ(before.files, 2);
  test::seal(machine_, checkpoint_);
  const Report report = judge(checkpoint_);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.bytes_unprotected, 0);
  EXPECT_EQ(report.files, 5);
  const auto reader = test::open_strictly(checkpoint_);
  EXPECT_TRUE(is_sealed(reader->catalog()));
  EXPECT_EQ(reader->catalog().digests.size(), 3u);
  EXPECT_THAT(reader->catalog().side, ElementsAre(Field(&SideFile::name, "config.json"),
                                                  Field(&SideFile::name, "tokenizer.model")));
}

// Bytes of tensors, by file: what nothing but a seal protects.
bool is_payload(const std::string& file, std::size_t byte, std::size_t bytes) {
  return (file == "model-00001-of-00002.safetensors" && byte + 12 >= bytes) ||
         (file == "model-00002-of-00002.safetensors" && byte + 5 >= bytes);
}

TEST_F(Sealed, EveryFlippedBitIsFoundInItsFileAndPlace) {
  const fs::path plain = directory_ / "plain";
  put_checkpoint(plain);
  test::seal(machine_, checkpoint_);
  std::int64_t flips = 0;
  std::int64_t payload = 0;
  for (const auto& entry : fs::directory_iterator(checkpoint_)) {
    const std::string name = entry.path().filename().string();
    const std::string content = content_of(entry.path());
    for (std::size_t byte = 0; byte < content.size(); ++byte) {
      const unsigned bit = static_cast<unsigned>(byte * 5 + 3) % 8;
      SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(byte) + " of " +
                   name);
      std::string flipped = content;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      put(entry.path(), flipped);
      ++flips;
      const std::vector<Finding> found = errors();
      ASSERT_THAT(found, Contains(Field(&Finding::file, name)));
      const bool is_side = name == "config.json" || name == "tokenizer.model";
      EXPECT_EQ(refusal() == "none", is_side || is_payload(name, byte, content.size()));
      if (is_payload(name, byte, content.size())) {
        ++payload;
        const std::string where = "one flipped bit explains it: bit " + std::to_string(bit) +
                                  " of byte " + std::to_string(byte);
        EXPECT_THAT(found,
                    ElementsAre(AllOf(Field(&Finding::id, "RM207"),
                                      Field(&Finding::message, HasSubstr(where)),
                                      Field(&Finding::tensor, name[10] == '1' ? "a" : "b"))));
        put(plain / name, flipped);
        EXPECT_EQ(judge(plain).count(Severity::error), 0);  // nobody else notices
        put(plain / name, content);
      }
      put(entry.path(), content);
    }
  }
  EXPECT_EQ(payload, 17);
  EXPECT_GT(flips, 1000);
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(Sealed, FlipsInWhatIsNoTensorsAreNamedToTheBit) {
  test::seal(machine_, checkpoint_);
  for (const char* const name : {"config.json", "model-00001-of-00002.safetensors"}) {
    std::string content = content_of(checkpoint_ / name);
    const std::size_t at = content.find(name[0] == 'c' ? "none" : "\"pt\"") + 2;
    content[at] ^= 4;
    put(checkpoint_ / name, content);
    EXPECT_THAT(errors(),
                ElementsAre(AllOf(Field(&Finding::id, "RM207"), Field(&Finding::file, name),
                                  Field(&Finding::message,
                                        HasSubstr("one flipped bit explains it: bit 2 of byte " +
                                                  std::to_string(at))))));
    content[at] ^= 4;
    put(checkpoint_ / name, content);
  }
}

TEST_F(Sealed, AChangedCheckpointIsToldFromADamagedOne) {
  test::seal(machine_, checkpoint_);
  put(checkpoint_ / "config.json", "{}");
  EXPECT_THAT(
      errors(),
      ElementsAre(AllOf(Field(&Finding::id, "RM111"), Field(&Finding::file, "config.json"),
                        Field(&Finding::found, "2 bytes"), Field(&Finding::expected, "21 bytes"))));
  EXPECT_THAT(refusal(), HasSubstr("RM111: cannot use the seal 'remesh-seal.json': \"config.json\" "
                                   "has 2 bytes, but had 21 when it was sealed"));
  put_checkpoint(checkpoint_);
  put(checkpoint_ / "new.txt", "1234");
  EXPECT_EQ(refusal(), "none") << "it says nothing of the tensors";
  EXPECT_THAT(errors(), IsEmpty());
  EXPECT_THAT(judge(checkpoint_).findings, Contains(AllOf(Field(&Finding::id, "RM111"),
                                                          Field(&Finding::severity, Severity::warn),
                                                          Field(&Finding::file, "new.txt"))));
  fs::remove(checkpoint_ / "new.txt");
  fs::remove(checkpoint_ / "tokenizer.model");
  EXPECT_THAT(refusal(),
              HasSubstr("RM111: cannot use the seal 'remesh-seal.json': it has the file "
                        "\"tokenizer.model\" with 6 bytes, but the checkpoint has none"));
}

// What a file of another size has is not judged by a seal that does not know it.
TEST_F(Sealed, AFileThatWasReplacedHasNoDigestsLeft) {
  test::seal(machine_, checkpoint_);
  put(checkpoint_ / "model-00002-of-00002.safetensors",
      file_of(R"({"b":{"dtype":"U8","shape":[6],"data_offsets":[0,6]}})", "012345"));
  const std::vector<Finding> found = errors();
  EXPECT_THAT(found, Contains(AllOf(Field(&Finding::id, "RM111"),
                                    Field(&Finding::file, "model-00002-of-00002.safetensors"))));
  for (const Finding& finding : found) EXPECT_NE(finding.id, "RM207") << finding.message;
  EXPECT_EQ(judge(checkpoint_).bytes_unprotected, 18);
}

// The same text, as if it had been made so.
void edit_seal(const fs::path& seal, std::string_view from, std::string_view to) {
  std::string text = content_of(seal);
  text.resize(text.rfind(certificate_end));
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string digest = to_string(digest_of(std::as_bytes(std::span(text))));
  put(seal, text + std::string(certificate_end) + digest + "\"}");
}

TEST_F(Sealed, ASealThatWasMadeForOthersIsRefused) {
  const fs::path seal = test::seal(machine_, checkpoint_);
  const std::string text = content_of(seal);
  edit_seal(seal, R"("sealed":"hf")", R"("sealed":"dcp")");
  EXPECT_THAT(refusal(), HasSubstr("RM111: cannot use the seal 'remesh-seal.json': it was made for "
                                   "a checkpoint of format \"dcp\", and this is \"hf\""));
  put(seal, text);
  edit_seal(seal, R"("dtype":"u8","name":"b")", R"("dtype":"i8","name":"b")");
  EXPECT_THAT(refusal(),
              HasSubstr("RM111: cannot use the seal 'remesh-seal.json': the checkpoint "
                        "has the tensor 'b' (u8, [0, 5)), but it was sealed as 'b' (i8"));
  put(seal, text);
  edit_seal(seal, R"("name":"e")", R"("name":"f")");
  EXPECT_THAT(refusal(), HasSubstr("'e' (f32, [0, 0)), but that was not sealed"));
  put(seal, text);
  edit_seal(seal, R"("tensors":[)",
            R"("tensors":[{"digest":"crc64xz:0000000000000000","dtype":"u8","name":"more",)"
            R"("pieces":[],"shape":[0]},)");
  EXPECT_THAT(refusal(), HasSubstr("it has 4 tensors, but the checkpoint has 3"));
  put(seal, text);
  edit_seal(seal, R"("format_version":1)", R"("format_version":2)");
  EXPECT_THAT(refusal(), HasSubstr("RM102: cannot read '"));
  EXPECT_THAT(errors(),
              ElementsAre(AllOf(Field(&Finding::id, "RM102"), Field(&Finding::file, seal_file))));
}

TEST_F(Sealed, ConvertingRefusesWhatTheSealDoesNotRecord) {
  test::seal(machine_, checkpoint_);
  const auto refused_for = [&](const char* name, std::string_view byte) {
    const std::string content = content_of(checkpoint_ / name);
    std::string flipped = content;
    const std::size_t at = content.find(byte);
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    put(checkpoint_ / name, flipped);
    std::string id = "none";
    try {
      test::run_job(machine_, checkpoint_, directory_ / "out", {});
    } catch (const Error& error) {
      id = error.id();
    }
    EXPECT_FALSE(fs::exists(directory_ / "out")) << name;
    put(checkpoint_ / name, content);
    return id;
  };
  EXPECT_EQ(refused_for("model-00001-of-00002.safetensors", "ghij"), "RM207");
  EXPECT_EQ(refused_for("model-00001-of-00002.safetensors", "pt"), "RM207");
  EXPECT_EQ(refused_for("model.safetensors.index.json", "7}"), "RM207");
  EXPECT_EQ(refused_for("config.json", "none"), "RM207");
  EXPECT_EQ(refused_for("tokenizer.model", "tokens"), "RM207");
}

TEST_F(Sealed, TheSealIsNotCarried) {
  test::seal(machine_, checkpoint_);
  put(checkpoint_ / "remesh-seal.json.minisig", "a signature");
  test::run_job(machine_, checkpoint_, directory_ / "native", {});
  test::run_job(machine_, directory_ / "native", directory_ / "again", {.to = "hf"});
  EXPECT_FALSE(fs::exists(directory_ / "again" / seal_file));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_ / "again")) {
    names.push_back(entry.path().filename().string());
    EXPECT_EQ(content_of(entry.path()), content_of(checkpoint_ / names.back())) << names.back();
  }
  EXPECT_EQ(names.size(), 5u);
}

TEST_F(Sealed, ASingleFileHasItsSealBesideIt) {
  const fs::path file = checkpoint_ / "model-00002-of-00002.safetensors";
  const fs::path seal = test::seal(machine_, file);
  EXPECT_EQ(seal, checkpoint_ / "model-00002-of-00002.safetensors.remesh-seal.json");
  EXPECT_THAT(judge(file).findings, IsEmpty());
  EXPECT_EQ(judge(file).bytes_unprotected, 0);
  EXPECT_EQ(judge(checkpoint_).bytes_unprotected, 17);  // it is not that one's
  EXPECT_THAT(judge(checkpoint_).findings, IsEmpty());
  std::string content = content_of(file);
  content.back() ^= 1;
  put(file, content);
  EXPECT_THAT(judge(file).findings, ElementsAre(Field(&Finding::id, "RM207")));
}

// As the hub's cache has it: every file of a snapshot is a link, the seal too.
TEST_F(Sealed, LinksOfTheHubsCacheAreFollowed) {
  test::seal(machine_, checkpoint_);
  const fs::path snapshot = directory_ / "repo/snapshots/1";
  fs::create_directories(snapshot);
  fs::create_directories(directory_ / "repo/blobs");
  for (const auto& entry : fs::directory_iterator(checkpoint_)) {
    const std::string name = entry.path().filename().string();
    fs::copy_file(entry.path(), directory_ / "repo/blobs" / ("of-" + name));
    fs::create_symlink("../../blobs/of-" + name, snapshot / name);
  }
  EXPECT_EQ(judge(snapshot).bytes_unprotected, 0);
  EXPECT_THAT(judge(snapshot).findings, IsEmpty());
  const auto sealed = find_signed_seal(posix_file_system(), snapshot, {});
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->path_of("config.json"), snapshot / "../../blobs/of-config.json");
}

// Its seal has the name and lies at the place by which the user knows the file.
TEST_F(Sealed, ALinkToASingleFileIsSealedUnderItsOwnName) {
  const fs::path blob = directory_ / "repo/blobs/0f";
  const fs::path file = directory_ / "repo/snapshots/1/model.safetensors";
  fs::create_directories(blob.parent_path());
  fs::create_directories(file.parent_path());
  fs::copy_file(checkpoint_ / "model-00002-of-00002.safetensors", blob);
  for (const char* const target : {"../../blobs/0f", "../../snapshots/../blobs/0f"}) {
    fs::create_symlink(target, file);
    const fs::path seal = test::seal(machine_, file);
    EXPECT_EQ(seal, file.string() + ".remesh-seal.json");
    EXPECT_EQ(read_seal(posix_file_system(), seal).extents.files()[0].name, "model.safetensors");
    EXPECT_THAT(judge(file).findings, IsEmpty());
    EXPECT_EQ(judge(file).bytes_unprotected, 0);
    const auto found = find_signed_seal(posix_file_system(), file, {});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->signature, seal.string() + ".minisig");
    EXPECT_TRUE(fs::equivalent(found->path_of("model.safetensors"), blob));
    EXPECT_FALSE(fs::is_symlink(found->path_of("model.safetensors")));
    std::string content = content_of(blob);
    content.back() ^= 1;
    put(blob, content);
    EXPECT_THAT(judge(file).findings,
                ElementsAre(AllOf(Field(&Finding::id, "RM207"),
                                  Field(&Finding::file, "model.safetensors"))));
    content.back() ^= 1;
    put(blob, content);
    fs::remove(seal);
    fs::remove(file);
  }
}

TEST_F(Sealed, ASealElsewhereIsReadFromThere) {
  const fs::path seal = test::seal(machine_, checkpoint_);
  fs::rename(seal, directory_ / "kept");
  EXPECT_EQ(judge(checkpoint_).bytes_unprotected, 17);
  const Opener open = [&](Findings& findings) {
    return open_reader(posix_file_system(), checkpoint_, {}, findings, directory_ / "kept");
  };
  EXPECT_EQ(verify(machine_.judge(), open, Level::full).bytes_unprotected, 0);
}

// A link that the user names is followed, wherever it leads; its signature may lie on either side.
TEST_F(Sealed, ASealElsewhereMayBeALink) {
  fs::create_directories(directory_ / "seals");
  fs::rename(test::seal(machine_, checkpoint_), directory_ / "seals/kept");
  fs::create_symlink("seals/kept", directory_ / "link");
  const Opener open = [&](Findings& findings) {
    return open_reader(posix_file_system(), checkpoint_, {}, findings, directory_ / "link");
  };
  const Report report = verify(machine_.judge(), open, Level::full);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.bytes_unprotected, 0);
  const auto signature = [&] {
    const auto found = find_signed_seal(posix_file_system(), checkpoint_, directory_ / "link");
    return found ? found->signature : fs::path("no seal");
  };
  EXPECT_EQ(signature(), directory_ / "link.minisig");
  put(directory_ / "seals/kept.minisig", "signature");
  EXPECT_EQ(signature(), fs::canonical(directory_ / "seals/kept.minisig"));
  put(directory_ / "link.minisig", "signature");
  EXPECT_EQ(signature(), directory_ / "link.minisig");
}

TEST_F(Sealed, ANativeCheckpointIsNeverSealed) {
  test::run_job(machine_, checkpoint_, directory_ / "native", {});
  StrictFindings findings;
  try {
    open_to_seal(posix_file_system(), directory_ / "native", {}, findings);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported) << error.what();
  }
  EXPECT_THROW(open_reader(posix_file_system(), directory_ / "native", {}, findings, "seal"),
               Error);
}

// More than one block for a tensor: the block is named, and no other.
TEST_F(Sealed, ABlockOfALargeTensorIsNamed) {
  constexpr std::int64_t bytes = 3 * ExtentMap::block_bytes + 1000;
  const std::string size = std::to_string(bytes);
  std::string data(static_cast<std::size_t>(bytes), 'x');
  for (std::size_t at = 0; at < data.size(); at += 997) data[at] = static_cast<char>(at);
  const std::string content = file_of(
      R"({"w":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size + "]}}", data);
  const std::int64_t header = std::ssize(content) - bytes;
  const fs::path file = directory_ / "large/model.safetensors";
  put(file, content);
  test::seal(machine_, directory_ / "large");
  for (const std::int64_t block : {0, 2, 3}) {
    std::string flipped = content;
    const std::int64_t at = header + block * ExtentMap::block_bytes + 5;
    flipped[static_cast<std::size_t>(at)] ^= 16;
    put(file, flipped);
    const std::vector<Finding> found = judge(directory_ / "large").findings;
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].bytes->begin, header + block * ExtentMap::block_bytes);
    EXPECT_EQ(found[0].bytes->end,
              std::min(header + (block + 1) * ExtentMap::block_bytes, header + bytes));
    EXPECT_THAT(found[0].message, HasSubstr("bit 4 of byte " + std::to_string(at)));
    EXPECT_THAT(found[0].next_step, testing::Not(HasSubstr("repair")));
  }
}

}  // namespace
}  // namespace remesh
