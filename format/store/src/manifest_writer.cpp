#include <algorithm>
#include <array>
#include <cassert>
#include <sodium.h>
#include <span>

#include <fmt/format.h>

#include "json_tree.hpp"
#include "layout_json.hpp"
#include "manifest.hpp"
#include "remesh/core/error.hpp"

namespace remesh::native {
namespace {

using Sink = std::function<void(std::string_view)>;

std::string dump(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::type_error& error) {
    throw Error(Errc::unsupported,
                fmt::format("cannot write the manifest: some text is not UTF-8: {}", error.what()));
  }
}

Json json_of(const Packaging& packaging) {
  if (packaging.empty()) return nullptr;
  Json files = Json::array();
  for (const Packaging::File& file : packaging.files) {
    Json metadata = Json::array();
    for (const auto& [key, value] : file.metadata) metadata.push_back(Json::array({key, value}));
    files.push_back({{"metadata", std::move(metadata)},
                     {"name", file.name},
                     {"verbatim_header", file.verbatim_header}});
  }
  return {{"file_of", packaging.file_of},
          {"files", std::move(files)},
          {"index_text", packaging.index_text},
          {"optimizer_index_text", packaging.optimizer_index_text}};
}

Json json_of(std::span<const SideFile> side) {
  Json list = Json::array();
  for (const SideFile& file : side) {
    list.push_back(
        {{"digest", to_string(file.digest)}, {"name", file.name}, {"size", file.size_bytes}});
  }
  return list;
}

Json json_of(std::span<const ShardEntry> shards, Index ranks) {
  Json list = Json::array();
  for (const ShardEntry& shard : shards) {
    list.push_back({{"header_crc", to_string(shard.header_crc)},
                    {"name", shard_name(shard.rank, ranks)},
                    {"size", shard.size_bytes}});
  }
  return list;
}

Json json_of(const std::optional<Trees>& trees) {
  if (!trees) return nullptr;
  const auto texts = [](std::span<const TreeHash> hashes) {
    Json list = Json::array();
    for (const TreeHash& hash : hashes) list.push_back(to_string(hash));
    return list;
  };
  return {{"files", texts(trees->files)}, {"side", texts(trees->side)}};
}

// A text as JSON has it; most names have nothing to escape.
void append_text(std::string& out, const std::string& text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, is_plain)) {
    out += dump(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

void append_number(std::string& out, std::int64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

// Many times faster than by way of a Json value, and tensors are many.
void append_tensor(std::string& out, const TensorDesc& desc, Digest digest, const Placed& placed) {
  out += R"({"digest":")";
  out += to_string(digest);
  out += R"(","dtype":")";
  out += to_string(desc.dtype);
  out += '"';
  if (placed.expert >= 0) {
    out += R"(,"expert":)";
    append_number(out, placed.expert);
  }
  out += R"(,"layer":)";
  append_number(out, placed.layer);
  out += R"(,"name":)";
  append_text(out, desc.name);
  out += R"(,"placement":)";
  append_number(out, placed.placement);
  out += R"(,"shape":[)";
  for (int dim = 0; dim < desc.extent.ndim(); ++dim) {
    if (dim > 0) out += ',';
    append_number(out, desc.extent[dim].end);
  }
  out += "]}";
}

void write_tensors(const Catalog& catalog, const Sink& sink) {
  assert(catalog.digests.size() == catalog.tensors.size());
  assert(catalog.layout.placed().size() == catalog.tensors.size());
  constexpr std::size_t at_a_time = std::size_t{1} << 16;
  std::string text = "[";
  for (std::size_t at = 0; at < catalog.tensors.size(); ++at) {
    if (at > 0) text += ',';
    append_tensor(text, catalog.tensors[at], catalog.digests[at], catalog.layout.placed()[at]);
    if (text.size() < at_a_time) continue;
    sink(text);
    text.clear();
  }
  text += ']';
  sink(text);
}

void write_around(const Catalog& catalog, const Sink& sink,
                  const std::function<void()>& write_all_tensors) {
  sink(fmt::format(R"({{"layout":{},"mesh":{},"run_id":{},"side":{},"tensors":)",
                   dump(native::json_of(catalog.layout)),
                   dump(native::json_of(catalog.layout.mesh())), dump(catalog.run_id),
                   dump(json_of(std::span(catalog.side)))));
  write_all_tensors();
  sink("}");
}

std::string hashed(const std::function<void(const Sink&)>& write) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, sizeof(SaveId));
  write([&](std::string_view part) {
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                              part.size());
  });
  std::array<unsigned char, sizeof(SaveId)> hash{};
  crypto_generichash_final(&state, hash.data(), hash.size());
  std::string text;
  for (const unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

bool is_text(std::string_view text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

void write_identity(const Catalog& catalog, const Sink& sink) {
  write_around(catalog, sink, [&] { write_tensors(catalog, sink); });
}

std::string to_json(const Manifest& manifest) {
  const Catalog& catalog = manifest.catalog;
  std::string text = fmt::format(
      R"({{"blake2b":{},"files":{},"format":"remesh","format_version":{},"layout":{},"mesh":{},"packaging":{},)",
      dump(json_of(manifest.trees)),
      dump(json_of(std::span(manifest.shards), catalog.layout.mesh().num_ranks())), format_version,
      dump(json_of(catalog.layout)), dump(json_of(catalog.layout.mesh())),
      dump(json_of(catalog.packaging)));
  text += fmt::format(R"("run_id":{},"save_id":{},"side":{},"tensors":)", dump(catalog.run_id),
                      dump(catalog.save_id), dump(json_of(std::span(catalog.side))));
  write_tensors(catalog, [&](std::string_view part) { text += part; });
  text += "}";
  return text;
}

std::string commit_line(std::string_view manifest) {
  return fmt::format("{} {}\n", to_string(digest_of(std::as_bytes(std::span(manifest)))),
                     manifest.size());
}

std::string save_id_of(const Catalog& catalog) {
  return hashed([&](const Sink& sink) { write_identity(catalog, sink); });
}

std::string save_id_of(const Catalog& catalog, std::string_view tensors) {
  return hashed([&](const Sink& sink) { write_around(catalog, sink, [&] { sink(tensors); }); });
}

SaveId parse_save_id(std::string_view text) {
  const auto digit = [&](std::size_t at) {
    return static_cast<unsigned>(text[at] <= '9' ? text[at] - '0' : text[at] - 'a' + 10);
  };
  SaveId id{};
  for (std::size_t at = 0; at < id.size(); ++at) {
    id[at] = static_cast<std::byte>(digit(2 * at) << 4 | digit(2 * at + 1));
  }
  return id;
}

}  // namespace remesh::native
