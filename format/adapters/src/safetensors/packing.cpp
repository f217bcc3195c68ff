#include "packing.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "index.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::int64_t default_shard_bytes = 5'000'000'000;  // huggingface_hub's MAX_SHARD_SIZE
constexpr std::string_view ending = ".safetensors";
constexpr const char* only_file = "model.safetensors";

// What transformers asks of a file that it shall load; for tensors whose files said nothing.
Metadata default_metadata() { return {{"format", "pt"}}; }

std::string shard_name(std::size_t number, std::size_t count) {
  return count == 1 ? only_file
                    : fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, count);
}

// Files anew: names by number, the metadata of the source's first file.
Packaging split_packaging(const Catalog& wanted, std::int64_t limit_bytes) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(wanted.tensors.size());
  for (const TensorDesc& tensor : wanted.tensors) sizes.push_back(num_bytes(tensor));
  auto shards = split(sizes, limit_bytes);
  if (shards.empty()) shards.emplace_back();  // no tensors: one file without any

  const Packaging& source = wanted.packaging;
  const bool known = !source.empty() && !source.files.front().metadata.empty();
  Packaging packaging;
  packaging.file_of.resize(wanted.tensors.size());
  for (std::size_t k = 0; k < shards.size(); ++k) {
    packaging.files.push_back(
        {.name = shard_name(k, shards.size()),
         .metadata = known ? source.files.front().metadata : default_metadata(),
         .verbatim_header = {}});
    for (const std::size_t tensor : shards[k]) {
      packaging.file_of[tensor] = static_cast<std::uint32_t>(k);
    }
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
  if (packaging.files.size() == 1 && !first.ends_with(ending)) first = only_file;
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

// The index of a packaging: the source's, while it says the same; none for a file alone that had
// none. Of one that says something else, the metadata stays.
std::string packed_index(const Catalog& wanted, const Packaging& packaging) {
  if (packaging.files.size() == 1 && packaging.index_text.empty()) return {};
  WeightMap map;
  std::int64_t total_size = 0;
  Index total_parameters = 0;
  for (std::size_t k = 0; k < wanted.tensors.size(); ++k) {
    map.emplace_back(wanted.tensors[k].name, packaging.files[packaging.file_of[k]].name);
    total_size += num_bytes(wanted.tensors[k]);
    total_parameters += wanted.tensors[k].extent.num_elements();
  }
  std::ranges::sort(map);

  const std::string& source_text = wanted.packaging.index_text;
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
  const bool keeps = !shard_size_bytes && !wanted.packaging.empty();
  Packing packing;
  packing.packaging = keeps
                          ? kept_packaging(wanted)
                          : split_packaging(wanted, shard_size_bytes.value_or(default_shard_bytes));
  sort_by_name(packing.packaging);

  std::vector<std::vector<TensorDesc>> tensors(packing.packaging.files.size());
  for (std::size_t k = 0; k < wanted.tensors.size(); ++k) {
    tensors[packing.packaging.file_of[k]].push_back(wanted.tensors[k]);
  }
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    packing.files.push_back(packed(packing.packaging.files[k], std::move(tensors[k])));
  }
  packing.packaging.index_text = packed_index(wanted, packing.packaging);
  return packing;
}

}  // namespace remesh::safetensors
