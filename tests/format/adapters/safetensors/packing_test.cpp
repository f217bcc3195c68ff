#include "safetensors/packing.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf_files.hpp"
#include "remesh/core/error.hpp"
#include "safetensors/index.hpp"

namespace remesh::safetensors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Groups = std::vector<std::vector<std::size_t>>;

struct SplitCase {
  std::int64_t limit;
  std::vector<std::int64_t> sizes;
  Groups files;
};

// By hand, from huggingface_hub's rule; the first is the example of its documentation.
// clang-format off
const std::vector<SplitCase> split_cases{
    {10, {6, 6, 2, 6, 2, 2},     {{0}, {1, 2}, {3, 4, 5}}},
    {10, {},                     {}},
    {10, {1},                    {{0}}},
    {10, {10},                   {{0}}},                         // the limit itself is within it
    {10, {11},                   {{0}}},
    {10, {4, 6},                 {{0, 1}}},
    {10, {4, 7},                 {{0}, {1}}},
    {10, {3, 20, 4, 3, 1},       {{1}, {0, 2, 3}, {4}}},         // a large one does not close the open file
    {10, {20, 30},               {{0}, {1}}},
    {10, {5, 20, 5, 20, 5},      {{1}, {3}, {0, 2}, {4}}},
    {10, {0, 0, 10, 0},          {{0, 1, 2, 3}}},                // empty tensors cost nothing
    {10, {10, 1, 0},             {{0}, {1, 2}}},
    {1,  {1, 1, 2},              {{0}, {2}, {1}}},
    {INT64_MAX, {INT64_MAX, 1},  {{0}, {1}}},                    // and no sum overflows
};
// clang-format on

TEST(Split, DealsTensorsAsHuggingfaceHubDoes) {
  for (const SplitCase& split_case : split_cases) {
    EXPECT_EQ(split(split_case.sizes, split_case.limit), split_case.files)
        << ::testing::PrintToString(split_case.sizes);
  }
}

TEST(Split, RefusesFilesOfNoSize) { EXPECT_THROW(split({}, 0), Error); }

// Tensors of so many bytes, named a, b, c ...
Catalog bytes_catalog(const std::vector<Index>& sizes) {
  Catalog catalog;
  for (const Index size : sizes) {
    const auto letter = static_cast<char>('a' + static_cast<char>(catalog.tensors.size()));
    catalog.tensors.push_back({std::string(1, letter), DType::u8, Box{{0, size}}});
  }
  return catalog;
}

std::vector<std::string> names(const Packing& packing) {
  std::vector<std::string> result;
  for (const auto& file : packing.packaging.files) result.push_back(file.name);
  return result;
}

TEST(Pack, NumbersTheFilesFromOneInTheOrderInWhichTheyClose) {
  const Packing packing = pack(bytes_catalog({3, 20, 4, 9}), 10);
  EXPECT_THAT(names(packing),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors"));
  EXPECT_THAT(packing.packaging.file_of, ElementsAre(1, 0, 1, 2));
  EXPECT_EQ(packing.files[1].header.tensors.size(), 2);
  EXPECT_THAT(packing.packaging.index_text, HasSubstr("\"total_size\": 36"));
  EXPECT_THAT(packing.packaging.index_text, HasSubstr("\"total_parameters\": 36"));
  EXPECT_THAT(packing.packaging.index_text,
              HasSubstr("\"b\": \"model-00001-of-00003.safetensors\""));
}

TEST(Pack, OneFileHasThePlainNameAndNoIndex) {
  const Packing packing = pack(bytes_catalog({3, 4}), 10);
  EXPECT_THAT(names(packing), ElementsAre("model.safetensors"));
  EXPECT_EQ(packing.packaging.index_text, "");
  EXPECT_EQ(
      packing.files[0].text,
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})");
}

TEST(Pack, WithoutASizeOrPackagingFilesHaveFiveGigabytes) {
  const Index half = 2'500'000'000;
  EXPECT_EQ(pack(bytes_catalog({half, half}), std::nullopt).files.size(), 1);
  EXPECT_EQ(pack(bytes_catalog({half, half, 1}), std::nullopt).files.size(), 2);
}

TEST(Pack, NoTensorsMakeOneFile) {
  const Packing packing = pack(Catalog{}, 10);
  EXPECT_THAT(names(packing), ElementsAre("model.safetensors"));
  EXPECT_TRUE(packing.files[0].header.tensors.empty());
}

Packaging::File file(std::string name, Metadata metadata = {}, std::string verbatim = {}) {
  return {std::move(name), std::move(metadata), std::move(verbatim)};
}

TEST(Pack, NewFilesHaveTheMetadataOfTheFirstSourceFile) {
  Catalog catalog = bytes_catalog({6, 6});
  catalog.packaging.files = {file("x.safetensors", {{"z", "1"}, {"a", "2"}}),
                             file("y.safetensors", {{"other", "3"}})};
  catalog.packaging.file_of = {0, 1};
  const Packing packing = pack(catalog, 10);
  for (const PackedFile& packed : packing.files) {
    EXPECT_THAT(packed.header.metadata, ElementsAre(Pair("z", "1"), Pair("a", "2")));
  }
}

TEST(Pack, KeepsTheFilesOfTheSourceWhereNoSizeIsGiven) {
  Catalog catalog = bytes_catalog({6, 5, 4});
  catalog.packaging.files = {file("one.safetensors"), file("two.safetensors", {{"k", "v"}})};
  catalog.packaging.file_of = {1, 0, 1};
  const Packing packing = pack(catalog, std::nullopt);
  EXPECT_THAT(names(packing), ElementsAre("one.safetensors", "two.safetensors"));
  EXPECT_THAT(packing.packaging.file_of, ElementsAre(1, 0, 1));
  EXPECT_TRUE(packing.files[0].header.metadata.empty());
  EXPECT_EQ(packing.files[1].header.data_bytes(), 10);
}

TEST(Pack, NumbersFilesByName) {
  Catalog catalog = bytes_catalog({6, 5});
  catalog.packaging.files = {file("two.safetensors"), file("one.safetensors")};
  catalog.packaging.file_of = {0, 1};
  const Packing packing = pack(catalog, std::nullopt);
  EXPECT_THAT(names(packing), ElementsAre("one.safetensors", "two.safetensors"));
  EXPECT_THAT(packing.packaging.file_of, ElementsAre(1, 0));
  EXPECT_EQ(packing.files[0].header.tensors.front().desc.name, "b");
}

TEST(Pack, AFileWhoseTensorsAreGoneIsGone) {
  Catalog catalog = bytes_catalog({6});
  catalog.packaging.files = {file("one.safetensors"), file("two.safetensors")};
  catalog.packaging.file_of = {1};
  EXPECT_THAT(names(pack(catalog, std::nullopt)), ElementsAre("two.safetensors"));
}

// "model-00001-of-00003" alone would be a save that was stopped.
TEST(Pack, WhereAShardIsGoneNoNameSaysThatItMustBeThere) {
  Catalog catalog = bytes_catalog({6, 5});
  catalog.packaging.files = {file("model-00001-of-00003.safetensors"),
                             file("model-00002-of-00003.safetensors"),
                             file("model-00003-of-00003.safetensors")};
  catalog.packaging.file_of = {0, 2};
  EXPECT_THAT(names(pack(catalog, std::nullopt)), ElementsAre("model.safetensors"));
  EXPECT_THAT(names(pack(catalog, 6)),
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
}

TEST(Pack, AFileThatNoReaderWouldRecogniseIsRenamed) {
  Catalog catalog = bytes_catalog({6});
  catalog.packaging.files = {file("4d7a2146")};
  catalog.packaging.file_of = {0};
  EXPECT_THAT(names(pack(catalog, std::nullopt)), ElementsAre("model.safetensors"));
}

const char* const odd_header =
    R"({"b":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}, "a":{"dtype":"U8","shape":[6],"data_offsets":[5,11]}})";

Catalog with_odd_header(std::vector<Index> sizes) {
  Catalog catalog = bytes_catalog(sizes);
  catalog.packaging.files = {file("model.safetensors", {}, odd_header)};
  catalog.packaging.file_of.assign(sizes.size(), 0);
  return catalog;
}

TEST(Pack, WritesAHeaderVerbatimWhileItDescribesTheSameTensors) {
  const Packing packing = pack(with_odd_header({6, 5}), std::nullopt);
  EXPECT_EQ(packing.files[0].text, odd_header);
  EXPECT_EQ(packing.files[0].header.tensors.front().desc.name, "b");
  EXPECT_EQ(packing.files[0].header.file_bytes(),
            8 + static_cast<std::int64_t>(std::string(odd_header).size()) + 11);
}

TEST(Pack, RebuildsAHeaderThatDescribesOtherTensors) {
  Catalog cast = with_odd_header({6, 5});
  cast.tensors[0].dtype = DType::i8;
  Catalog renamed = with_odd_header({6, 5});
  renamed.tensors[0].name = "c";
  for (const Catalog& catalog :
       {with_odd_header({6, 4}), with_odd_header({6, 5, 0}), with_odd_header({6}), cast, renamed}) {
    const Packing packing = pack(catalog, std::nullopt);
    EXPECT_EQ(packing.files[0].header.tensors.size(), catalog.tensors.size());
    EXPECT_EQ(packing.files[0].text, header_text(packing.files[0].header));
    EXPECT_EQ(packing.packaging.files[0].verbatim_header, "");
  }
}

const char* const odd_index =
    R"({"weight_map":{"b":"two.safetensors","a":"one.safetensors"},"metadata":{"total_size":99,"by":"x"}})";

Catalog with_index(const std::vector<Index>& sizes, const std::vector<std::uint32_t>& file_of) {
  Catalog catalog = bytes_catalog(sizes);
  catalog.packaging.files = {file("one.safetensors"), file("two.safetensors")};
  catalog.packaging.file_of = file_of;
  catalog.packaging.index_text = odd_index;
  return catalog;
}

TEST(Pack, WritesTheIndexVerbatimWhileItSaysTheSame) {
  EXPECT_EQ(pack(with_index({6, 5}, {0, 1}), std::nullopt).packaging.index_text, odd_index);
}

TEST(Pack, OfAnIndexThatSaysOtherwiseTheMetadataStays) {
  const std::string text = pack(with_index({6, 5}, {1, 0}), std::nullopt).packaging.index_text;
  EXPECT_THAT(text, HasSubstr("\"a\": \"two.safetensors\""));
  EXPECT_THAT(text, HasSubstr("\"by\": \"x\""));
  EXPECT_THAT(text, HasSubstr("\"total_size\": 11"));
  EXPECT_THAT(pack(with_index({6, 5}, {0, 1}), 6).packaging.index_text, HasSubstr("\"by\": \"x\""));
}

TEST(Pack, AnIndexThatCannotBeReadIsWrittenAnew) {
  Catalog catalog = with_index({6, 5}, {0, 1});
  catalog.packaging.index_text = "{\"metadata\": {\"by\": 1}, \"metadata\": {}}";
  const std::string text = pack(catalog, std::nullopt).packaging.index_text;
  EXPECT_THAT(text, HasSubstr("\"a\": \"one.safetensors\""));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("by")));
}

// Tensors 'a' and its state, in these files, with or without an index of the weights.
Packing packed_state(const std::vector<const char*>& names,
                     const std::vector<std::uint32_t>& file_of, bool with_index) {
  Catalog catalog = bytes_catalog({6, 6});
  catalog.tensors[1].name = "a@exp_avg";
  for (const char* name : names) catalog.packaging.files.push_back(file(name));
  catalog.packaging.file_of = file_of;
  if (with_index) catalog.packaging.index_text = odd_index;
  return pack(catalog, std::nullopt);
}

std::vector<std::string> names_of(const Packing& packing) {
  std::vector<std::string> names;
  for (const Packaging::File& file : packing.packaging.files) names.push_back(file.name);
  return names;
}

TEST(Pack, AnOptimizerHasFilesOfItsOwn) {
  const auto both = ElementsAre("model.safetensors", "optimizer.safetensors");
  EXPECT_THAT(names_of(packed_state({}, {}, false)), both);
  EXPECT_THAT(names_of(packed_state({"m.safetensors", "optimizer.safetensors"}, {0, 1}, false)),
              ElementsAre("m.safetensors", "optimizer.safetensors"));
  EXPECT_THAT(names_of(packed_state({"one.safetensors"}, {0, 0}, false)),
              ElementsAre("one.safetensors"))
      << "one file of both, without an index, is found again";
}

TEST(Pack, FilesThatNoReaderWouldFindAreNotKept) {
  const auto both = ElementsAre("model.safetensors", "optimizer.safetensors");
  EXPECT_THAT(names_of(packed_state({"optimizer.safetensors"}, {0, 0}, false)), both);
  EXPECT_THAT(names_of(packed_state({"optimizer.safetensors", "x.safetensors"}, {0, 1}, false)),
              both);
  EXPECT_THAT(names_of(packed_state({"x.safetensors", "y.safetensors"}, {0, 1}, true)), both);
  EXPECT_THAT(names_of(packed_state({"x.safetensors"}, {0, 0}, true)), both);
}

TEST(Pack, AnOptimizerInOneFileOfAnotherNameKeepsAnIndex) {
  const Packing packing =
      packed_state({"model.safetensors", "optimizer-00001-of-00001.safetensors"}, {0, 1}, false);
  EXPECT_THAT(packing.packaging.optimizer_index_text,
              HasSubstr("\"a@exp_avg\": \"optimizer-00001-of-00001.safetensors\""));
  EXPECT_EQ(packing.packaging.index_text, "");
}

void expect_refused(const Catalog& catalog, Errc code, const std::string& says) {
  try {
    pack(catalog, std::nullopt);
    FAIL() << "packed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(says));
  }
}

TEST(Pack, RefusesAPackagingThatDoesNotFit) {
  Catalog short_list = with_index({6, 5}, {0});
  expect_refused(short_list, Errc::invalid_argument,
                 "names the files of 1 tensors, but there are 2");
  expect_refused(with_index({6, 5}, {0, 2}), Errc::invalid_argument, "into file 2 of 2");
  Catalog twice = with_index({6, 5}, {0, 1});
  twice.packaging.files[1].name = "one.safetensors";
  expect_refused(twice, Errc::invalid_argument, "two files 'one.safetensors'");
  Catalog escape = with_index({6, 5}, {0, 1});
  escape.packaging.files[1].name = "../two.safetensors";
  expect_refused(escape, Errc::unsafe, "../two.safetensors");
}

}  // namespace
}  // namespace remesh::safetensors
