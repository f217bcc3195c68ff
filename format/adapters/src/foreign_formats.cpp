#include "foreign_formats.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace remesh {
namespace {

constexpr std::string_view dcp = "PyTorch DCP";
constexpr std::string_view deepspeed = "DeepSpeed";
constexpr std::string_view megatron = "Megatron-LM";
constexpr std::string_view orbax = "Orbax";
constexpr std::string_view pickles = "PyTorch's pickles";

/// What the names of a format begin and end with.
struct Sign {
  std::string_view format;
  EntryKind kind;
  std::string_view begins;
  std::string_view ends;
};

// The first sign that anything in a directory has says what it is: what is alone in a format stands
// before what several have.
constexpr std::array signs{
    Sign{dcp, EntryKind::regular, ".metadata", ".metadata"},
    Sign{dcp, EntryKind::regular, "", ".distcp"},
    Sign{deepspeed, EntryKind::regular, "zero_pp_rank", ""},
    Sign{deepspeed, EntryKind::regular, "bf16_zero_pp_rank", ""},
    Sign{deepspeed, EntryKind::regular, "fp16_zero_pp_rank", ""},
    Sign{deepspeed, EntryKind::regular, "mp_rank_", "_model_states.pt"},
    Sign{megatron, EntryKind::directory, "mp_rank_", ""},
    Sign{megatron, EntryKind::regular, "common.pt", "common.pt"},
    Sign{orbax, EntryKind::regular, "_CHECKPOINT_METADATA", ""},
    Sign{orbax, EntryKind::regular, "_METADATA", ""},
    Sign{pickles, EntryKind::regular, "", ".pt"},
    Sign{pickles, EntryKind::regular, "", ".pth"},
    Sign{pickles, EntryKind::regular, "", ".bin"},
};

std::string_view format_of(std::span<const Entry> inside) {
  const auto* const found = std::ranges::find_if(signs, [&](const Sign& sign) {
    return std::ranges::any_of(inside, [&](const Entry& entry) {
      return entry.kind == sign.kind && entry.name.starts_with(sign.begins) &&
             entry.name.ends_with(sign.ends);
    });
  });
  return found != signs.end() ? found->format : std::string_view{};
}

}  // namespace

std::string_view foreign_format(const FileSystem& files, const FileSystem::Path& path,
                                const Entry& entry) {
  if (entry.kind != EntryKind::directory) return format_of(std::span(&entry, 1));
  const std::vector<Entry> inside = files.list(path);
  if (const std::string_view format = format_of(inside); !format.empty()) return format;
  const auto iteration = std::ranges::find_if(inside, [](const Entry& found) {
    return found.kind == EntryKind::directory && found.name.starts_with("iter_");
  });
  return iteration != inside.end() ? format_of(files.list(path / iteration->name))
                                   : std::string_view{};
}

}  // namespace remesh
