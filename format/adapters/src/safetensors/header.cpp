#include "header.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "defect.hpp"
#include "described.hpp"
#include "json.hpp"
#include "remesh/core/checked.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::int64_t head_bytes = 64;  // enough for a length word and for no_content()
constexpr const char* damaged = "the header is damaged";
constexpr const char* copy_again = "the file was cut off: copy or download it again";

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t length_word(std::span<const std::byte> head) {
  std::uint64_t word = 0;
  for (std::size_t k = length_word_bytes; k-- > 0;) {
    word = (word << 8) | std::to_integer<std::uint64_t>(head[k]);
  }
  return word;
}

// {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n], "data_offsets": [n, n]}}
class HeaderHandler final : public JsonHandler {
 public:
  explicit HeaderHandler(std::string_view text) {
    // No tensor is described by less.
    constexpr std::string_view least = R"("":{"dtype":"U8","shape":[],"data_offsets":[0,0]})";
    const auto braces = static_cast<std::size_t>(std::ranges::count(text, '}'));
    header.tensors.reserve(std::min(braces, text.size() / least.size()));
  }

  bool open(std::size_t depth, bool is_object) override {
    if (depth == 1) return is_object || malformed("is no JSON object");
    if (ignoring_) return true;
    if (depth == 2 && is_object) return true;
    if (in_metadata_ || !numbers_ || is_object || depth > 3) return malformed_entry();
    numbers_->present = true;
    numbers_->value.clear();
    return true;
  }

  bool close(std::size_t depth) override {
    if (depth == 3) {
      ignoring_ = false;
      numbers_ = nullptr;
    }
    return depth != 2 || in_metadata_ || finish();
  }

  bool key(std::size_t depth, std::string_view key) override {
    if (depth == 1) {
      in_metadata_ = key == "__metadata__";
      if (!in_metadata_) current_.begin(key);
    } else if (depth == 2) {
      field_ = key;
      if (!in_metadata_) choose_field();
    }
    return true;
  }

  bool scalar(std::size_t depth, const JsonScalar& value) override {
    if (depth == 0) return malformed("is no JSON object");
    if (ignoring_) {
      ignoring_ = depth > 2;
      return true;
    }
    const bool is_text = value.kind == JsonScalar::Kind::text;
    if (depth == 2 && in_metadata_ && is_text) {
      header.metadata.emplace_back(field_, value.text);
    } else if (depth == 2 && !in_metadata_ && !numbers_ && is_text) {
      current_.dtype.present = true;
      current_.dtype.value = value.text;
    } else if (depth == 3 && value.kind == JsonScalar::Kind::natural) {
      numbers_->value.push_back(value.natural);
    } else {
      return malformed_entry();
    }
    return true;
  }

  Header header;

 private:
  bool malformed(const std::string& what) {
    return refuse(defect("RM210", "its header " + what, damaged));
  }

  bool malformed_entry() {
    if (in_metadata_) return malformed("has a '__metadata__' that is no object of texts");
    return refuse(about(current_, "RM210",
                        "is not described as {\"dtype\": text, \"shape\": [sizes], "
                        "\"data_offsets\": [begin, end]}"));
  }

  void choose_field() {
    numbers_ = nullptr;
    if (field_ == "shape") numbers_ = &current_.shape;
    if (field_ == "data_offsets") numbers_ = &current_.offsets;
    ignoring_ = !numbers_ && field_ != "dtype";
    if (ignoring_ && header.unknown_field.empty()) header.unknown_field = field_;
  }

  bool finish() {
    Defect why;
    auto tensor = checked(current_, why);
    if (!tensor) return refuse(std::move(why));
    header.tensors.push_back(std::move(*tensor));
    return true;
  }

  DescribedTensor current_;
  std::string field_;
  DescribedTensor::Numbers* numbers_ = nullptr;  // where an array goes
  bool in_metadata_ = false;
  bool ignoring_ = false;  // within a field that the format does not define
};

// Where two neighbours do not touch.
std::optional<Defect> misplaced(const std::vector<HeaderTensor>& by_place) {
  std::int64_t end = 0;
  for (const HeaderTensor& tensor : by_place) {
    if (tensor.begin_bytes != end) {
      const bool gap = tensor.begin_bytes > end;
      Defect finding =
          defect(gap ? "RM208" : "RM209",
                 fmt::format(
                     "tensor '{}' begins at byte {} of the data, but the one before ends at {}: {}",
                     shown(tensor.desc.name), tensor.begin_bytes, end,
                     gap ? "the bytes between belong to none" : "they overlap"),
                 damaged);
      finding.tensor = tensor.desc.name;
      return finding;
    }
    end = tensor.end_bytes;
  }
  return std::nullopt;
}

Defect too_short(const Header& header, std::int64_t file_bytes) {
  const auto cut = [&](const HeaderTensor& tensor) {
    return header.data_begin_bytes + tensor.end_bytes > file_bytes;
  };
  const auto first = std::ranges::find_if(header.tensors, cut);
  Defect finding = defect(
      "RM202",
      fmt::format("it has {} bytes, but its header describes {}: {} are missing, and {} of {} "
                  "tensors are cut, '{}' first",
                  file_bytes, header.file_bytes(), header.file_bytes() - file_bytes,
                  std::ranges::count_if(header.tensors, cut), header.tensors.size(),
                  shown(first->desc.name)),
      copy_again);
  finding.bytes = ByteRange{file_bytes, header.file_bytes()};
  finding.tensor = first->desc.name;
  return finding;
}

void check_size(const Header& header, std::int64_t file_bytes, std::string_view file,
                Findings& findings) {
  if (file_bytes == header.file_bytes()) return;
  Defect finding;
  if (file_bytes < header.file_bytes()) {
    finding = too_short(header, file_bytes);
  } else {
    finding = defect(
        "RM208", fmt::format("it has {} bytes, but its header describes {}: the last {} belong "
                             "to no tensor",
                             file_bytes, header.file_bytes(), file_bytes - header.file_bytes()));
    finding.bytes = ByteRange{header.file_bytes(), file_bytes};
  }
  finding.found = fmt::format("{} bytes", file_bytes);
  finding.expected = fmt::format("{} bytes", header.file_bytes());
  report(findings, file, std::move(finding));
}

std::optional<Header> parse_text(std::string_view text, Defect& why) {
  if (!text.starts_with('{')) {
    why = defect("RM210", "its header does not begin with '{'", "it is no safetensors file");
    return std::nullopt;
  }
  HeaderHandler handler(text);
  if (!parse_json(text, handler)) {
    why = std::move(*handler.objection);
    return std::nullopt;
  }
  Header header = std::move(handler.header);
  header.data_begin_bytes = length_word_bytes + static_cast<std::int64_t>(text.size());
  const auto place = [](const HeaderTensor& tensor) {
    return std::tie(tensor.begin_bytes, tensor.end_bytes);
  };
  if (!std::ranges::is_sorted(header.tensors, {}, place)) {
    std::ranges::stable_sort(header.tensors, {}, place);
  }
  if (auto finding = misplaced(header.tensors)) {
    why = std::move(*finding);
    return std::nullopt;
  }
  if (!checked_add(header.data_begin_bytes, header.data_bytes())) {
    why = defect("RM303", "its tensors take more bytes than 64 bits count", damaged);
    return std::nullopt;
  }
  return header;
}

// The first bytes of a file; nothing, and a finding, where it cannot be read.
std::optional<std::vector<std::byte>> read_head(const File& file, std::int64_t size_bytes,
                                                std::string_view name, Findings& findings) {
  std::vector<std::byte> head(static_cast<std::size_t>(size_bytes));
  try {
    file.read_at(0, head);
  } catch (const Error& error) {
    findings.add(as_finding(error, name));
    return std::nullopt;
  }
  return head;
}

std::optional<Defect> no_header(std::span<const std::byte> head, std::int64_t file_bytes) {
  if (auto finding = no_content(as_text(head), file_bytes)) return finding;
  if (file_bytes < length_word_bytes) {
    return defect("RM202",
                  fmt::format("it has {} bytes, but a header alone begins with {}", file_bytes,
                              length_word_bytes),
                  copy_again);
  }
  const std::uint64_t length = length_word(head);
  if (length > static_cast<std::uint64_t>(max_json_bytes)) {
    return defect("RM201",
                  fmt::format("its first 8 bytes announce a header of {} bytes, but at most {} are "
                              "allowed",
                              length, max_json_bytes),
                  "it is damaged, or no safetensors file");
  }
  if (static_cast<std::int64_t>(length) > file_bytes - length_word_bytes) {
    return defect("RM202",
                  fmt::format("it has {} bytes, but its header alone ends at {}", file_bytes,
                              length + length_word_bytes),
                  copy_again);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> header_bytes(std::span<const std::byte> head, std::int64_t file_bytes,
                                         std::string_view file, Findings& findings) {
  if (auto finding = no_header(head, file_bytes)) {
    report(findings, file, std::move(*finding));
    return std::nullopt;
  }
  return length_word_bytes + static_cast<std::int64_t>(length_word(head));
}

std::optional<Header> parse_header(std::span<const std::byte> head, std::int64_t file_bytes,
                                   std::string_view file, Findings& findings) {
  const auto size = header_bytes(head, file_bytes, file, findings);
  if (!size) return std::nullopt;
  const std::string_view text =
      as_text(head.first(static_cast<std::size_t>(*size)).subspan(length_word_bytes));

  Defect why;
  auto header = parse_text(text, why);
  if (!header) {
    report(findings, file, std::move(why));
    return std::nullopt;
  }
  check_size(*header, file_bytes, file, findings);
  if (!header->unknown_field.empty()) {
    Defect finding =
        defect("RM102",
               fmt::format("it describes tensors by a field '{}', which the format does not define",
                           shown(header->unknown_field)),
               "it is carried only while the tensors stay in the files in which they are");
    finding.severity = Severity::warn;
    report(findings, file, std::move(finding));
  }
  return header;
}

std::optional<ReadHeader> read_header(const File& file, std::string_view name, Findings& findings) {
  const std::int64_t file_bytes = file.size_bytes();
  const auto first = read_head(file, std::min(file_bytes, head_bytes), name, findings);
  if (!first) return std::nullopt;
  const auto size = header_bytes(*first, file_bytes, name, findings);
  if (!size) return std::nullopt;

  const auto head = read_head(file, *size, name, findings);
  if (!head) return std::nullopt;
  auto header = parse_header(*head, file_bytes, name, findings);
  if (!header) return std::nullopt;
  return ReadHeader{std::move(*header),
                    std::string(as_text(std::span(*head).subspan(length_word_bytes)))};
}

}  // namespace remesh::safetensors
