#include "weights.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "defect.hpp"
#include "header.hpp"
#include "json.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"
#include "remesh/core/name_table.hpp"
#include "shard_names.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::string_view ending = ".safetensors";
constexpr std::string_view only_file = "model.safetensors";
constexpr std::string_view only_optimizer_file = "optimizer.safetensors";

std::optional<std::string> read_index(const FileSystem& files, const FoundFile& found,
                                      Findings& findings) {
  std::string text;
  try {
    text = read_text(files, found.path, max_json_bytes);
  } catch (const Error& error) {
    findings.add(as_finding(error, found.name));
    return std::nullopt;
  }
  if (auto finding = no_content(text, static_cast<std::int64_t>(text.size()))) {
    report(findings, found.name, std::move(*finding));
    return std::nullopt;
  }
  return text;
}

void report_absent(const WeightSet& weights, const std::vector<std::string>& absent,
                   Findings& findings) {
  const WeightIndex& index = *weights.index;
  if (absent.empty()) return;
  Defect finding = defect("RM203",
                          fmt::format("it lists {} files, but {} of them are absent: {}",
                                      index.files.size(), absent.size(), listed(absent)),
                          "download or copy them again");
  finding.found = fmt::format("{} files", index.files.size() - absent.size());
  finding.expected = fmt::format("{} files", index.files.size());
  report(findings, weights.index_name, std::move(finding));
}

std::set<std::string> names_of(const std::vector<FoundFile>& files) {
  std::set<std::string> names;
  for (const FoundFile& found : files) names.insert(found.name);
  return names;
}

// Savers write the index last: without one, names alone tell that a save was stopped, and beside
// one of fewer files that it is of another save.
void report_cut(const std::set<std::string>& chosen, const Directory& directory,
                Findings& findings) {
  report_cut_sets(cut_sets(chosen, names_of(directory.files)), findings);
}

// Loaders look for model.safetensors first, and never see the shards that the index lists.
void report_second_set(const WeightSet& weights, std::string_view only, const Directory& directory,
                       Findings& findings) {
  if (!directory.find(only) || std::ranges::binary_search(weights.index->files, only)) return;
  Defect finding = defect("RM205",
                          fmt::format("it lies beside '{}', which does not list it: there are two "
                                      "weight sets, and loaders take this one",
                                      weights.index_name),
                          "remove the one that is out of date");
  finding.severity = Severity::warn;
  report(findings, only, std::move(finding));
}

// Files of an earlier save with other cuts. Loaders that take all files of a directory let the last
// one win.
void report_stray_shards(const WeightSet& weights, std::string_view only,
                         const Directory& directory, Findings& findings) {
  const std::string stem = fmt::format("{}-", only.substr(0, only.size() - ending.size()));
  std::vector<std::string> strays;
  for (const FoundFile& found : directory.files) {
    const bool is_shard = found.name.starts_with(stem) && found.name.ends_with(ending);
    if (is_shard && !std::ranges::binary_search(weights.index->files, found.name)) {
      strays.push_back(found.name);
    }
  }
  if (strays.empty()) return;
  std::ranges::sort(strays);
  Defect finding = defect(
      "RM205",
      fmt::format("'{}' lists none of {} files beside it: {}; they are left of another save, and "
                  "loaders that take all files of a directory mix the two",
                  weights.index_name, strays.size(), listed(strays)),
      "remove those of the save that is out of date");
  finding.severity = Severity::warn;
  report(findings, strays.front(), std::move(finding));
}

// The set that an index lists; nothing if it cannot be read.
std::optional<WeightSet> indexed(const FileSystem& files, const Directory& directory,
                                 std::string_view index_name, std::string_view only,
                                 Findings& findings) {
  const FoundFile* index_file = directory.find(index_name);
  auto text = index_file ? read_index(files, *index_file, findings) : std::nullopt;
  if (!text) return std::nullopt;
  WeightSet weights;
  weights.index_name = index_name;
  weights.index_text = std::move(*text);
  weights.index = parse_index(weights.index_text, index_name, findings);
  if (!weights.index) return std::nullopt;

  std::vector<std::string> absent;
  for (const std::string& name : weights.index->files) {
    if (const FoundFile* found = directory.find(name)) {
      weights.files.push_back(*found);
    } else {
      absent.push_back(name);
    }
  }
  weights.whole = absent.empty();
  report_absent(weights, absent, findings);
  report_cut({weights.index->files.begin(), weights.index->files.end()}, directory, findings);
  report_second_set(weights, only, directory, findings);
  report_stray_shards(weights, only, directory, findings);
  return weights;
}

// Reads headers into one checkpoint.
class Opening {
 public:
  Opening(const FileSystem& files, Findings& findings) : files_(files), findings_(findings) {}

  void add(const FoundFile& found) {
    const auto number = static_cast<std::uint32_t>(entries_.size());
    checkpoint_.paths.push_back(found.path);
    checkpoint_.catalog.packaging.files.push_back({found.name, {}, {}});
    entries_.push_back({found.name, found.size_bytes});
    auto read = read_one(found);
    if (!read || !has_room(*read, found.name)) {
      unread_.insert(found.name);
      return;
    }
    Packaging::File& file = checkpoint_.catalog.packaging.files.back();
    file.metadata = read->header.metadata;
    if (!is_reference(*read)) file.verbatim_header = std::move(read->text);
    make_room(read->header.tensors.size());
    for (HeaderTensor& tensor : read->header.tensors) {
      add_tensor(std::move(tensor), number, read->header.data_begin_bytes);
    }
  }

  // An index against those of its files that could be read.
  void compare(const WeightSet& weights) {
    const WeightIndex& index = *weights.index;
    Lists missing, unlisted;
    std::unordered_set<std::string_view> in_index;
    for (const auto& [tensor, file] : index.weight_map) {
      in_index.insert(tensor);
      if (!is_read(file)) continue;
      const auto found = number_of_.find(tensor, name_of());
      if (!found || file_name(*found) != file) {
        missing[file].push_back(tensor);
      }
    }
    for (std::uint32_t k = 0; k < checkpoint_.catalog.tensors.size(); ++k) {
      const std::string& name = checkpoint_.catalog.tensors[k].name;
      if (!std::ranges::binary_search(index.files, file_name(k))) continue;
      if (!in_index.contains(name)) unlisted[file_name(k)].push_back(name);
    }
    report_lists(missing, "the index puts {} tensors there that it does not have: {}");
    report_lists(unlisted, "it has {} tensors that the index does not list: {}");
    if (weights.whole && unread_.empty()) compare_size(weights);
  }

  std::optional<OpenCheckpoint> finish(std::string index_text, std::string optimizer_index_text) {
    if (unread_.size() == entries_.size()) return std::nullopt;
    Catalog& catalog = checkpoint_.catalog;
    catalog.format = "hf";
    catalog.layout = Layout::replicated(Mesh{}, catalog.tensors.size());
    catalog.packaging.index_text = std::move(index_text);
    catalog.packaging.optimizer_index_text = std::move(optimizer_index_text);
    checkpoint_.extents = ExtentMap(std::move(entries_), std::move(extents_));
    return std::move(checkpoint_);
  }

 private:
  using Lists = std::map<std::string, std::vector<std::string>>;

  struct NameOf {
    const std::vector<TensorDesc>& tensors;
    std::string_view operator()(std::uint32_t number) const { return tensors[number].name; }
  };
  NameOf name_of() const { return {checkpoint_.catalog.tensors}; }

  std::optional<ReadHeader> read_one(const FoundFile& found) {
    std::unique_ptr<File> file;
    try {
      file = files_.open(found.path);
    } catch (const Error& error) {
      findings_.add(as_finding(error, found.name));
      return std::nullopt;
    }
    return read_header(*file, found.name, findings_);
  }

  // Whether the tensors of one more file can be counted, and their bytes.
  bool has_room(const ReadHeader& read, const std::string& file) {
    const auto total = checked_add(total_bytes_, read.header.data_bytes());
    if (checkpoint_.catalog.tensors.size() + read.header.tensors.size() > max_keys || !total) {
      report(findings_, file,
             defect("RM605",
                    fmt::format("with it, the checkpoint has more than {} tensors, or more bytes "
                                "than 64 bits count",
                                max_keys)));
      return false;
    }
    total_bytes_ = *total;
    return true;
  }

  // Places need no look: they touch each other, so the order decides them.
  static bool is_reference(const ReadHeader& read) {
    return has_reference_order(read.header) && header_text(read.header) == read.text;
  }

  // Room for so many tensors more, and at least for twice those that there are.
  void make_room(std::size_t more) {
    Catalog& catalog = checkpoint_.catalog;
    const std::size_t wanted = catalog.tensors.size() + more;
    number_of_.reserve(wanted);
    if (wanted <= catalog.tensors.capacity()) return;
    const std::size_t room = std::max(wanted, 2 * catalog.tensors.size());
    catalog.tensors.reserve(room);
    catalog.packaging.file_of.reserve(room);
    extents_.reserve(room);
  }

  void add_tensor(HeaderTensor tensor, std::uint32_t file, std::int64_t data_begin_bytes) {
    Catalog& catalog = checkpoint_.catalog;
    const auto number = static_cast<std::uint32_t>(catalog.tensors.size());
    if (const auto before = number_of_.add(tensor.desc.name, number, name_of())) {
      report_twice(tensor.desc.name, file_name(*before), entries_[file].name);
      return;
    }
    const std::int64_t length = tensor.end_bytes - tensor.begin_bytes;
    const bool is_there = data_begin_bytes + tensor.end_bytes <= entries_[file].size_bytes;
    if (is_there || length == 0) {
      extents_.push_back({.tensor = number,
                          .file = file,
                          .offset_bytes = length > 0 ? data_begin_bytes + tensor.begin_bytes : 0,
                          .length_bytes = length,
                          .box = tensor.desc.extent});
    }
    catalog.tensors.push_back(std::move(tensor.desc));
    catalog.packaging.file_of.push_back(file);
  }

  void report_twice(const std::string& tensor, const std::string& first,
                    const std::string& second) {
    Defect finding = defect(
        "RM304",
        fmt::format("it has the tensor '{}', but '{}' has it too", shown(tensor), shown(first)),
        "remove the file that is out of date");
    finding.tensor = tensor;
    report(findings_, second, std::move(finding));
  }

  void report_lists(const Lists& lists, const char* form) {
    for (const auto& [file, names] : lists) {
      Defect finding = defect("RM206", fmt::format(fmt::runtime(form), names.size(), listed(names)),
                              "the index is of another save");
      finding.tensor = names.front();
      report(findings_, file, std::move(finding));
    }
  }

  void compare_size(const WeightSet& weights) {
    const WeightIndex& index = *weights.index;
    std::int64_t bytes = 0;
    for (std::uint32_t k = 0; k < checkpoint_.catalog.tensors.size(); ++k) {
      if (std::ranges::binary_search(index.files, file_name(k))) {
        bytes += num_bytes(checkpoint_.catalog.tensors[k]);
      }
    }
    if (!index.total_size || *index.total_size == bytes) return;
    Defect finding = defect("RM206", fmt::format("its total_size is {}, but the tensors have {} "
                                                 "bytes",
                                                 *index.total_size, bytes));
    finding.severity = Severity::warn;
    finding.found = fmt::format("{}", *index.total_size);
    finding.expected = fmt::format("{}", bytes);
    report(findings_, weights.index_name, std::move(finding));
  }

  bool is_read(const std::string& file) const {
    return std::ranges::binary_search(entries_, file, {}, &ExtentMap::FileEntry::name) &&
           !unread_.contains(file);
  }

  const std::string& file_name(std::uint32_t tensor) const {
    return entries_[checkpoint_.catalog.packaging.file_of[tensor]].name;
  }

  const FileSystem& files_;
  Findings& findings_;
  OpenCheckpoint checkpoint_;
  std::int64_t total_bytes_ = 0;
  std::vector<ExtentMap::FileEntry> entries_;
  std::vector<Extent> extents_;
  NameTable number_of_;
  std::unordered_set<std::string> unread_;
};

}  // namespace

bool is_optimizer_file(std::string_view name) noexcept {
  return name == only_optimizer_file || name == optimizer_index_name ||
         (name.starts_with("optimizer-") && name.ends_with(ending));
}

WeightSet choose_weights(const FileSystem& files, const Directory& directory,
                         std::string_view where, Findings& findings) {
  const FoundFile* index = directory.find(index_name);
  if (auto weights = indexed(files, directory, index_name, only_file, findings)) return *weights;
  WeightSet weights;
  std::ranges::copy_if(directory.files, std::back_inserter(weights.files),
                       [](const FoundFile& file) {
                         return file.name.ends_with(ending) && !is_optimizer_file(file.name);
                       });
  if (const FoundFile* only = directory.find(only_file)) {
    weights.files = {*only};
    return weights;
  }
  report_cut(names_of(weights.files), directory, findings);
  if (weights.files.empty()) {
    report(findings, where, defect("RM101", "it has no *.safetensors file"));
  } else if (weights.files.size() > 1 && !index) {
    report(findings, where,
           defect("RM205",
                  fmt::format("it has {} *.safetensors files, but neither '{}', which would say "
                              "which of them belong together, nor '{}'",
                              weights.files.size(), index_name, only_file),
                  "download the index, or name one of the files"));
  }
  return weights;
}

std::optional<WeightSet> choose_optimizer(const FileSystem& files, const Directory& directory,
                                          Findings& findings) {
  auto optimizer = indexed(files, directory, optimizer_index_name, only_optimizer_file, findings);
  const FoundFile* only = directory.find(only_optimizer_file);
  if (optimizer) return optimizer;
  if (!only) {
    std::vector<FoundFile> shards;
    std::ranges::copy_if(directory.files, std::back_inserter(shards),
                         [](const FoundFile& file) { return is_optimizer_file(file.name); });
    report_cut(names_of(shards), directory, findings);
    return std::nullopt;
  }
  optimizer.emplace();
  optimizer->files = {*only};
  return optimizer;
}

std::optional<OpenCheckpoint> open_weights(const FileSystem& files, WeightSet weights,
                                           std::optional<WeightSet> optimizer, Findings& findings) {
  std::vector<FoundFile> all = weights.files;
  if (optimizer) all.insert(all.end(), optimizer->files.begin(), optimizer->files.end());
  std::ranges::sort(all, {}, &FoundFile::name);
  const auto twice =
      std::unique(all.begin(), all.end(),
                  [](const FoundFile& a, const FoundFile& b) { return a.name == b.name; });
  all.erase(twice, all.end());

  Opening opening(files, findings);
  for (const FoundFile& found : all) opening.add(found);
  if (weights.index) opening.compare(weights);
  if (optimizer && optimizer->index) opening.compare(*optimizer);
  return opening.finish(std::move(weights.index_text),
                        optimizer ? std::move(optimizer->index_text) : std::string());
}

}  // namespace remesh::safetensors
