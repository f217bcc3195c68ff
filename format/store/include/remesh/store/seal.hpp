#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/catalog.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/file_tree.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/signed_checkpoint.hpp"
#include "remesh/store/signing_key.hpp"
#include "remesh/store/sweep.hpp"

/// @file
/// What a native checkpoint records of its bytes, beside a checkpoint of a foreign format that
/// records nothing: a seal. format/SEAL.md is its law.

namespace remesh {

inline constexpr std::string_view seal_name = "remesh-seal.json";
inline constexpr std::string_view seal_signature_ending = ".minisig";

/// Whether a file of that name is a seal or its signature: "remesh-seal.json",
/// "model.safetensors.remesh-seal.json", either with ".minisig" behind. No checkpoint carries it.
bool is_seal_name(std::string_view name) noexcept;

/// Whether the digests of a checkpoint come from a seal: no foreign format records any by itself,
/// and only a native save has an id.
inline bool is_sealed(const Catalog& catalog) noexcept {
  return !catalog.digests.empty() && catalog.save_id.empty();
}

/// What a seal says of a checkpoint.
struct Seal {
  std::string format;  ///< the checkpoint's: "hf"
  std::vector<TensorDesc> tensors;
  std::vector<Digest> digests;  ///< of `tensors`
  ExtentMap extents;            ///< with all files, sorted by name, and all block CRCs
  std::vector<Digest> rest;  ///< of each file: the CRC of its bytes that are no tensor's, in order
  std::vector<TreeHash> trees;  ///< of each file; empty where the seal is not made to be signed
};

/// All files of a checkpoint in its extent map: those with tensors first, as they were, then its
/// side files and others. Their paths too.
OpenCheckpoint with_all_files(OpenCheckpoint checkpoint);

/// Reads every byte of a checkpoint that has all its files; for tree hashes, twice. Throws
/// Error(unsupported) if its elements do not lie packed, and as File::read_at does.
Seal make_seal(const SweepContext& context, const FileSystem& files, OpenCheckpoint checkpoint,
               bool with_trees);

/// Canonical JSON that ends in the digest of what stands before. Throws Error(unsupported) if some
/// text is not UTF-8, or there is more to say than a reader would read.
std::string seal_text(const Seal& seal);

/// The inverse. Throws Error with RM102 for another version, RM603 for a file's name, RM605 and
/// RM608 for too much and for repeated keys, and RM110 for all else; the message names no file.
Seal parse_seal(std::string_view text);

/// Reads and parses the file. Throws as read_text, and as parse_seal with the path.
Seal read_seal(const FileSystem& files, const FileSystem::Path& path);

/// The signature of a seal's text.
std::string sign_seal(std::string_view text, const SecretKey& key);

/// Writes the text of a seal at `path` and, unless it is empty, that of its signature beside it.
/// Both are synced and whole before the seal has its name; nothing is ever replaced. Throws as
/// Staging does. Returns whether directories could be synced.
bool write_seal(FileSystem& files, const FileSystem::Path& path, std::string_view text,
                std::string_view signature);

/// What the seal records, attached to the checkpoint as if that had recorded it by itself: tensor
/// digests, block CRCs, guards, and the digests of side files. Bytes that say where tensors lie are
/// read and compared at once, as those of a native checkpoint are when it is opened: RM207. RM111
/// if the checkpoint has other files, sizes or tensors than were sealed; what fits is attached all
/// the same. `name`: the seal's, for messages.
OpenCheckpoint attach_seal(const FileSystem& files, OpenCheckpoint checkpoint, const Seal& seal,
                           const std::string& name, Findings& findings);

/// A signed seal and the checkpoint that it is of.
struct SignedSeal {
  std::string checkpoint;  ///< its path, for messages
  FileSystem::Path seal;
  FileSystem::Path signature;
  /// Where the file of that name lies.
  std::function<FileSystem::Path(const std::string& name)> path_of;
};

/// As check_signed: the signature is over the seal, and the seal has the tree hashes of all files.
SignedCheck check_signed_seal(const FileSystem& files, const SignedSeal& signed_seal,
                              const PublicKey& key, SignedPart part, ThreadPool& pool,
                              Progress& progress, const StopFlag& stop);

}  // namespace remesh
