#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf_files.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "safetensors/reader.hpp"

namespace remesh {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A damaged checkpoint of fixtures/invalid, by the name of its defect.
struct Defect {
  const char* name;
  const char* findings;    // all of them, as a judge collects them
  Errc code;               // with which it is refused
  const char* says;        // part of the first message
  std::ptrdiff_t tensors;  // that can be opened all the same; -1: nothing can
};

constexpr Errc not_found = Errc::not_found;
constexpr Errc corrupt = Errc::corrupt;
constexpr Errc incomplete = Errc::incomplete;
constexpr Errc unsupported = Errc::unsupported;
constexpr Errc limit = Errc::out_of_memory;
constexpr Errc unsafe = Errc::unsafe;

// clang-format off
const std::vector<Defect> files{
    {"empty_file",                 "error RM201", corrupt,     "it is empty", -1},
    {"lfs_pointer",                "error RM201", corrupt,     "run `git lfs pull`", -1},
    {"length_word_cut",            "error RM202", corrupt,     "it has 5 bytes, but a header alone begins with 8", -1},
    {"header_length_huge",         "error RM201", corrupt,     "announce a header of 18446744073709551615 bytes, but at most 100000000", -1},
    {"header_length_over_limit",   "error RM201", corrupt,     "announce a header of 100000001 bytes", -1},
    {"header_length_zero",         "error RM210", corrupt,     "does not begin with '{'", -1},
    {"header_cut",                 "error RM202", corrupt,     "it has 40 bytes, but its header alone ends at 62", -1},
    {"header_array",               "error RM210", corrupt,     "does not begin with '{'", -1},
    {"header_begins_with_space",   "error RM210", corrupt,     "does not begin with '{'", -1},
    {"header_breaks_off",          "error RM210", corrupt,     "its JSON breaks off", -1},
    {"header_not_utf8",            "error RM210", corrupt,     "no JSON in UTF-8, at byte 3", -1},
    {"header_nul",                 "error RM210", corrupt,     "its JSON has a NUL at byte 2", -1},
    {"header_text_behind",         "error RM210", corrupt,     "its JSON breaks off", -1},
    {"header_trailing_comma",      "error RM210", corrupt,     "its JSON breaks off", -1},
    {"duplicate_tensor",           "error RM608", corrupt,     "the key 'a' stands there twice", -1},
    {"duplicate_field",            "error RM608", corrupt,     "the key 'dtype' stands there twice", -1},
    {"duplicate_metadata_key",     "error RM608", corrupt,     "the key 'k' stands there twice", -1},
    {"metadata_not_object",        "error RM210", corrupt,     "'__metadata__' that is no object of texts", -1},
    {"metadata_array",             "error RM210", corrupt,     "'__metadata__' that is no object of texts", -1},
    {"metadata_number",            "error RM210", corrupt,     "'__metadata__' that is no object of texts", -1},
    {"metadata_nested",            "error RM210", corrupt,     "'__metadata__' that is no object of texts", -1},
    {"entry_text",                 "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"entry_array",                "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"no_dtype",                   "error RM210", corrupt,     "tensor 'a' lacks its dtype", -1},
    {"no_shape",                   "error RM210", corrupt,     "tensor 'a' lacks its dtype, its shape", -1},
    {"no_offsets",                 "error RM210", corrupt,     "tensor 'a' lacks its dtype, its shape or its data_offsets", -1},
    {"dtype_number",               "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"dtype_array",                "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"dtype_unknown",              "error RM303", unsupported, "tensor 'a' has the dtype 'F128'", -1},
    {"shape_text",                 "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"shape_negative",             "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"shape_fraction",             "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"shape_nested",               "error RM210", corrupt,     "tensor 'a' is not described as", -1},
    {"shape_mismatch",             "error RM303", corrupt,     "(f32, [0, 3)) has the 8 bytes [0, 8), but its dtype and shape take 12", -1},
    {"shape_overflow",             "error RM303", corrupt,     "overflows 64 bits", -1},
    {"shape_overflow_behind_zero", "error RM303", corrupt,     "overflows 64 bits", -1},
    {"shape_dim_beyond_63_bits",   "error RM303", corrupt,     "a dim of 9223372036854775808 elements", -1},
    {"shape_nine_dims",            "error RM303", unsupported, "tensor 'a' has 9 dims, but at most 8", -1},
    {"shape_no_whole_bytes",       "error RM303", corrupt,     "has 12 bits, which are no whole bytes", -1},
    {"offsets_one",                "error RM210", corrupt,     "data_offsets that are no range", -1},
    {"offsets_three",              "error RM210", corrupt,     "data_offsets that are no range", -1},
    {"offsets_reversed",           "error RM210", corrupt,     "data_offsets that are no range", -1},
    {"offsets_beyond_63_bits",     "error RM210", corrupt,     "data_offsets that are no range", -1},
    {"offsets_begin_late",         "error RM208", corrupt,     "'a' begins at byte 4 of the data, but the one before ends at 0", -1},
    {"offsets_gap",                "error RM208", corrupt,     "'b' begins at byte 12 of the data, but the one before ends at 8", -1},
    {"offsets_overlap",            "error RM209", corrupt,     "'b' begins at byte 4 of the data, but the one before ends at 8", -1},
    {"offsets_shared",             "error RM209", corrupt,     "'b' begins at byte 0 of the data, but the one before ends at 8", -1},
    {"data_cut",                   "error RM202", corrupt,     "5 are missing, and 1 of 2 tensors are cut, 'b' first", 2},
    {"data_trailing",              "error RM208", corrupt,     "the last 1 belong to no tensor", 1},
    {"name_too_long",              "error RM605", limit,       "a name of 4097 bytes", -1},
    {"nested_too_deep",            "error RM605", limit,       "nests more than 64 deep", -1},
};

const std::vector<Defect> directories{
    {"no_weights",            "error RM101",              not_found,  "it has no *.safetensors file", -1},
    {"several_without_index", "error RM205",              corrupt,    "it has 2 *.safetensors files, but neither 'model.safetensors.index.json'", 2},
    {"stopped_before_index",  "error RM203",              incomplete, "it is one of 2 files, but 1 of them are absent: model-00002-of-00002.safetensors;", 1},
    {"index_of_fewer",        "error RM203",              incomplete, "it is one of 2 files, but 1 of them are absent: model-00002-of-00002.safetensors;", 1},
    {"optimizer_stopped",     "error RM203, warn RM108",  incomplete, "it is one of 2 files, but 1 of them are absent: optimizer-00002-of-00002.safetensors;", 1},
    {"index_empty",           "error RM201",              corrupt,    "it is empty", 2},
    {"index_lfs_pointer",     "error RM201",              corrupt,    "run `git lfs pull`", 2},
    {"index_breaks_off",      "error RM210",              corrupt,    "its JSON breaks off", 2},
    {"index_array",           "error RM210",              corrupt,    "it is no JSON object", 2},
    {"index_no_map",          "error RM210",              corrupt,    "it has no 'weight_map'", 2},
    {"index_empty_map",       "error RM210",              corrupt,    "it has no 'weight_map', or an empty one", 2},
    {"index_map_array",       "error RM210",              corrupt,    "a 'weight_map' that is no object of texts", 2},
    {"index_map_number",      "error RM210",              corrupt,    "a 'weight_map' that is no object of texts", 2},
    {"index_map_nested",      "error RM210",              corrupt,    "a 'weight_map' that is no object of texts", 2},
    {"index_metadata_array",  "error RM210",              corrupt,    "a 'metadata' that is no object", 2},
    {"index_duplicate_key",   "error RM608",              corrupt,    "the key 'a' stands there twice", 2},
    {"index_path_up",         "error RM603",              unsafe,     "../model-00002-of-00002.safetensors", 2},
    {"index_path_down",       "error RM603",              unsafe,     "sub/model-00002-of-00002.safetensors", 2},
    {"index_path_absolute",   "error RM603",              unsafe,     "/etc/passwd", 2},
    {"sum_beyond_63_bits",    "error RM202, error RM202, error RM605", corrupt, "and 10 of 10 tensors are cut", 10},
    {"shard_absent",          "error RM203",              incomplete, "it lists 2 files, but 1 of them are absent: model-00002-of-00002.safetensors", 1},
    {"shard_cut",             "error RM202",              corrupt,    "3 are missing, and 1 of 2 tensors are cut, 'b' first", 3},
    {"shard_empty",           "error RM201",              corrupt,    "it is empty", 1},
    {"tensor_not_in_file",    "error RM206",              corrupt,    "the index puts 1 tensors there that it does not have: c", 2},
    {"tensor_not_in_index",   "error RM206",              corrupt,    "it has 1 tensors that the index does not list: c", 3},
    {"tensor_in_other_file",  "error RM206, error RM206", corrupt,    "the index puts 1 tensors there that it does not have: b", 2},
    {"tensor_in_two_files",   "error RM304",              corrupt,    "it has the tensor 'a', but 'model-00001-of-00002.safetensors' has it too", 2},
};

// Readable, and carried; a judge says why one should still look.
const std::vector<Defect> warnings{
    {"field_unknown.safetensors", "warn RM102",             {}, "by a field 'strides', which the format does not define", 1},
    {"index_total_size",          "warn RM206",             {}, "its total_size is 17, but the tensors have 16 bytes", 2},
    {"index_total_size_text",     "warn RM206",             {}, "its total_size is -1, but the tensors have 16 bytes", 2},
    {"shards_of_another_save",    "warn RM205, note RM108", {}, "lists none of 1 files beside it: model-00003-of-00003.safetensors", 2},
    {"two_weight_sets",           "warn RM205, note RM108", {}, "there are two weight sets, and loaders take this one", 2},
};
// clang-format on

std::filesystem::path folder() {
  return std::filesystem::path(REMESH_SOURCE_DIR) / "fixtures" / "invalid";
}

std::ptrdiff_t num_tensors(const Reader* reader) {
  return reader ? static_cast<std::ptrdiff_t>(reader->catalog().tensors.size()) : -1;
}

void expect_collected(const Defect& defect, const std::filesystem::path& path) {
  CollectedFindings findings;
  const auto reader = safetensors::open(posix_file_system(), path, findings);
  EXPECT_EQ(test::ids(findings.all), defect.findings);
  ASSERT_FALSE(findings.all.empty());
  EXPECT_THAT(findings.all.front().message, HasSubstr(defect.says));
  EXPECT_THAT(findings.all.front().message, StartsWith("cannot "));
  EXPECT_FALSE(findings.all.front().file.empty());
  EXPECT_EQ(num_tensors(reader.get()), defect.tensors);
}

void expect_refused(const Defect& defect, const std::filesystem::path& path) {
  StrictFindings findings;
  try {
    safetensors::open(posix_file_system(), path, findings);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), defect.code) << to_string(error.code());
    EXPECT_THAT(defect.findings, StartsWith("error " + error.id()));
    EXPECT_THAT(error.what(), HasSubstr(defect.says));
  }
}

TEST(InvalidSafetensors, EveryDefectOfAFileHasItsFinding) {
  for (const Defect& defect : files) {
    SCOPED_TRACE(defect.name);
    const auto path = folder() / (std::string(defect.name) + ".safetensors");
    expect_collected(defect, path);
    expect_refused(defect, path);
  }
}

TEST(InvalidSafetensors, EveryDefectOfADirectoryHasItsFinding) {
  for (const Defect& defect : directories) {
    SCOPED_TRACE(defect.name);
    expect_collected(defect, folder() / defect.name);
    expect_refused(defect, folder() / defect.name);
  }
}

TEST(InvalidSafetensors, WhatIsOnlyOddIsOpenedWithAWarning) {
  for (const Defect& defect : warnings) {
    SCOPED_TRACE(defect.name);
    expect_collected(defect, folder() / defect.name);
    StrictFindings findings;
    EXPECT_NE(safetensors::open(posix_file_system(), folder() / defect.name, findings), nullptr);
  }
}

TEST(InvalidSafetensors, EveryFixtureIsExpected) {
  std::set<std::string> expected{"make.py"};
  for (const Defect& defect : files) expected.insert(std::string(defect.name) + ".safetensors");
  for (const auto* table : {&directories, &warnings}) {
    for (const Defect& defect : *table) expected.insert(defect.name);
  }
  std::set<std::string> present;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    present.insert(entry.path().filename().string());
  }
  EXPECT_EQ(present, expected);
}

// The extents are what can be read: a cut tensor has a description, and no place.
TEST(InvalidSafetensors, OfACutFileTheWholeTensorsRemain) {
  CollectedFindings findings;
  const auto reader = safetensors::open(posix_file_system(), folder() / "shard_cut", findings);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->extents().of(*reader->catalog().find("a")).size(), 1);
  EXPECT_EQ(reader->extents().of(*reader->catalog().find("b")).size(), 0);
  EXPECT_EQ(reader->extents().of(*reader->catalog().find("c")).size(), 1);
  EXPECT_EQ(findings.all.front().file, "model-00001-of-00002.safetensors");
  const std::int64_t whole = findings.all.front().bytes->end;
  EXPECT_EQ(*findings.all.front().bytes, (ByteRange{whole - 3, whole}));
}

// No prefix of a good file is a good file, and none breaks the parser.
TEST(InvalidSafetensors, EveryPrefixOfAFileIsRefused) {
  const std::string whole = test::plain_file({{"a", "abcd"}, {"b", "efgh"}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CollectedFindings findings;
    const std::string cut = whole.substr(0, size);
    safetensors::parse_header(test::as_bytes(cut), static_cast<std::int64_t>(size), "cut",
                              findings);
    ASSERT_EQ(findings.all.size(), 1) << size << " bytes";
    EXPECT_EQ(findings.all.front().id, size == 0 ? "RM201" : "RM202") << size << " bytes";
  }
}

}  // namespace
}  // namespace remesh
