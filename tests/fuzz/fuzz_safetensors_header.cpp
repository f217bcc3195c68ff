#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "safetensors/header.hpp"

using namespace remesh;  // NOLINT(google-build-using-namespace)

namespace {

// A header that was accepted describes a place for each tensor, and survives being written again.
void check(const safetensors::Header& header) {
  std::int64_t end = 0;
  for (const safetensors::HeaderTensor& tensor : header.tensors) {
    if (tensor.begin_bytes != end) std::abort();
    if (tensor.end_bytes - tensor.begin_bytes != num_bytes(tensor.desc)) std::abort();
    end = tensor.end_bytes;
  }
  const std::string head = safetensors::with_length_word(safetensors::header_text(header));
  CollectedFindings findings;
  const auto again = safetensors::parse_header(
      std::as_bytes(std::span(head)), static_cast<std::int64_t>(head.size()) + header.data_bytes(),
      "again", findings);
  if (!again || !findings.all.empty()) std::abort();
  if (again->tensors != header.tensors || again->metadata != header.metadata) std::abort();
}

}  // namespace

// The bytes are a whole file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  CollectedFindings findings;
  const auto header = safetensors::parse_header(std::as_bytes(std::span(data, size)),
                                                static_cast<std::int64_t>(size), "input", findings);
  if (header) check(*header);
  if (!header && findings.all.empty()) std::abort();
  return 0;
}
