#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// A file that travels with the tensors and is never interpreted on the way: a config, a tokenizer.
struct SideFile {
  std::string name;  ///< one path component
  std::int64_t size_bytes = 0;
  Digest digest;

  friend bool operator==(const SideFile&, const SideFile&) = default;
};

/// How the tensors of a Hugging Face directory are packed into files, so that the directory can be
/// written again byte for byte from a checkpoint in any layout.
struct Packaging {
  struct File {
    std::string name;  ///< "model-00001-of-00003.safetensors"
    /// The file's `__metadata__`, in the order of the file.
    std::vector<std::pair<std::string, std::string>> metadata;
    /// The header's JSON text (without length word), where the reference writer would write
    /// another.
    std::string verbatim_header;

    friend bool operator==(const File&, const File&) = default;
  };

  std::vector<File> files;
  std::vector<std::uint32_t> file_of;  ///< for each tensor of the catalog: its file
  std::string index_text;              ///< the index file, verbatim; empty where there is none
  std::string optimizer_index_text;    ///< the same of the optimizer's files

  bool empty() const noexcept { return files.empty(); }
  friend bool operator==(const Packaging&, const Packaging&) = default;
};

/// All that a checkpoint says about itself, without a byte of payload.
struct Catalog {
  std::string format;               ///< "remesh", "hf"
  std::vector<TensorDesc> tensors;  ///< in the source's order; names are unique
  /// The recorded digest of each tensor; empty where the format records none.
  std::vector<Digest> digests;
  Layout layout;
  std::vector<SideFile> side;  ///< sorted by name
  Packaging packaging;
  std::string run_id;   ///< the training run's, or empty
  std::string save_id;  ///< of this save: 32 hexadecimal digits, or empty

  /// The number of a tensor; nothing if there is none of that name. O(tensors): callers that look
  /// up many build their own index.
  std::optional<std::size_t> find(std::string_view name) const noexcept;
};

/// The bytes of all tensors, packed, each counted once.
std::int64_t payload_bytes(const Catalog& catalog) noexcept;

}  // namespace remesh
