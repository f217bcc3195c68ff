#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "damage.hpp"
#include "json_tree.hpp"
#include "layout_json.hpp"
#include "manifest.hpp"
#include "remesh/core/name_table.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::native {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_u32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t most_number = std::numeric_limits<std::int32_t>::max();  // of a layer

Digest parse_digest_of(const Members& members, std::string_view key) {
  const auto digest = parse_digest(members.text(key));
  if (!digest) {
    damaged(fmt::format("'{}' of {} is no digest", key, members.where()), "RM103");
  }
  return *digest;
}

// The tensors of a manifest, column by column.
struct Tensors {
  std::vector<TensorDesc> descs;
  std::vector<Digest> digests;
  std::vector<Placed> placed;

  // For as many as the text may have: one takes a closing brace, and no less than is said here.
  void make_room(std::string_view text) {
    constexpr std::string_view least =
        R"({"digest":"crc64xz:0123456789abcdef","dtype":"u8","layer":0,"name":"","placement":0,"shape":[]})";
    const auto braces = static_cast<std::size_t>(std::ranges::count(text, '}'));
    const std::size_t most_here = std::min(braces, text.size() / least.size());
    descs.reserve(most_here);
    digests.reserve(most_here);
    placed.reserve(most_here);
  }

  void take(const Json& element);
  // The same, of one that is as we write them; false, and nothing taken, for any other.
  bool take_flat(const FlatObject& element);
};

bool Tensors::take_flat(const FlatObject& element) {
  using Kind = FlatObject::Member::Kind;
  const auto* const digest_text = element.find("digest", Kind::text);
  const auto* const dtype_text = element.find("dtype", Kind::text);
  const auto* const layer = element.find("layer", Kind::integer);
  const auto* const name = element.find("name", Kind::text);
  const auto* const placement = element.find("placement", Kind::integer);
  const auto* const shape = element.find("shape", Kind::integers);
  const auto* const expert = element.find("expert", Kind::integer);
  const std::size_t members = expert ? 7 : 6;
  if (element.size() != members || descs.size() >= most_tensors || !digest_text || !dtype_text ||
      !layer || !name || !placement || !shape) {
    return false;
  }
  const auto digest = parse_digest(digest_text->text);
  const auto dtype = parse_dtype(dtype_text->text);
  const auto is_negative = [](std::int64_t size) { return size < 0; };
  if (!digest || !dtype || placement->integer < 0 || placement->integer > most_u32 ||
      layer->integer < -1 || layer->integer > most_number ||
      (expert && (expert->integer < 0 || expert->integer > most_number)) ||
      shape->integers.size() > static_cast<std::size_t>(max_ndim) ||
      std::ranges::any_of(shape->integers, is_negative)) {
    return false;
  }
  TensorDesc desc{name->text, *dtype, Box::whole(shape->integers)};
  if (!why_not_storable(desc).empty()) return false;
  descs.push_back(std::move(desc));
  digests.push_back(*digest);
  placed.push_back({static_cast<std::uint32_t>(placement->integer),
                    static_cast<std::int32_t>(layer->integer),
                    static_cast<std::int32_t>(expert ? expert->integer : -1)});
  return true;
}

// All of a manifest but its tensors, which go to `tensors`.
Json parse_tree(std::string_view text, std::size_t padding_bytes, Tensors& tensors) {
  tensors.make_room(text);
  const auto take = [&](const Json& element) { tensors.take(element); };
  try {
    return parse_json(
        text,
        {"tensors", take, [&](const FlatObject& element) { return tensors.take_flat(element); }},
        padding_bytes);
  } catch (const NotFlat&) {
    tensors = {};
    return parse_json(text, {"tensors", take});
  }
}

void Tensors::take(const Json& element) {
  if (descs.size() >= most_tensors) {
    damaged(fmt::format("it has more than {} tensors", most_tensors), "RM605");
  }
  // Only tensors of an expert say which.
  const bool has_expert = element.is_object() && element.contains("expert");
  const Members members =
      has_expert
          ? Members(element, "tensor",
                    {"digest", "dtype", "expert", "layer", "name", "placement", "shape"},
                    std::ssize(descs))
          : Members(element, "tensor", {"digest", "dtype", "layer", "name", "placement", "shape"},
                    std::ssize(descs));
  const auto dtype = parse_dtype(members.text("dtype"));
  if (!dtype) damaged(fmt::format("the dtype of {} is unknown", members.where()), "RM103");
  const auto shape = members.integers("shape", 0, most);
  if (shape.size() > static_cast<std::size_t>(max_ndim)) {
    damaged(fmt::format("{} has {} dims, but at most {} are allowed", members.where(), shape.size(),
                        max_ndim),
            "RM605");
  }
  TensorDesc desc{members.text("name"), *dtype, Box::whole(shape)};
  if (const auto reason = why_not_storable(desc); !reason.empty()) {
    damaged(fmt::format("{} is impossible: {}", members.where(), reason), "RM103");
  }
  descs.push_back(std::move(desc));
  digests.push_back(parse_digest_of(members, "digest"));
  placed.push_back(
      {static_cast<std::uint32_t>(members.integer("placement", 0, most_u32)),
       static_cast<std::int32_t>(members.integer("layer", -1, most_number)),
       has_expert ? static_cast<std::int32_t>(members.integer("expert", 0, most_number)) : -1});
}

void check_unique(std::span<const TensorDesc> descs) {
  NameTable names;
  names.reserve(descs.size());
  const auto name_of = [&](std::uint32_t at) -> std::string_view { return descs[at].name; };
  for (std::uint32_t number = 0; number < descs.size(); ++number) {
    if (names.add(descs[number].name, number, name_of)) {
      damaged(fmt::format("the tensor {:?} stands twice", descs[number].name), "RM304");
    }
  }
}

std::vector<SideFile> parse_side(const Json& list) {
  std::vector<SideFile> side;
  for (const Json& value : list) {
    const Members members(value, "a side file", {"digest", "name", "size"});
    check_component(members.text("name"), manifest_name);
    if (!side.empty() && side.back().name >= members.text("name")) {
      damaged("its side files are not in order", "RM103");
    }
    side.push_back({members.text("name"), members.integer("size", 0, most),
                    parse_digest_of(members, "digest")});
  }
  return side;
}

Packaging::File parse_packaged_file(const Json& value) {
  const Members members(value, "a packaged file", {"metadata", "name", "verbatim_header"});
  check_component(members.text("name"), manifest_name);
  Packaging::File file;
  file.name = members.text("name");
  file.verbatim_header = members.text("verbatim_header");
  for (const Json& pair : members.array("metadata")) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      damaged("the metadata of a packaged file is not pairs of texts", "RM103");
    }
    file.metadata.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  return file;
}

Packaging parse_packaging(const Json& value, std::size_t num_tensors) {
  Packaging packaging;
  if (value.is_null()) return packaging;
  const Members members(value, "'packaging'",
                        {"file_of", "files", "index_text", "optimizer_index_text"});
  for (const Json& file : members.array("files")) {
    packaging.files.push_back(parse_packaged_file(file));
  }
  const auto last = static_cast<std::int64_t>(packaging.files.size()) - 1;
  for (const std::int64_t file : members.integers("file_of", 0, last)) {
    packaging.file_of.push_back(static_cast<std::uint32_t>(file));
  }
  packaging.index_text = members.text("index_text");
  packaging.optimizer_index_text = members.text("optimizer_index_text");
  if (packaging.files.empty() || packaging.file_of.size() != num_tensors) {
    damaged(fmt::format("'packaging' places {} tensors, but there are {}", packaging.file_of.size(),
                        num_tensors),
            "RM103");
  }
  return packaging;
}

// "shard-RRRRR-of-NNNNN.h5" with this mesh's number of ranks; the name decides the rank.
Rank parse_shard_name(const std::string& name, Index ranks) {
  Rank rank = 0;
  for (std::size_t at = 6; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at) {
    rank = std::min<Rank>(10 * rank + (name[at] - '0'), ranks);
  }
  if (rank >= ranks || name != shard_name(rank, ranks)) {
    damaged(fmt::format("it lists the file {:?}, which is no shard of {} ranks", name, ranks),
            "RM204");
  }
  return rank;
}

std::vector<ShardEntry> parse_shards(const Json& list, Index ranks) {
  std::vector<ShardEntry> shards;
  for (const Json& value : list) {
    const Members members(value, "a file", {"header_crc", "name", "size"});
    const Rank rank = parse_shard_name(members.text("name"), ranks);
    if (!shards.empty() && shards.back().rank >= rank) {
      damaged("its files are not in order", "RM103");
    }
    shards.push_back({rank, members.integer("size", header_bytes, most),
                      parse_digest_of(members, "header_crc")});
  }
  return shards;
}

std::vector<TreeHash> parse_roots(const Members& members, std::string_view key, std::size_t count) {
  std::vector<TreeHash> roots;
  for (const std::string& text : members.texts(key)) {
    const auto root = parse_tree_hash(text);
    if (!root) {
      damaged(fmt::format("'{}' of {} has other than 64 hexadecimal digits", key, members.where()),
              "RM103");
    }
    roots.push_back(*root);
  }
  if (roots.size() != count) {
    damaged(fmt::format("'{}' of {} has {} roots for {} files", key, members.where(), roots.size(),
                        count),
            "RM103");
  }
  return roots;
}

std::optional<Trees> parse_trees(const Json& value, const Manifest& manifest) {
  if (value.is_null()) return std::nullopt;
  const Members members(value, "'blake2b'", {"files", "side"});
  return Trees{parse_roots(members, "files", manifest.shards.size()),
               parse_roots(members, "side", manifest.catalog.side.size())};
}

void check_version(const Json& root) {
  if (!root.is_object() || root.value("format", Json()) != "remesh") {
    damaged("it does not say that its format is 'remesh'", "RM103");
  }
  const Json version = root.value("format_version", Json());
  if (version != format_version) {
    damaged(version_refusal(version.dump().substr(0, 40)),
            version.is_number_integer() ? "RM102" : "RM103");
  }
}

// The rules of another version are not known: its tensors must not be judged by ours.
void refuse_other_version(std::string_view text) {
  check_version(parse_json(text, {"tensors", [](const Json&) {}}));
}

Manifest parse_version_1(std::string_view text, std::size_t padding_bytes) {
  Tensors tensors;
  const Json root = parse_tree(text, padding_bytes, tensors);
  check_version(root);
  const Members members(root, "it",
                        {"blake2b", "files", "format", "format_version", "layout", "mesh",
                         "packaging", "run_id", "save_id", "side", "tensors"});
  if (!members.array("tensors").empty()) damaged("'tensors' has other than objects", "RM103");
  check_unique(tensors.descs);

  Manifest manifest;
  Catalog& catalog = manifest.catalog;
  catalog.format = "remesh";
  catalog.tensors = std::move(tensors.descs);
  catalog.digests = std::move(tensors.digests);
  catalog.layout =
      parse_layout(members.at("layout"), parse_mesh(members.at("mesh")), std::move(tensors.placed));
  catalog.side = parse_side(members.array("side"));
  catalog.packaging = parse_packaging(members.at("packaging"), catalog.tensors.size());
  catalog.run_id = members.text("run_id");
  catalog.save_id = members.text("save_id");
  manifest.shards = parse_shards(members.array("files"), catalog.layout.mesh().num_ranks());
  manifest.trees = parse_trees(members.at("blake2b"), manifest);
  return manifest;
}

// The tensors as a canonical text has them, behind all else; other texts may have anything there.
std::optional<std::string_view> tensors_in(std::string_view text) {
  constexpr std::string_view key = R"("tensors":[)";
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos || !text.ends_with('}')) return std::nullopt;
  text.remove_suffix(1);
  return text.substr(at + key.size() - 1);
}

// To hash the text is quicker than to write the tensors again, which is for those alone who do not
// find their save id there.
void check_save_id(const Catalog& catalog, std::string_view text) {
  const auto tensors = tensors_in(text);
  if (tensors && catalog.save_id == save_id_of(catalog, *tensors)) return;
  const std::string expected = save_id_of(catalog);
  if (catalog.save_id != expected) {
    damaged(fmt::format("its save id is {:?}, but its content makes it {}",
                        catalog.save_id.substr(0, 40), expected),
            "RM103");
  }
}

}  // namespace

Manifest parse_manifest(std::string_view text, std::size_t padding_bytes) {
  try {
    Manifest manifest = parse_version_1(text, padding_bytes);
    check_save_id(manifest.catalog, text);
    return manifest;
  } catch (const Error& error) {
    if (error.id() != "RM102") refuse_other_version(text);
    // What Mesh and Layout refuse has no id of its own.
    if (error.id().empty()) damaged(error.what(), "RM103");
    throw;
  }
}

}  // namespace remesh::native
