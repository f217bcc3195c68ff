#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "safetensors/index.hpp"

using namespace remesh;  // NOLINT(google-build-using-namespace)

namespace {

// An index that was accepted names plain files, and survives being written again.
void check(safetensors::WeightIndex index, std::string_view text) {
  for (const std::string& file : index.files) {
    if (file.empty() || file == ".." || file.find('/') != std::string::npos) std::abort();
  }
  const std::int64_t total_size = std::max<std::int64_t>(index.total_size.value_or(7), 0);
  CollectedFindings findings;
  auto again = safetensors::parse_index(safetensors::index_text(index.weight_map, total_size, text),
                                        "again", findings);
  if (!again || !findings.all.empty()) std::abort();
  std::ranges::sort(index.weight_map);
  if (again->weight_map != index.weight_map || again->total_size != total_size) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CollectedFindings findings;
  auto index = safetensors::parse_index(text, "input", findings);
  if (!index && findings.all.empty()) std::abort();
  if (index) check(std::move(*index), text);
  return 0;
}
