#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "damage.hpp"
#include "json_tree.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/core/name_table.hpp"
#include "remesh/json/events.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/seal.hpp"
#include "seal_format.hpp"
#include "shard_format.hpp"

namespace remesh {
namespace {

using native::damaged;
using native::Json;
using native::Members;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_u32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t longest_format_bytes = 64;

[[noreturn]] void spoilt(const std::string& what) { damaged(what, "RM110"); }

Digest digest_in(const Members& members, std::string_view key) {
  const auto digest = parse_digest(members.text(key));
  if (!digest) spoilt(fmt::format("'{}' of {} is no digest", key, members.where()));
  return *digest;
}

// Sixteen lower-case hexadecimal digits for each block, one behind the other.
void append_blocks(std::string_view text, std::vector<Digest>& blocks) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(text, is_digit)) {
    spoilt("the CRCs of blocks have other than lower-case hexadecimal digits");
  }
  for (std::size_t at = 0; at < text.size(); at += native::block_digits) {
    Digest block;
    const char* const begin = text.data() + at;
    std::from_chars(begin, begin + native::block_digits, block.value, 16);
    blocks.push_back(block);
  }
}

// What a seal says of its tensors, piece after piece.
struct Tensors {
  std::vector<TensorDesc> descs;
  std::vector<Digest> digests;
  std::vector<Extent> extents;
  std::vector<Digest> blocks;

  void take(const Json& element);

 private:
  void take_piece(const Json& value, const TensorDesc& desc, const std::string& where);
};

TensorDesc desc_in(const Members& members) {
  const auto dtype = parse_dtype(members.text("dtype"));
  if (!dtype) spoilt(fmt::format("the dtype of {} is unknown", members.where()));
  const auto shape = members.integers("shape", 0, most);
  if (shape.size() > static_cast<std::size_t>(max_ndim)) {
    spoilt(fmt::format("{} has {} dims, but at most {} are allowed", members.where(), shape.size(),
                       max_ndim));
  }
  TensorDesc desc{members.text("name"), *dtype, Box::whole(shape)};
  if (const auto reason = native::why_not_storable(desc); !reason.empty()) {
    spoilt(fmt::format("{} is impossible: {}", members.where(), reason));
  }
  return desc;
}

void Tensors::take(const Json& element) {
  if (descs.size() >= native::most_tensors) {
    damaged(fmt::format("it has more than {} tensors", native::most_tensors), "RM605");
  }
  const Members members(element, "tensor", {"digest", "dtype", "name", "pieces", "shape"},
                        std::ssize(descs));
  const TensorDesc desc = desc_in(members);
  for (const Json& piece : members.array("pieces")) take_piece(piece, desc, members.where());
  digests.push_back(digest_in(members, "digest"));
  descs.push_back(desc);
}

Box box_in(const Members& members, const TensorDesc& desc) {
  const Json& ranges = members.array("box");
  if (ranges.size() != static_cast<std::size_t>(desc.extent.ndim())) {
    spoilt(fmt::format("the box of {} has {} dims, but the tensor has {}", members.where(),
                       ranges.size(), desc.extent.ndim()));
  }
  Box box = desc.extent;
  for (int dim = 0; dim < box.ndim(); ++dim) {
    const Json& range = ranges[static_cast<std::size_t>(dim)];
    const auto at = [&](std::size_t end) {
      return range.is_array() && range.size() == 2 && range[end].is_number_integer()
                 ? range[end].get<std::int64_t>()
                 : -1;
    };
    box[dim] = {at(0), at(1)};
    if (box[dim].begin < 0 || box[dim].begin > box[dim].end ||
        box[dim].end > desc.extent[dim].end) {
      spoilt(fmt::format("the box of {} lies outside of its tensor", members.where()));
    }
  }
  return box;
}

void Tensors::take_piece(const Json& value, const TensorDesc& desc, const std::string& where) {
  const Members members(value, "a piece of " + where, {"blocks", "box", "copy", "file", "offset"});
  Extent extent;
  extent.tensor = static_cast<std::uint32_t>(descs.size());
  extent.box = box_in(members, desc);
  extent.file = static_cast<std::uint32_t>(members.integer("file", 0, most_u32));
  extent.copy = static_cast<std::uint32_t>(members.integer("copy", 0, most_u32 - 1));
  extent.offset_bytes = members.integer("offset", 0, most);
  // Some of a tensor whose bits can be counted.
  const std::int64_t bits_here = extent.box.num_elements() * bits(desc.dtype);
  if (bits_here % 8 != 0) {
    spoilt(fmt::format("{} has {} bits, which are no whole bytes", members.where(), bits_here));
  }
  extent.length_bytes = bits_here / 8;
  extent.first_block = std::ssize(blocks);
  const std::string& text = members.text("blocks");
  const std::int64_t count = num_blocks(extent.length_bytes);
  if (text.size() % native::block_digits != 0 ||
      static_cast<std::int64_t>(text.size() / native::block_digits) != count) {
    spoilt(fmt::format("'blocks' of {} has {} digits, but {} bytes have {} blocks", members.where(),
                       text.size(), extent.length_bytes, count));
  }
  append_blocks(text, blocks);
  extents.push_back(extent);
}

void check_unique(const std::vector<TensorDesc>& descs) {
  NameTable names;
  names.reserve(descs.size());
  const auto name_of = [&](std::uint32_t at) -> std::string_view { return descs[at].name; };
  for (std::uint32_t number = 0; number < descs.size(); ++number) {
    if (!names.add(descs[number].name, number, name_of)) continue;
    spoilt(fmt::format("the tensor {:?} stands twice", descs[number].name));
  }
}

std::vector<ExtentMap::FileEntry> files_in(const Json& list, std::vector<Digest>& rest) {
  std::vector<ExtentMap::FileEntry> files;
  files.reserve(list.size());
  rest.reserve(list.size());
  for (const Json& value : list) {
    const Members members(value, "a file", {"name", "rest", "size"});
    check_component(members.text("name"), seal_name);
    if (!files.empty() && files.back().name >= members.text("name")) {
      spoilt("its files are not in order");
    }
    files.push_back({members.text("name"), members.integer("size", 0, most)});
    rest.push_back(digest_in(members, "rest"));
  }
  return files;
}

std::vector<TreeHash> trees_in(const Json& value, std::size_t num_files) {
  std::vector<TreeHash> trees;
  if (value.is_null()) return trees;
  if (!value.is_array() || value.size() != num_files) {
    spoilt(fmt::format("'blake2b' is neither null nor a list of {} roots", num_files));
  }
  trees.reserve(num_files);
  for (const Json& text : value) {
    const auto tree =
        text.is_string() ? parse_tree_hash(text.get_ref<const std::string&>()) : std::nullopt;
    if (!tree) spoilt("'blake2b' has other than 64 hexadecimal digits");
    trees.push_back(*tree);
  }
  return trees;
}

void check_inside(const Extent& extent, std::span<const ExtentMap::FileEntry> files) {
  if (extent.file >= files.size()) {
    spoilt(fmt::format("a piece of tensor {} lies in file {} of {}", extent.tensor, extent.file,
                       files.size()));
  }
  const auto end = checked_add(extent.offset_bytes, extent.length_bytes);
  if (!end || *end > files[extent.file].size_bytes) {
    spoilt(fmt::format("a piece of tensor {} begins at {} with {} bytes, but {:?} has {}",
                       extent.tensor, extent.offset_bytes, extent.length_bytes,
                       files[extent.file].name, files[extent.file].size_bytes));
  }
}

void check_apart(const ExtentMap& map) {
  const Extent* before = nullptr;
  for (const Extent& extent : map.extents()) {
    if (extent.length_bytes == 0) continue;
    if (before != nullptr && before->file == extent.file &&
        before->offset_bytes + before->length_bytes > extent.offset_bytes) {
      spoilt(fmt::format("pieces of the tensors {} and {} lie on the same bytes", before->tensor,
                         extent.tensor));
    }
    before = &extent;
  }
}

void check_version(const Json& root) {
  if (!root.is_object() || root.value("format", Json()) != std::string(native::seal_format)) {
    spoilt("it does not say that its format is 'remesh-seal'");
  }
  const Json version = root.value("format_version", Json());
  if (!version.is_number_integer()) spoilt("it does not say which version it has");
  if (version == native::seal_version) return;
  damaged(fmt::format("it is a seal of version {}; this remesh reads version {}",
                      version.get<std::int64_t>(), native::seal_version),
          "RM102");
}

Seal parse_version_1(std::string_view text) {
  Tensors tensors;
  const Json root =
      native::parse_json(text, {"tensors", [&](const Json& element) { tensors.take(element); }});
  check_version(root);
  const Members members(
      root, "it",
      {"blake2b", "files", "format", "format_version", "sealed", "tensors", "this_digest"});
  if (!members.array("tensors").empty()) spoilt("'tensors' has other than objects");
  check_unique(tensors.descs);
  Seal seal;
  seal.format = members.text("sealed");
  if (seal.format.empty() || seal.format.size() > longest_format_bytes) {
    spoilt(fmt::format("'sealed' has {} bytes, which are no format's name", seal.format.size()));
  }
  std::vector<ExtentMap::FileEntry> files = files_in(members.array("files"), seal.rest);
  seal.trees = trees_in(members.at("blake2b"), files.size());
  for (const Extent& extent : tensors.extents) check_inside(extent, files);
  seal.tensors = std::move(tensors.descs);
  seal.digests = std::move(tensors.digests);
  seal.extents = ExtentMap(std::move(files), std::move(tensors.extents), std::move(tensors.blocks));
  check_apart(seal.extents);
  return seal;
}

// The rules of another version are not known: its tensors must not be judged by ours.
void refuse_other_version(std::string_view text) {
  Json root;
  try {
    root = native::parse_json(text, {"tensors", [](const Json&) {}});
  } catch (const Error&) {
    return;  // of no version
  }
  check_version(root);
}

// Nothing of a text is believed that is not what was written.
void check_digest(std::string_view text) {
  const std::size_t end_bytes = std::min(text.size(), certificate_end_bytes);
  const std::string_view before = text.substr(0, text.size() - end_bytes);
  const auto recorded = parse_certificate_end(text.substr(before.size()));
  if (!recorded) {
    spoilt("it does not end in its own digest; it was cut short, or is no seal");
  }
  const Digest found = digest_of(std::as_bytes(std::span(before)));
  if (found == *recorded) return;
  spoilt(
      fmt::format("it hashes to {}, but says that it hashes to {}; it was changed after it was "
                  "written",
                  to_string(found), to_string(*recorded)));
}

}  // namespace

Seal parse_seal(std::string_view text) {
  check_digest(text);
  try {
    return parse_version_1(text);
  } catch (const Error& error) {
    if (error.id() != "RM102") refuse_other_version(text);
    // What others than this file refuse has no id of a seal.
    if (error.id().empty() || error.id() == "RM103") spoilt(error.what());
    throw;
  }
}

Seal read_seal(const FileSystem& files, const FileSystem::Path& path) {
  const std::string text = read_text(files, path, native::most_seal_bytes);
  try {
    return parse_seal(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("cannot read '{}': {}", path.string(), error.what()),
                error.id());
  }
}

}  // namespace remesh
