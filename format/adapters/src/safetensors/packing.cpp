#include "packing.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "index.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/states.hpp"
#include "remesh/store/file_system.hpp"
#include "shard_names.hpp"
#include "weights.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::int64_t default_shard_bytes = 5'000'000'000;  // huggingface_hub's MAX_SHARD_SIZE
constexpr std::string_view ending = ".safetensors";

// The tensors of one kind, which have files and an index of their own.
struct Part {
  std::string_view stem;             // of their files' names
  std::vector<std::size_t> tensors;  // their numbers
};

struct Parts {
  Part weights{"model", {}};
  Part optimizer{"optimizer", {}};
};

Parts parts_of(std::span<const TensorDesc> tensors) {
  const std::vector<std::int64_t> parameters = parameters_of(tensors);
  Parts parts;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    (parameters[k] < 0 ? parts.weights : parts.optimizer).tensors.push_back(k);
  }
  return parts;
}

// What transformers asks of a file that it shall load; for tensors whose files said nothing.
Metadata default_metadata() { return {{"format", "pt"}}; }

// That of the source's first file of this part, or of its first file at all.
Metadata metadata_of(const Catalog& wanted, const Part& part) {
  const Packaging& source = wanted.packaging;
  if (source.empty() || source.file_of.size() != wanted.tensors.size()) return default_metadata();
  std::size_t first = part.tensors.empty() ? 0 : source.files.size() - 1;
  for (const std::size_t tensor : part.tensors) {
    first = std::min<std::size_t>(first, source.file_of[tensor]);
  }
  const Metadata& metadata = source.files[first].metadata;
  return metadata.empty() ? default_metadata() : metadata;
}

std::string shard_name(const Part& part, std::size_t number, std::size_t count) {
  return count == 1 ? fmt::format("{}{}", part.stem, ending)
                    : fmt::format("{}-{:05}-of-{:05}{}", part.stem, number + 1, count, ending);
}

// Files anew: names by number.
void split_part(const Catalog& wanted, const Part& part, std::int64_t limit_bytes,
                Packaging& packaging) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(part.tensors.size());
  for (const std::size_t tensor : part.tensors) sizes.push_back(num_bytes(wanted.tensors[tensor]));
  auto shards = split(sizes, limit_bytes);
  if (wanted.tensors.empty()) shards.emplace_back();  // one file without any
  for (std::size_t k = 0; k < shards.size(); ++k) {
    for (const std::size_t at : shards[k]) {
      packaging.file_of[part.tensors[at]] = static_cast<std::uint32_t>(packaging.files.size());
    }
    packaging.files.push_back({.name = shard_name(part, k, shards.size()),
                               .metadata = metadata_of(wanted, part),
                               .verbatim_header = {}});
  }
}

Packaging split_packaging(const Catalog& wanted, const Parts& parts, std::int64_t limit_bytes) {
  Packaging packaging;
  packaging.file_of.resize(wanted.tensors.size());
  split_part(wanted, parts.weights, limit_bytes, packaging);
  if (!parts.optimizer.tensors.empty()) {
    split_part(wanted, parts.optimizer, limit_bytes, packaging);
  }
  return packaging;
}

[[noreturn]] void fail_unfit(const std::string& found) {
  throw Error(Errc::invalid_argument,
              fmt::format("cannot keep the files of the source: {}; give a shard size", found));
}

void check_fits(const Packaging& packaging, std::size_t num_tensors) {
  if (packaging.file_of.size() != num_tensors) {
    fail_unfit(fmt::format("its packaging names the files of {} tensors, but there are {}",
                           packaging.file_of.size(), num_tensors));
  }
  for (const std::uint32_t file : packaging.file_of) {
    if (file >= packaging.files.size()) {
      fail_unfit(fmt::format("its packaging puts a tensor into file {} of {}", file,
                             packaging.files.size()));
    }
  }
  for (const Packaging::File& file : packaging.files) check_component(file.name, "the packaging");
}

// The files as they were, without those whose tensors have all gone.
Packaging kept_packaging(const Catalog& wanted) {
  Packaging packaging = wanted.packaging;
  check_fits(packaging, wanted.tensors.size());
  std::vector<bool> used(packaging.files.size(), false);
  for (const std::uint32_t file : packaging.file_of) used[file] = true;
  if (packaging.file_of.empty()) used.front() = true;  // no tensors: one file without any

  std::vector<std::uint32_t> new_number(packaging.files.size());
  std::vector<Packaging::File> files;
  for (std::size_t k = 0; k < packaging.files.size(); ++k) {
    new_number[k] = static_cast<std::uint32_t>(files.size());
    if (used[k]) files.push_back(std::move(packaging.files[k]));
  }
  for (std::uint32_t& file : packaging.file_of) file = new_number[file];
  packaging.files = std::move(files);

  std::string& first = packaging.files.front().name;
  if (packaging.files.size() == 1 && !first.ends_with(ending)) first = "model.safetensors";
  return packaging;
}

// The reader numbers files by name, and so does everybody else.
void sort_by_name(Packaging& packaging) {
  std::vector<std::uint32_t> order(packaging.files.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t k) { return packaging.files[k].name; });

  std::vector<Packaging::File> files;
  std::vector<std::uint32_t> new_number(order.size());
  for (const std::uint32_t k : order) {
    if (!files.empty() && files.back().name == packaging.files[k].name) {
      fail_unfit(fmt::format("it has two files '{}'", files.back().name));
    }
    new_number[k] = static_cast<std::uint32_t>(files.size());
    files.push_back(std::move(packaging.files[k]));
  }
  for (std::uint32_t& file : packaging.file_of) file = new_number[file];
  packaging.files = std::move(files);
}

// A verbatim header, if it is one and describes exactly these tensors.
std::optional<Header> still_true(const std::string& text, const std::vector<TensorDesc>& tensors) {
  std::int64_t data_bytes = 0;
  std::unordered_map<std::string_view, const TensorDesc*> wanted;
  for (const TensorDesc& tensor : tensors) {
    data_bytes += num_bytes(tensor);
    wanted.emplace(tensor.name, &tensor);
  }
  const std::string head = with_length_word(text);
  CollectedFindings findings;
  auto header =
      parse_header(std::as_bytes(std::span(head)),
                   static_cast<std::int64_t>(head.size()) + data_bytes, "the packaging", findings);
  const auto is_error = [](const Finding& f) { return f.severity == Severity::error; };
  if (!header || std::ranges::any_of(findings.all, is_error)) return std::nullopt;

  const auto is_wanted = [&](const HeaderTensor& tensor) {
    const auto found = wanted.find(tensor.desc.name);
    return found != wanted.end() && *found->second == tensor.desc;
  };
  if (header->tensors.size() != tensors.size()) return std::nullopt;
  if (!std::ranges::all_of(header->tensors, is_wanted)) return std::nullopt;
  return header;
}

PackedFile packed(Packaging::File& file, std::vector<TensorDesc> tensors) {
  if (!file.verbatim_header.empty()) {
    if (auto header = still_true(file.verbatim_header, tensors)) {
      return {std::move(*header), file.verbatim_header};
    }
    file.verbatim_header.clear();
  }
  PackedFile result{reference_header(file.metadata, std::move(tensors)), {}};
  result.text = header_text(result.header);
  return result;
}

// Whether a reader would find every tensor again under the files' names.
bool is_readable(const Packaging& packaging, const Parts& parts) {
  enum class Holds { nothing, weights, optimizer };
  const bool has_index = packaging.files.size() > 1 || !packaging.index_text.empty() ||
                         !packaging.optimizer_index_text.empty();
  std::vector<Holds> holds(packaging.files.size(), Holds::nothing);
  for (const std::size_t k : parts.weights.tensors) holds[packaging.file_of[k]] = Holds::weights;
  for (const std::size_t k : parts.optimizer.tensors) {
    Holds& file = holds[packaging.file_of[k]];
    // Where an index says what is where, no file can be of both parts: each has an index of its
    // own.
    if (file == Holds::weights && has_index) return false;
    if (file == Holds::nothing) file = Holds::optimizer;
  }
  for (std::size_t file = 0; file < holds.size(); ++file) {
    const bool named_so = is_optimizer_file(packaging.files[file].name);
    if (named_so != (holds[file] == Holds::optimizer)) return false;
  }
  return true;
}

// Whether a file was left out that the names of others say must be there.
bool is_cut(const Packaging& packaging) {
  std::set<std::string> names;
  for (const Packaging::File& file : packaging.files) names.insert(file.name);
  return !cut_sets(names).empty();
}

// The index of a part: the source's, while it says the same; none for a file alone that had none.
// Of one that says something else, the metadata stays.
std::string packed_index(const Catalog& wanted, const Part& part, const Packaging& packaging,
                         const std::string& source_text) {
  WeightMap map;
  std::set<std::uint32_t> files;
  std::int64_t total_size = 0;
  Index total_parameters = 0;
  for (const std::size_t k : part.tensors) {
    files.insert(packaging.file_of[k]);
    map.emplace_back(wanted.tensors[k].name, packaging.files[packaging.file_of[k]].name);
    total_size += num_bytes(wanted.tensors[k]);
    total_parameters += wanted.tensors[k].extent.num_elements();
  }
  if (files.empty()) return {};
  // A file alone needs no index: of the weights under any name, of the optimizer under its own.
  const bool found_alone = part.stem != "optimizer" || packaging.files[*files.begin()].name ==
                                                           fmt::format("{}{}", part.stem, ending);
  if (files.size() == 1 && source_text.empty() && found_alone) return {};
  std::ranges::sort(map);

  CollectedFindings findings;
  auto source = parse_index(source_text, index_name, findings);
  if (!source) {  // as transformers writes it since version 5
    return index_text(
        map, total_size,
        fmt::format(R"({{"metadata": {{"total_parameters": {}}}}})", total_parameters));
  }
  std::ranges::sort(source->weight_map);
  return source->weight_map == map ? source_text : index_text(map, total_size, source_text);
}

}  // namespace

std::vector<std::vector<std::size_t>> split(std::span<const std::int64_t> sizes_bytes,
                                            std::int64_t limit_bytes) {
  if (limit_bytes <= 0) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot split into files of {} bytes: the size must be positive", limit_bytes));
  }
  std::vector<std::vector<std::size_t>> shards;
  std::vector<std::size_t> open;
  std::int64_t open_bytes = 0;
  for (std::size_t k = 0; k < sizes_bytes.size(); ++k) {
    if (sizes_bytes[k] > limit_bytes) {
      shards.push_back({k});
      continue;
    }
    if (sizes_bytes[k] > limit_bytes - open_bytes) {
      shards.push_back(std::exchange(open, {}));
      open_bytes = 0;
    }
    open.push_back(k);
    open_bytes += sizes_bytes[k];
  }
  if (!open.empty()) shards.push_back(std::move(open));
  return shards;
}

Packing pack(const Catalog& wanted, std::optional<std::int64_t> shard_size_bytes) {
  const Parts parts = parts_of(wanted.tensors);
  Packing packing;
  if (!shard_size_bytes && !wanted.packaging.empty()) packing.packaging = kept_packaging(wanted);
  const bool fits = !packing.packaging.empty() && is_readable(packing.packaging, parts) &&
                    !is_cut(packing.packaging);
  if (!fits) {
    packing.packaging =
        split_packaging(wanted, parts, shard_size_bytes.value_or(default_shard_bytes));
  }
  sort_by_name(packing.packaging);

  std::vector<std::vector<TensorDesc>> tensors(packing.packaging.files.size());
  for (std::size_t k = 0; k < wanted.tensors.size(); ++k) {
    tensors[packing.packaging.file_of[k]].push_back(wanted.tensors[k]);
  }
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    packing.files.push_back(packed(packing.packaging.files[k], std::move(tensors[k])));
  }
  const Packaging& source = wanted.packaging;
  packing.packaging.index_text =
      packed_index(wanted, parts.weights, packing.packaging, source.index_text);
  packing.packaging.optimizer_index_text =
      packed_index(wanted, parts.optimizer, packing.packaging, source.optimizer_index_text);
  return packing;
}

}  // namespace remesh::safetensors
