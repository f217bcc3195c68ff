#include "safetensors/reader.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf_files.hpp"
#include "remesh/core/error.hpp"
#include "safetensors/side_files.hpp"
#include "temporary_directory.hpp"

namespace remesh::safetensors {
namespace {

namespace fs = std::filesystem;
using test::content_of;
using test::plain_file;
using test::put;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string one = "model-00001-of-00002.safetensors";
const std::string two = "model-00002-of-00002.safetensors";
const std::string map_of_two = R"({"weight_map":{"a":")" + one + R"(","b":")" + two + R"("}})";

std::unique_ptr<Reader> opened(const fs::path& path) {
  StrictFindings findings;
  return open(posix_file_system(), path, findings);
}

std::vector<std::string> tensor_names(const Reader& reader) {
  std::vector<std::string> names;
  for (const TensorDesc& tensor : reader.catalog().tensors) names.push_back(tensor.name);
  return names;
}

std::vector<std::string> side_names(const Reader& reader) {
  std::vector<std::string> names;
  for (const SideFile& side : reader.catalog().side) names.push_back(side.name);
  return names;
}

std::string read_all(const Reader& reader, const std::string& name) {
  const std::size_t tensor = reader.catalog().find(name).value();
  const Box& extent = reader.catalog().tensors[tensor].extent;
  std::string bytes(static_cast<std::size_t>(num_bytes(reader.catalog().tensors[tensor])), '?');
  reader.read(tensor, extent, std::as_writable_bytes(std::span(bytes)), {});
  return bytes;
}

class HfReader : public ::testing::Test {
 protected:
  void put_two_shards() {
    put(directory_ / one, plain_file({{"b1", "123"}, {"a", "abcd"}}));
    put(directory_ / two, plain_file({{"b", "xyz"}}));
    put(directory_ / "model.safetensors.index.json",
        R"({"weight_map":{"a":")" + one + R"(","b":")" + two + R"(","b1":")" + one + R"("}})");
  }

  std::string findings_of(const fs::path& path) {
    CollectedFindings findings;
    open(posix_file_system(), path, findings);
    for (const Finding& finding : findings.all) messages_ += finding.message + "\n";
    return test::ids(findings.all);
  }

  test::TemporaryDirectory directory_;
  std::string messages_;
};

TEST_F(HfReader, OrdersTensorsByFileAndThenByPlace) {
  put_two_shards();
  const auto reader = opened(directory_.path());
  EXPECT_THAT(tensor_names(*reader), ElementsAre("b1", "a", "b"));
  EXPECT_EQ(reader->catalog().format, "hf");
  EXPECT_EQ(reader->catalog().layout, Layout::replicated(Mesh{}, 3));
  EXPECT_THAT(reader->catalog().digests, IsEmpty());
}

TEST_F(HfReader, ReadsEachTensorFromItsPlace) {
  put_two_shards();
  const auto reader = opened(directory_.path());
  EXPECT_EQ(read_all(*reader, "a"), "abcd") << "which begins at an odd byte";
  EXPECT_EQ(read_all(*reader, "b"), "xyz");
  EXPECT_EQ(read_all(*reader, "b1"), "123");
}

TEST_F(HfReader, HasOneExtentForEachTensorEmptyOnesToo) {
  put(directory_ / "model.safetensors", plain_file({{"a", "ab"}, {"none", ""}, {"b", "c"}}));
  const auto reader = opened(directory_.path());
  ASSERT_EQ(reader->extents().extents().size(), 3);
  const auto size = static_cast<std::int64_t>(fs::file_size(directory_ / "model.safetensors"));
  for (const char* name : {"a", "none", "b"}) {
    const std::size_t tensor = reader->catalog().find(name).value();
    ASSERT_EQ(reader->extents().of(tensor).size(), 1) << name;
    const Extent& extent = reader->extents().extents()[reader->extents().of(tensor)[0]];
    EXPECT_EQ(extent.box, reader->catalog().tensors[tensor].extent);
    EXPECT_EQ(extent.length_bytes, num_bytes(reader->catalog().tensors[tensor])) << name;
    if (name[0] == 'b') {
      EXPECT_EQ(extent.offset_bytes, size - 1);
    }
  }
  EXPECT_EQ(read_all(*reader, "none"), "");
}

TEST_F(HfReader, RemembersHowTheTensorsArePacked) {
  put_two_shards();
  const Packaging packaging = opened(directory_.path())->catalog().packaging;
  ASSERT_EQ(packaging.files.size(), 2);
  EXPECT_EQ(packaging.files[0].name, one);
  EXPECT_THAT(packaging.file_of, ElementsAre(0, 0, 1));
  EXPECT_EQ(packaging.index_text, content_of(directory_ / "model.safetensors.index.json"));
  EXPECT_EQ(packaging.files[1].verbatim_header, "") << "the rules give the same bytes";
  const std::string whole = content_of(directory_ / one);
  EXPECT_EQ(packaging.files[0].verbatim_header, whole.substr(8, whole.size() - 8 - 7))
      << "b1 before a: the rules would give other bytes";
}

TEST_F(HfReader, RemembersTheMetadataOfEachFile) {
  put(directory_ / "model.safetensors", with_length_word(R"({"__metadata__":{"z":"1","a":"2"}})"));
  const Packaging packaging = opened(directory_.path())->catalog().packaging;
  EXPECT_THAT(packaging.files[0].metadata,
              ElementsAre(::testing::Pair("z", "1"), ::testing::Pair("a", "2")));
}

TEST_F(HfReader, ReadsTheOnlyFileOfADirectoryWhateverItsName) {
  put(directory_ / "adapter.safetensors", plain_file({{"a", "x"}}));
  EXPECT_THAT(tensor_names(*opened(directory_.path())), ElementsAre("a"));
}

TEST_F(HfReader, PrefersModelSafetensorsWhereThereIsNoIndex) {
  put(directory_ / "consolidated.safetensors", plain_file({{"other", "x"}}));
  put(directory_ / "model.safetensors", plain_file({{"a", "x"}}));
  EXPECT_EQ(findings_of(directory_.path()), "note RM108");
  EXPECT_THAT(tensor_names(*opened(directory_.path())), ElementsAre("a"));
}

TEST_F(HfReader, OfASingleFileNothingElseIsRead) {
  put(directory_ / "weights.safetensors", plain_file({{"a", "x"}}));
  put(directory_ / "config.json", "{}");
  put(directory_ / "pytorch_model.bin", "x");
  EXPECT_EQ(findings_of(directory_ / "weights.safetensors"), "");
  const auto reader = opened(directory_ / "weights.safetensors");
  EXPECT_THAT(side_names(*reader), IsEmpty());
  EXPECT_EQ(reader->extents().files()[0].name, "weights.safetensors");
}

TEST_F(HfReader, CarriesEveryOtherFileOfTheTopLevel) {
  put_two_shards();
  put(directory_ / "config.json", "{\"a\": 1}");
  put(directory_ / "tokenizer.model", std::string("\0\xff", 2));
  put(directory_ / ".gitattributes", "");
  put(directory_ / "README.md", "text");
  const auto reader = opened(directory_.path());
  EXPECT_THAT(side_names(*reader),
              ElementsAre(".gitattributes", "README.md", "config.json", "tokenizer.model"));
  const SideFile& config = reader->catalog().side[2];
  EXPECT_EQ(config.size_bytes, 8);
  EXPECT_EQ(config.digest, digest_of(test::as_bytes("{\"a\": 1}")));
  const auto bytes = reader->side(reader->catalog().side[3]);
  EXPECT_THAT(bytes, ElementsAre(std::byte{0}, std::byte{0xff}));
}

TEST_F(HfReader, DigestsASideFileOfSeveralPieces) {
  put_two_shards();
  std::string large(3'000'000, 'x');
  large[2'500'000] = 'y';
  put(directory_ / "tokenizer.json", large);
  EXPECT_EQ(opened(directory_.path())->catalog().side.at(0).digest,
            digest_of(test::as_bytes(large)));
}

TEST_F(HfReader, NamesInOneNoteWhatIsNotCarried) {
  put_two_shards();
  for (const char* name : {"old.safetensors", "pytorch_model.bin", "a.pt", "b.pth", "c.gguf",
                           "d.h5", "e.msgpack", "f.onnx", "original/params.json"}) {
    put(directory_ / name, "x");
  }
  put(directory_ / "log.txt", "");
  fs::resize_file(directory_ / "log.txt", max_side_bytes + 1);
  put(directory_ / "fits.txt", "");
  fs::resize_file(directory_ / "fits.txt", max_side_bytes);

  EXPECT_EQ(findings_of(directory_.path()), "note RM108");
  EXPECT_THAT(messages_, HasSubstr("not carried: a.pt, b.pth, c.gguf, d.h5, e.msgpack, f.onnx, "
                                   "log.txt, old.safetensors, original/, pytorch_model.bin"));
  EXPECT_THAT(side_names(*opened(directory_.path())), ElementsAre("fits.txt"));
}

TEST_F(HfReader, SaysThatASideFileIsALfsPointer) {
  put_two_shards();
  put(directory_ / "tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid ...");
  put(directory_ / "empty.txt", "");
  EXPECT_EQ(findings_of(directory_.path()), "warn RM201");
  EXPECT_THAT(messages_, HasSubstr("cannot read 'tokenizer.json': it is a git-lfs pointer"));
}

// ---- links ----

class HubCache : public HfReader {
 protected:
  // models--org--name/{blobs/<hash>, snapshots/<commit>/<name> -> ../../blobs/<hash>}
  void put_blob(const std::string& name, const std::string& content) {
    const std::string hash = "hash-of-" + name;
    put(directory_ / ("blobs/" + hash), content);
    link(name, "../../blobs/" + hash);
  }
  void link(const std::string& name, const std::string& target) {
    fs::create_directories(snapshot());
    fs::create_symlink(target, snapshot() / name);
  }
  fs::path snapshot() const { return directory_ / "snapshots/4d7a"; }
};

TEST_F(HubCache, ASnapshotIsReadThroughItsLinks) {
  put_blob(one, plain_file({{"a", "abcd"}}));
  put_blob(two, plain_file({{"b", "xyz"}}));
  put_blob("model.safetensors.index.json", map_of_two);
  put_blob("config.json", "{}");
  const auto reader = opened(snapshot());
  EXPECT_EQ(read_all(*reader, "b"), "xyz");
  EXPECT_THAT(side_names(*reader), ElementsAre("config.json"));
  EXPECT_EQ(reader->side(reader->catalog().side[0]).size(), 2);
  EXPECT_EQ(reader->catalog().packaging.files[1].name, two);
}

TEST_F(HubCache, AnyOtherLinkIsRefused) {
  put(directory_ / "secret", "x");
  const std::string absolute = (directory_ / "blobs/hash").string();
  put(directory_ / "blobs/hash", "x");
  for (const std::string& target :
       {std::string("/etc/passwd"), absolute, std::string("../../secret"),
        std::string("../../blobs/../secret"), std::string("../../blobs/sub/hash"),
        std::string("../../blobs/"), std::string("../../blobs/.."), std::string("../blobs/hash"),
        std::string("./../../blobs/hash"), std::string("config2.json")}) {
    fs::remove_all(snapshot());
    put(snapshot() / "model.safetensors", plain_file({{"a", "x"}}));
    link("config.json", target);
    messages_.clear();
    EXPECT_EQ(findings_of(snapshot()), "error RM603") << target;
    EXPECT_THAT(messages_, HasSubstr("it is a link to '" + target + "'"));
    EXPECT_THROW(opened(snapshot()), Error) << target;
  }
}

TEST_F(HubCache, ABlobDirectoryThatIsItselfALinkIsNotFollowed) {
  put(directory_ / "elsewhere/hash", "secret");
  fs::create_directory_symlink(directory_ / "elsewhere", directory_ / "blobs");
  put(snapshot() / "model.safetensors", plain_file({{"a", "x"}}));
  link("config.json", "../../blobs/hash");
  EXPECT_EQ(findings_of(snapshot()), "error RM603");
  EXPECT_THAT(messages_, HasSubstr("which is no directory itself"));
}

TEST_F(HubCache, ALinkedBlobThatIsItselfALinkIsNotFollowed) {
  put(directory_ / "secret", plain_file({{"a", "x"}}));
  fs::create_directories(directory_ / "blobs");
  fs::create_symlink("../secret", directory_ / "blobs/hash");
  link("model.safetensors", "../../blobs/hash");
  EXPECT_EQ(findings_of(snapshot()), "error RM203, error RM101");
}

TEST_F(HubCache, ALinkToABlobThatIsAbsentIsAMissingFile) {
  put_blob(one, plain_file({{"a", "abcd"}}));
  put_blob("model.safetensors.index.json", map_of_two);
  link(two, "../../blobs/gone");
  EXPECT_EQ(findings_of(snapshot()), "error RM203, error RM203");
  EXPECT_THAT(messages_, HasSubstr("a link to '../../blobs/gone', but there is no such file"));
}

TEST_F(HfReader, APipeInThePlaceOfAFileOfTensorsIsNotOpened) {
  for (const char* name : {"model.safetensors.index.json", "optimizer.safetensors"}) {
    fs::remove_all(directory_ / "pipe");
    put(directory_ / "pipe/model.safetensors", plain_file({{"a", "x"}}));
    ASSERT_EQ(::mkfifo((directory_ / "pipe" / name).c_str(), 0600), 0);
    messages_.clear();
    EXPECT_EQ(findings_of(directory_ / "pipe"), "error RM604") << name;
  }
}

TEST_F(HfReader, ADirectoryInThePlaceOfAShardIsNoShard) {
  put_two_shards();
  fs::remove(directory_ / two);
  fs::create_directory(directory_ / two);
  EXPECT_EQ(findings_of(directory_.path()), "error RM203, note RM108");
}

}  // namespace
}  // namespace remesh::safetensors
