#include "repair_rebuild.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "canonical_text.hpp"
#include "layout_json.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "repair_salvage.hpp"
#include "shard_writer.hpp"

namespace remesh::native {
namespace {

using Path = FileSystem::Path;

// Of what proof.json says, that which is about this checkpoint.
struct Certified {
  std::string save_id;
  Mesh mesh;
  std::vector<std::pair<std::string, Digest>> tensors;
};

std::optional<Certified> parse_certificate(const std::string& text) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  try {
    Certified out;
    const Json root = parse_json(
        text, {"tensors", [&](const Json& element) {
                 const Members tensor(element, "tensor", {"cast", "name", "source", "target"});
                 const auto digest = parse_digest(tensor.text("target"));
                 out.tensors.emplace_back(tensor.text("name"), digest.value_or(Digest{}));
               }});
    const Json target_value = root.value("target", Json());
    const Members target(target_value, "target",
                         {"format", "manifest", "mesh", "save_id", "tensors"});
    out.save_id = target.text("save_id");
    out.mesh = parse_mesh(target.at("mesh"));
    if (target.integer("tensors", 0, most) != std::ssize(out.tensors)) return std::nullopt;
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What a manifest can list.
bool can_be_side_file(const Entry& entry) {
  try {
    check_component(entry.name, side_directory);
  } catch (const Error&) {
    return false;
  }
  return entry.kind == EntryKind::regular && is_text(entry.name);
}

enum class Proof {
  none,
  save_id,  // of all but how a Hugging Face directory was packed, and tree hashes
  whole,    // of every byte of the manifest
};

class Rebuilding {
 public:
  Rebuilding(const Remains& remains, std::vector<ShardState>& shards, Documents& documents,
             RepairReport& report)
      : remains_(remains), shards_(shards), out_(documents), report_(report) {}

  bool run();

 private:
  void note(std::string_view file, std::string message);
  void lost(const char* id, std::string_view file, const std::string& why);

  std::string read_side(const std::string& name, std::int64_t size_bytes);
  bool take_listed_side_files();
  void take_side_files();
  bool check_certificate();
  void take_known();

  bool take_with_proof() { return take_salvaged() || take_derived_proven(); }
  bool take_salvaged();
  bool take_derived_proven();
  bool take_derived();
  bool misses_a_shard();
  bool take_proven(const Layout& layout, const std::string& run_id,
                   const std::optional<std::string>& packaging);
  std::optional<Trees> trees() const;
  void take(std::string text, Manifest manifest, Proof proof);
  bool is_recorded(const std::string& text) const;

  void seal_again();
  void report_result();
  void leave_out_unproven();

  const Remains& remains_;
  std::vector<ShardState>& shards_;
  Documents& out_;
  RepairReport& report_;
  std::optional<Certified> certified_;
  Manifest known_;  // all that is known without a layout
  Proof proof_ = Proof::none;
  std::vector<MemoryBudget::Reservation> held_;  // for what is read of side files
};

void Rebuilding::note(std::string_view file, std::string message) {
  Finding finding;
  finding.id = "RM103";
  finding.severity = Severity::warn;
  finding.file = file;
  finding.message = std::move(message);
  report_.notes.push_back(std::move(finding));
}

void Rebuilding::lost(const char* id, std::string_view file, const std::string& why) {
  Finding finding;
  finding.id = id;
  finding.file = file;
  finding.message = fmt::format("cannot rebuild manifest.json: {}", why);
  report_.lost.push_back(std::move(finding));
}

std::string Rebuilding::read_side(const std::string& name, std::int64_t size_bytes) {
  const std::string file = fmt::format("{}/{}", side_directory, name);
  held_.push_back(remains_.machine.budget.reserve(size_bytes, fmt::format("'{}'", file)));
  return read_text(remains_.files, remains_.root / file, size_bytes);
}

// Whether the damaged manifest still lists them, and all of them are as it says.
bool Rebuilding::take_listed_side_files() {
  const auto listed = salvage_side(out_.found_manifest);
  if (!listed) return false;
  for (const SideFile& side : *listed) {
    const auto entry = remains_.files.look(remains_.root / side_directory / side.name);
    if (!entry || entry->kind != EntryKind::regular || entry->size_bytes != side.size_bytes) {
      return false;
    }
    out_.side.push_back(read_side(side.name, side.size_bytes));
    if (digest_of_text(out_.side.back()) != side.digest) return false;
  }
  known_.catalog.side = *listed;
  return true;
}

// All that lie there. A name that no manifest can list is not one of a checkpoint.
void Rebuilding::take_side_files() {
  known_.catalog.side.clear();
  out_.side.clear();
  held_.clear();
  const Path directory = remains_.root / side_directory;
  const auto entry = remains_.files.look(directory);
  if (!entry || entry->kind != EntryKind::directory) return;
  for (const Entry& each : remains_.files.list(directory)) {
    if (!can_be_side_file(each)) continue;
    std::string text = read_side(each.name, each.size_bytes);
    known_.catalog.side.push_back(
        {each.name, static_cast<std::int64_t>(text.size()), digest_of_text(text)});
    out_.side.push_back(std::move(text));
  }
}

// The certificate of the job that wrote the shards has the digest of each tensor.
bool Rebuilding::check_certificate() {
  if (out_.certificate) certified_ = parse_certificate(*out_.certificate);
  if (certified_ && certified_->save_id != text_of(remains_.save_id)) certified_.reset();
  if (!certified_) return true;
  if (certified_->tensors.size() != remains_.tensors.size()) {
    lost("RM301", "",
         fmt::format("the shards have {} tensors, but proof.json {}; a shard is missing",
                     remains_.tensors.size(), certified_->tensors.size()));
    return false;
  }
  for (std::size_t tensor = 0; tensor < remains_.tensors.size(); ++tensor) {
    const TensorDesc& desc = remains_.tensors[tensor];
    const auto& [name, digest] = certified_->tensors[tensor];
    if (name == desc.name && digest == remains_.digests[tensor]) continue;
    lost(
        "RM207", "",
        fmt::format("tensor {}, {}, hashes to {}, but proof.json records {:?} with {}", tensor,
                    to_string(desc), to_string(remains_.digests[tensor]), name, to_string(digest)));
    return false;
  }
  return true;
}

void Rebuilding::take_known() {
  Catalog& catalog = known_.catalog;
  catalog.format = "remesh";
  catalog.tensors.assign(remains_.tensors.begin(), remains_.tensors.end());
  catalog.digests.assign(remains_.digests.begin(), remains_.digests.end());
  catalog.save_id = text_of(remains_.save_id);
  known_.shards.reserve(shards_.size());
  for (const ShardState& shard : shards_) known_.shards.push_back(shard.entry);
}

bool Rebuilding::is_recorded(const std::string& text) const {
  return out_.found_commit == commit_line(text) ||
         (certified_ && certified_manifest(*out_.certificate) == digest_of_text(text));
}

void Rebuilding::take(std::string text, Manifest manifest, Proof proof) {
  out_.manifest = std::move(manifest);
  out_.manifest_text = std::move(text);
  proof_ = proof;
}

// Only a checkpoint that is signed has tree hashes.
std::optional<Trees> Rebuilding::trees() const {
  if (!out_.signature) return std::nullopt;
  const SweepContext& machine = remains_.machine;
  const auto tree = [&](const Path& path) {
    return tree_of(*remains_.files.open(path), machine.pool, &machine.stop);
  };
  Trees trees;
  trees.files.reserve(shards_.size());
  for (const ShardState& shard : shards_) {
    trees.files.push_back(tree(shard.path));
  }
  trees.side.reserve(known_.catalog.side.size());
  for (const SideFile& side : known_.catalog.side) {
    trees.side.push_back(tree(remains_.root / side_directory / side.name));
  }
  return trees;
}

// The layout that a manifest with that salvage had; nothing if it says none.
std::optional<Layout> layout_of(Salvage salvaged) {
  try {
    return parse_layout(parse_json(salvaged.layout, {}), parse_mesh(parse_json(salvaged.mesh, {})),
                        std::move(salvaged.placed));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A shard of as many ranks that the text names, and that is none of these.
std::optional<std::string> absent_shard(std::string_view text, Index ranks,
                                        const std::vector<ShardState>& shards) {
  constexpr std::string_view key = R"("name":"shard-)";
  constexpr std::size_t begin = key.find("shard-");
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    std::string_view name = text.substr(at + begin);
    name = name.substr(0, name.find('"'));
    const auto place = parse_shard_name(name);
    if (place && place->ranks == ranks &&
        std::ranges::find(shards, name, &ShardState::name) == shards.end()) {
      return std::string(name);
    }
  }
  return std::nullopt;
}

std::string run_id_of(const Salvage& salvaged) {
  const Json run_id = Json::parse(salvaged.run_id, nullptr, /*allow_exceptions=*/false);
  return run_id.is_string() ? run_id.get<std::string>() : std::string();
}

// Whether the save id, which all shards repeat, says that a manifest with this layout is the one.
bool Rebuilding::take_proven(const Layout& layout, const std::string& run_id,
                             const std::optional<std::string>& packaging) {
  if (layout.mesh().num_ranks() != remains_.ranks) return false;
  Manifest manifest = known_;
  manifest.catalog.layout = layout;
  manifest.catalog.run_id = run_id;
  if (save_id_of(manifest.catalog) != manifest.catalog.save_id) return false;
  const std::string plain = to_json(manifest);
  take(plain, manifest, is_recorded(plain) ? Proof::whole : Proof::save_id);
  if (proof_ == Proof::whole) return true;
  // What the save id leaves out counts only where the bytes of the whole manifest are recorded.
  manifest.trees = trees();
  std::string text = to_json(manifest);
  if (packaging) {
    constexpr std::string_view key = R"("packaging":)";
    constexpr std::string_view none = "null";
    text.replace(text.find(key) + key.size(), none.size(), *packaging);
  }
  if (is_recorded(text)) {
    manifest = parse_manifest(text);
    take(std::move(text), std::move(manifest), Proof::whole);
  }
  return true;
}

bool Rebuilding::take_salvaged() {
  auto salvaged = salvage(out_.found_manifest, remains_.tensors);
  if (!salvaged) return false;
  const std::string run_id = run_id_of(*salvaged);
  const auto packaging = std::move(salvaged->packaging);
  const auto layout = layout_of(std::move(*salvaged));
  return layout && take_proven(*layout, run_id, packaging);
}

// What the boxes say could have been said in several ways; the save id may tell which one was.
bool Rebuilding::take_derived_proven() {
  const std::vector<Mesh> meshes =
      certified_ ? std::vector<Mesh>{certified_->mesh} : meshes_of(remains_.ranks);
  for (const Mesh& mesh : meshes) {
    for (const Replicas replicas : {Replicas::likely, Replicas::none}) {
      remains_.machine.stop.check();
      const auto derived = derive_layout(mesh, remains_.tensors, remains_.stored, replicas);
      if (derived && (take_proven(derived->layout, "", std::nullopt) ||
                      take_proven(sharing_placements(derived->layout), "", std::nullopt))) {
        return true;
      }
    }
  }
  return false;
}

// Tensors that only a missing shard had, and that come after all others, leave no gap: without save
// id or certificate nobody knows of them.
bool Rebuilding::misses_a_shard() {
  const auto absent = absent_shard(out_.found_manifest, remains_.ranks, shards_);
  if (absent) {
    lost("RM301", *absent, "what is left of it names this shard, which is not there");
  } else if (!certified_ && std::cmp_less(shards_.size(), remains_.ranks)) {
    lost("RM301", "",
         fmt::format("{} of {} ranks have no shard, and nothing proves that these had no further "
                     "tensors; a shard may be missing",
                     remains_.ranks - std::ssize(shards_), remains_.ranks));
  } else {
    return false;
  }
  return true;
}

bool Rebuilding::take_derived() {
  if (misses_a_shard()) return false;
  auto derived = certified_ ? derive_layout(certified_->mesh, remains_.tensors, remains_.stored,
                                            Replicas::none)
                            : std::nullopt;
  if (!derived) derived = derive_layout(remains_.ranks, remains_.tensors, remains_.stored);
  if (!derived) {
    lost("RM103", manifest_name,
         fmt::format("all {} tensors are there, but no simple layout over {} ranks gives each rank "
                     "the boxes that it stores, and what is left of manifest.json does not say "
                     "which one did",
                     remains_.tensors.size(), remains_.ranks));
    return false;
  }
  Manifest manifest = known_;
  manifest.catalog.layout = sharing_placements(derived->layout);
  manifest.catalog.save_id = save_id_of(manifest.catalog);
  out_.manifest = std::move(manifest);
  seal_again();
  out_.manifest_text = to_json(out_.manifest);
  return true;
}

// The save id stands in the header alone; with it the CRC of the header changes.
void Rebuilding::seal_again() {
  const SaveId id = parse_save_id(out_.manifest.catalog.save_id);
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    ShardState& shard = shards_[at];
    shard.header->save_id = id;
    std::vector<std::byte> block = encode(*shard.header);
    shard.entry.header_crc = header_crc(block);
    out_.manifest.shards[at] = shard.entry;
    shard.patches.push_back({0, std::move(block)});
    constexpr auto begin = static_cast<std::int64_t>(header_field::save_id);
    report_.mended.push_back({.file = shard.name,
                              .bytes = {begin, header_bytes},
                              .by = MendedBy::record,
                              .how = fmt::format("given the save id of the rebuilt manifest, {}",
                                                 out_.manifest.catalog.save_id)});
  }
}

void Rebuilding::leave_out_unproven() {
  if (proof_ == Proof::whole) return;
  if (out_.certificate) {
    note(certificate_name,
         fmt::format("{} is left out: it speaks of the manifest that is lost{}", certificate_name,
                     certified_ ? "; the digests of all tensors are those that it records" : ""));
    out_.certificate.reset();
  }
  if (out_.signature) {
    note(signature_name, fmt::format("{} is left out: it signs the manifest that is lost, so the "
                                     "result is not signed",
                                     signature_name));
    out_.signature.reset();
  }
}

void Rebuilding::report_result() {
  const std::size_t count = shards_.size();
  const char* what = "nothing proves it to be what was lost";
  if (proof_ == Proof::whole) {
    what = out_.found_commit == commit_line(out_.manifest_text)
               ? "COMMIT records the same bytes, so it is the original"
               : "proof.json records the same bytes, so it is the original";
  } else if (proof_ == Proof::save_id) {
    what = "the save id of the shards proves tensors, layout, run id and side files";
    note(manifest_name,
         "manifest.json was rebuilt: how the files of a Hugging Face directory were packed, if "
         "they were, is lost, and COMMIT is another one; all else is proven to be the original by "
         "the save id of the shards");
  } else {
    note(manifest_name,
         fmt::format("manifest.json was rebuilt from {} shards, and nothing proves it to be what "
                     "was lost. Known: every tensor that {}, each byte of it by the CRCs of the "
                     "shards. Derived from what each rank stores: the layout, {}; ranks that held "
                     "a copy but did not store it are forgotten. Lost: run id, layers, experts, "
                     "how a Hugging Face directory was packed. The save id is a new one. To change "
                     "the mesh, convert it to Hugging Face and from there",
                     count, certified_ ? "proof.json lists" : "the shards of all ranks have",
                     describe(out_.manifest.catalog.layout.mesh())));
    if (!out_.side.empty()) {
      note(side_directory, fmt::format("{} side files were taken as they lie there, for nothing "
                                       "records what they should be",
                                       out_.side.size()));
    }
  }
  if (proof_ != Proof::whole && std::cmp_less(count, remains_.ranks)) {
    note("", fmt::format("{} of {} ranks have no shard; {} that all tensors are there without "
                         "them, but whether one of them had further copies nobody knows",
                         remains_.ranks - std::ssize(shards_), remains_.ranks,
                         proof_ == Proof::save_id ? "the save id proves" : "proof.json says"));
  }
  report_.mended.push_back({.file = std::string(manifest_name),
                            .bytes = {0, static_cast<std::int64_t>(out_.manifest_text.size())},
                            .by = MendedBy::record,
                            .how = fmt::format("rebuilt from {} shards; {}", count, what)});
}

bool Rebuilding::run() {
  if (!check_certificate()) return false;
  take_known();
  if (!take_listed_side_files() || !take_with_proof()) {
    take_side_files();
    if (!take_with_proof() && !take_derived()) return false;
  }
  parse_manifest(out_.manifest_text);
  report_result();
  repair_commit(out_, report_, "written for the rebuilt manifest");
  leave_out_unproven();
  report_.proven = proof_ == Proof::whole;
  return true;
}

}  // namespace

bool rebuild_manifest(const Remains& remains, std::vector<ShardState>& shards, Documents& documents,
                      RepairReport& report) {
  return Rebuilding(remains, shards, documents, report).run();
}

}  // namespace remesh::native
