#include "remesh/store/certificate.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "canonical_text.hpp"
#include "layout_json.hpp"

namespace remesh {
namespace {

using native::append_shape;
using native::append_text;
using native::dump;

void append_digest(std::string& out, Digest digest) {
  out += '"';
  out += to_string(digest);
  out += '"';
}

void append_cast(std::string& out, const CertificateParts& parts, std::size_t tensor) {
  const DType from = parts.source.tensors[parts.source_of[tensor]].dtype;
  const DType to = parts.target.tensors[tensor].dtype;
  if (from == to) {
    out += "null";
    return;
  }
  out += fmt::format(R"({{"from":"{}","reason":)", to_string(from));
  append_text(out, parts.cast_reason);
  out += fmt::format(R"(,"rounded":{},"to":"{}"}})", parts.rounded[tensor], to_string(to));
}

void append_tensors(std::string& out, const CertificateParts& parts) {
  out += R"("tensors":[)";
  for (std::size_t tensor = 0; tensor < parts.target.tensors.size(); ++tensor) {
    out += tensor > 0 ? R"(,{"cast":)" : R"({"cast":)";
    append_cast(out, parts, tensor);
    out += R"(,"name":)";
    append_text(out, parts.target.tensors[tensor].name);
    out += R"(,"source":)";
    append_digest(out, parts.source_digests[tensor]);
    out += R"(,"target":)";
    append_digest(out, parts.target_digests[tensor]);
    out += '}';
  }
  out += ']';
}

// What the source says of a tensor that was left out; nobody read its bytes.
void append_dropped_tensor(std::string& out, const CertificateParts& parts, std::size_t tensor,
                           const std::string& reason) {
  const TensorDesc& desc = parts.source.tensors[tensor];
  out += fmt::format(R"({{"bytes":{},"digest":)", num_bytes(desc));
  if (parts.source.digests.empty()) {
    out += R"("")";
  } else {
    append_digest(out, parts.source.digests[tensor]);
  }
  out += fmt::format(R"(,"dtype":"{}","name":)", to_string(desc.dtype));
  append_text(out, desc.name);
  out += R"(,"reason":)";
  append_text(out, reason);
  out += R"(,"shape":)";
  append_shape(out, desc.extent);
  out += '}';
}

void append_dropped_side(std::string& out, const SideFile& side, const std::string& reason) {
  out += fmt::format(R"({{"bytes":{},"digest":"{}","dtype":"","name":)", side.size_bytes,
                     to_string(side.digest));
  append_text(out, side.name);
  out += R"(,"reason":)";
  append_text(out, reason);
  out += R"(,"shape":[]})";
}

void append_dropped(std::string& out, const CertificateParts& parts) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  if (!parts.dropped.empty()) {
    numbers.reserve(parts.source.tensors.size());
    for (std::size_t at = 0; at < parts.source.tensors.size(); ++at) {
      numbers.emplace(parts.source.tensors[at].name, at);
    }
  }
  out += R"("dropped":[)";
  const std::size_t begin = out.size();
  const auto separate = [&] {
    if (out.size() > begin) out += ',';
  };
  for (const Dropped& dropped : parts.dropped) {
    separate();
    append_dropped_tensor(out, parts, numbers.at(dropped.name), dropped.reason);
  }
  for (const Dropped& dropped : parts.dropped_side) {
    const auto side = std::ranges::find(parts.source.side, dropped.name, &SideFile::name);
    if (side == parts.source.side.end()) continue;
    separate();
    append_dropped_side(out, *side, dropped.reason);
  }
  out += ']';
}

std::int64_t num_elements(const Catalog& catalog) {
  std::int64_t elements = 0;
  for (const TensorDesc& desc : catalog.tensors) elements += desc.extent.num_elements();
  return elements;
}

std::string end_text(const Catalog& catalog, const std::string& manifest_member) {
  return fmt::format(R"({{"format":{},{}"mesh":{},"save_id":{},"tensors":{}}})",
                     dump(catalog.format), manifest_member,
                     dump(native::json_of(catalog.layout.mesh())), dump(catalog.save_id),
                     catalog.tensors.size());
}

}  // namespace

std::string certificate_text(const CertificateParts& parts) {
  // A tensor is in the target only if each of its elements was read once and written once.
  const std::int64_t elements = num_elements(parts.target);
  std::string out =
      fmt::format(R"({{"covered":{{"elements":{0},"source":{0},"target":{0}}},)", elements);
  append_dropped(out, parts);
  out += fmt::format(R"(,"padded":[],"proved":"{}","schema":"remesh.proof/1","source":{},)",
                     parts.read_back ? "read back" : "sent", end_text(parts.source, ""));
  const std::string manifest =
      fmt::format(R"("manifest":"{}",)", parts.manifest ? to_string(*parts.manifest) : "");
  out += fmt::format(R"("target":{},)", end_text(parts.target, manifest));
  append_tensors(out, parts);
  const Digest digest = digest_of(std::as_bytes(std::span(out)));
  out += certificate_end;
  out += to_string(digest);
  out += "\"}";
  return out;
}

std::optional<Digest> parse_certificate_end(std::string_view end) {
  if (end.size() != certificate_end_bytes || !end.starts_with(certificate_end) ||
      !end.ends_with("\"}")) {
    return std::nullopt;
  }
  return parse_digest(end.substr(certificate_end.size(), 24));
}

}  // namespace remesh
