#include "remesh/store/file_tree.hpp"

#include <algorithm>
#include <cassert>
#include <sodium.h>
#include <vector>

#include <fmt/format.h>

#include "little_endian.hpp"
#include "remesh/core/error.hpp"
#include "sodium_ready.hpp"

namespace remesh {
namespace {

// What distinguishes the inputs of the two kinds of hash.
constexpr std::byte leaf_kind{0};
constexpr std::byte root_kind{1};

class Blake {
 public:
  Blake(std::byte kind, std::int64_t number) {
    native::sodium_ready();
    ::crypto_generichash_init(&state_, nullptr, 0, sizeof(TreeHash::bytes));
    std::array<std::byte, 1 + sizeof number> start{kind};
    native::store(std::span<std::byte>(start), 1, number);
    add(start);
  }
  void add(std::span<const std::byte> bytes) {
    ::crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                                bytes.size());
  }
  TreeHash end() {
    TreeHash hash;
    ::crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(hash.bytes.data()),
                               hash.bytes.size());
    return hash;
  }

 private:
  ::crypto_generichash_state state_{};
};

// -1 for what is no lower-case hexadecimal digit.
int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string to_string(const TreeHash& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * hash.bytes.size());
  for (const std::byte byte : hash.bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::optional<TreeHash> parse_tree_hash(std::string_view text) noexcept {
  TreeHash hash;
  if (text.size() != 2 * hash.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.bytes.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash.bytes[i] = static_cast<std::byte>(16 * high + low);
  }
  return hash;
}

namespace file_tree {

std::int64_t num_leaves(std::int64_t file_bytes) noexcept {
  return file_bytes / leaf_bytes + (file_bytes % leaf_bytes != 0 ? 1 : 0);
}

TreeHash leaf(std::int64_t index, std::span<const std::byte> bytes) {
  assert(index >= 0 && !bytes.empty() && std::ssize(bytes) <= leaf_bytes);
  Blake blake(leaf_kind, index);
  blake.add(bytes);
  return blake.end();
}

TreeHash root(std::int64_t file_bytes, std::span<const TreeHash> leaves) {
  if (std::ssize(leaves) != num_leaves(file_bytes)) {
    throw Error(Errc::internal,
                fmt::format("cannot hash a file of {} bytes: {} leaves were given, but it has {}",
                            file_bytes, leaves.size(), num_leaves(file_bytes)));
  }
  Blake blake(root_kind, file_bytes);
  for (const TreeHash& leaf : leaves) blake.add(leaf.bytes);
  return blake.end();
}

}  // namespace file_tree

TreeHash tree_of(const File& file, ThreadPool& pool, const StopFlag* stop) {
  using file_tree::leaf_bytes;
  const std::int64_t size = file.size_bytes();
  std::vector<TreeHash> leaves(static_cast<std::size_t>(file_tree::num_leaves(size)));
  std::vector<std::vector<std::byte>> buffers(static_cast<std::size_t>(pool.size()));
  pool.run(leaves.size(), [&](std::size_t index, int worker) {
    if (stop != nullptr) stop->check();
    const std::int64_t begin = static_cast<std::int64_t>(index) * leaf_bytes;
    std::vector<std::byte>& buffer = buffers[static_cast<std::size_t>(worker)];
    buffer.resize(static_cast<std::size_t>(std::min(leaf_bytes, size - begin)));
    file.read_at(begin, buffer);
    leaves[index] = file_tree::leaf(static_cast<std::int64_t>(index), buffer);
  });
  return file_tree::root(size, leaves);
}

}  // namespace remesh
