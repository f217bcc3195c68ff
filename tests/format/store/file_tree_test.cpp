#include "remesh/store/file_tree.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/digest.hpp"
#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t mib = std::int64_t{1} << 20;

using Bytes = std::vector<std::byte>;

Bytes numbered(std::int64_t size) {
  Bytes bytes(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(7 * i % 251);
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::span<const std::byte> part(const Bytes& file, std::size_t leaf) {
  const std::size_t begin = leaf * static_cast<std::size_t>(mib);
  return std::span(file).subspan(begin,
                                 std::min(static_cast<std::size_t>(mib), file.size() - begin));
}

TreeHash tree_in_memory(const Bytes& file) {
  std::vector<TreeHash> leaves(static_cast<std::size_t>(file_tree::num_leaves(std::ssize(file))));
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    leaves[i] = file_tree::leaf(static_cast<std::int64_t>(i), part(file, i));
  }
  return file_tree::root(std::ssize(file), leaves);
}

struct Known {
  std::int64_t size;
  const char* root;
};

// By Python's hashlib, of bytes(7 * i % 251 for i in range(size)), with
//   h = lambda b: hashlib.blake2b(b, digest_size=32).digest()
//   leaf = lambda i, b: h(b"\0" + struct.pack("<Q", i) + b)
//   root = h(b"\1" + struct.pack("<Q", size) + b"".join(leaves))
constexpr Known known[] = {
    {0, "f7b1ba7f9618366193ada7cf4bb9904c175eab3003dea721d245fd0136b45eee"},
    {1, "ed8918ce0a4bfa4a78ecbf66a1f5bac2b72805492adc73b879ac5cd5e40921f5"},
    {3, "7649b5a522cc2a32ac2976198ffe3613d1e7b809718e552e0c7286f8dbb9e9a0"},
    {mib - 1, "592a942ed86ae6f712ffc28349d61811f99eacf9225c562432dd4e2aa8b9a929"},
    {mib, "73bfc202e07e284080a3e5edc67ba2e9cd886c583a6e7303ab0d707c7ed91dd4"},
    {mib + 1, "0e393e72d556e760db43b8eef7a2a511e7cff0e2643b89171692591b31284f22"},
    {3 * mib + 5, "049f6fdfd8bff4d757f44a15e0291211584d7c6d80253255c74363d478e0fd61"},
};

TEST(FileTree, HasTheHashesThatPythonComputes) {
  for (const auto& [size, root] : known) {
    EXPECT_EQ(to_string(tree_in_memory(numbered(size))), root) << size;
  }
}

TEST(FileTree, ALeafHasTheHashThatPythonComputesForItsNumber) {
  EXPECT_EQ(to_string(file_tree::leaf(0, bytes_of("abc"))),
            "7eb77934cc1395e95171e23d6eb5d92ca935c2a62a77fbca50cabf8ad9798277");
  EXPECT_EQ(to_string(file_tree::leaf(1, bytes_of("abc"))),
            "74ada09576504142dc4aa9538be9b7dfd546787145967e5506a52fdee36d8d21");
  EXPECT_EQ(to_string(file_tree::leaf((std::int64_t{1} << 40) + 3, bytes_of("abc"))),
            "acee71d046da45c6dfeb1467598cc1489f91af77dd61a24b519192346747a9d2");
}

TEST(FileTree, OfAFileIsThatOfItsBytesForAnyNumberOfThreads) {
  const test::TemporaryDirectory directory;
  for (const auto& [size, root] : known) {
    const auto path = directory / std::to_string(size);
    write_whole(posix_file_system(), path, numbered(size));
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      EXPECT_EQ(to_string(tree_of(*posix_file_system().open(path), pool)), root)
          << size << " bytes, " << threads << " threads";
    }
  }
}

TEST(FileTree, CountsLeaves) {
  EXPECT_EQ(file_tree::num_leaves(0), 0);
  EXPECT_EQ(file_tree::num_leaves(1), 1);
  EXPECT_EQ(file_tree::num_leaves(mib), 1);
  EXPECT_EQ(file_tree::num_leaves(mib + 1), 2);
  EXPECT_EQ(file_tree::num_leaves(INT64_MAX), INT64_MAX / mib + 1);
}

std::string refusal_of_root(std::int64_t size, const std::vector<TreeHash>& leaves) {
  try {
    return to_string(file_tree::root(size, leaves));
  } catch (const Error& error) {
    return error.code() == Errc::internal ? error.what() : "another code";
  }
}

TEST(FileTree, TheRootWantsAllLeaves) {
  const std::vector<TreeHash> leaves(2);
  for (const std::int64_t size : {std::int64_t{0}, mib, 2 * mib + 1}) {
    EXPECT_THAT(refusal_of_root(size, leaves), HasSubstr("2 leaves were given")) << size;
  }
}

TEST(FileTree, KnowsTheOrderOfLeavesAndTheSizeOfTheFile) {
  const TreeHash a = file_tree::leaf(0, bytes_of("a"));
  const TreeHash b = file_tree::leaf(1, bytes_of("b"));
  EXPECT_NE(file_tree::root(mib + 1, std::vector{a, b}),
            file_tree::root(mib + 1, std::vector{b, a}));
  EXPECT_NE(file_tree::root(mib + 1, std::vector{a, b}),
            file_tree::root(mib + 2, std::vector{a, b}));
}

TEST(FileTree, EveryFlippedBitChangesIt) {
  const Bytes file = numbered(mib + 300);
  const TreeHash whole = tree_in_memory(file);
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t at =
        trial < 30 ? file.size() - 1 - static_cast<std::size_t>(trial) : random() % file.size();
    Bytes flipped = file;
    flipped[at] ^= static_cast<std::byte>(1U << (random() % 8));
    EXPECT_NE(tree_in_memory(flipped), whole) << "byte " << at;
  }
}

void add_to(Bytes& bytes, std::size_t at, std::span<const std::byte> change) {
  for (std::size_t i = 0; i < change.size(); ++i) bytes[at + i] ^= change[i];
}

// The CRC is linear and has 64 bits: what any change does to it, the next 8 bytes can undo.
TEST(FileTree, TellsAForgeryThatTheCrcDoesNot) {
  const Bytes file = numbered(mib + 300);
  Bytes forged = file;
  const Bytes change{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::size_t at = 1000;
  add_to(forged, at, change);
  ASSERT_NE(digest_of(forged), digest_of(file));
  const std::uint64_t undo = crc64::pure(change);
  add_to(forged, at + change.size(), std::as_bytes(std::span(&undo, 1)));

  ASSERT_NE(forged, file);
  EXPECT_EQ(digest_of(forged), digest_of(file));
  EXPECT_NE(tree_in_memory(forged), tree_in_memory(file));
}

TEST(FileTree, ItsTextReadsBack) {
  TreeHash hash;
  for (std::size_t i = 0; i < hash.bytes.size(); ++i) hash.bytes[i] = static_cast<std::byte>(9 * i);
  const std::string text = to_string(hash);
  EXPECT_EQ(text, "0009121b242d363f48515a636c757e879099a2abb4bdc6cfd8e1eaf3fc050e17");
  EXPECT_EQ(parse_tree_hash(text), hash);
}

TEST(FileTree, NoOtherTextIsAHash) {
  const std::string text(64, 'a');
  ASSERT_TRUE(parse_tree_hash(text));
  std::vector<std::string> wrong{"", text.substr(1), text + "a", std::string(64, 'A')};
  for (const char c : {'g', '`', '/', ':', ' ', '\0'}) {
    for (const std::size_t at : {0U, 1U, 63U})
      wrong.push_back(std::string(text).replace(at, 1, 1, c));
  }
  for (const std::string& other : wrong) EXPECT_FALSE(parse_tree_hash(other)) << other;
}

}  // namespace
}  // namespace remesh
