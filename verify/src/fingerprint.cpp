#include "remesh/verify/fingerprint.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

constexpr std::string_view first_words = "# remesh fingerprint ";
constexpr std::string_view version = "1";

bool plain(char c) { return c > ' ' && c != '%' && c != '\x7f'; }

// A name without letters is a '%' alone.
std::string encoded(std::string_view name) {
  if (name.empty()) return "%";
  std::string text;
  for (const char c : name) {
    if (plain(c) || static_cast<unsigned char>(c) >= 0x80) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::optional<std::string> decoded(std::string_view text) {
  if (text == "%") return "";
  std::string name;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      name += text[at];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + 2) return std::nullopt;
    name += static_cast<char>(value);
    at += 2;
  }
  return name;
}

std::vector<Index> shape_of(const Box& extent) {
  std::vector<Index> shape;
  shape.reserve(static_cast<std::size_t>(extent.ndim()));
  for (int dim = 0; dim < extent.ndim(); ++dim) shape.push_back(extent[dim].size());
  return shape;
}

std::string shape_text(const std::vector<Index>& shape) {
  std::string text;
  for (const Index size : shape) text += fmt::format("{}{}", text.empty() ? "" : ",", size);
  return "[" + text + "]";
}

std::optional<std::vector<Index>> parse_shape(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<Index> shape;
  while (!text.empty()) {
    Index size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{} || size < 0) return std::nullopt;
    shape.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return shape;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::optional<FingerprintLine> parse_line(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 4) return std::nullopt;
  const auto name = decoded(words[0]);
  const auto dtype = parse_dtype(words[1]);
  const auto shape = parse_shape(words[2]);
  const auto digest = parse_digest(words[3]);
  if (!name || !dtype || !shape || !digest) return std::nullopt;
  return FingerprintLine{*name, std::string(words[1]), *shape, *digest};
}

void check_first_line(std::string_view line, std::string_view where) {
  if (!line.starts_with(first_words)) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read {}: line 1 is not '{}{}'; it is no fingerprint", where,
                            first_words, version));
  }
  const std::string_view found = line.substr(first_words.size());
  if (found != version) {
    throw Error(Errc::unsupported, fmt::format("cannot read {}: it has version {}, but this build "
                                               "reads version {}",
                                               where, found, version));
  }
}

Finding difference(const char* id, const std::string& name, std::string found, std::string expected,
                   std::string message) {
  Finding finding;
  finding.id = id;
  finding.tensor = name;
  finding.found = std::move(found);
  finding.expected = std::move(expected);
  finding.message = std::move(message);
  return finding;
}

std::optional<Finding> compare_line(const FingerprintLine& line, const TensorDesc& desc,
                                    Digest digest) {
  const std::string expected = fmt::format("{} {}", line.dtype, shape_text(line.shape));
  const std::string found =
      fmt::format("{} {}", to_string(desc.dtype), shape_text(shape_of(desc.extent)));
  if (found != expected) {
    return difference(
        "RM303", line.name, found, expected,
        fmt::format("'{}': it is {}, but the fingerprint has {}", line.name, found, expected));
  }
  if (digest == line.digest) return std::nullopt;
  return difference("RM311", line.name, to_string(digest), to_string(line.digest),
                    fmt::format("{}: its bytes hash to {}, but the fingerprint has {}",
                                to_string(desc), to_string(digest), to_string(line.digest)));
}

}  // namespace

std::string fingerprint_text(std::span<const TensorDesc> tensors, std::span<const Digest> digests) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t at) { return std::string_view(tensors[at].name); });
  std::string text = fmt::format("{}{}\n", first_words, version);
  for (const std::size_t at : order) {
    text += fmt::format("{} {} {} {}\n", encoded(tensors[at].name), to_string(tensors[at].dtype),
                        shape_text(shape_of(tensors[at].extent)), to_string(digests[at]));
  }
  return text;
}

std::vector<FingerprintLine> parse_fingerprint(std::string_view text, std::string_view where) {
  std::vector<FingerprintLine> lines;
  for (int number = 1; !text.empty() || number == 1; ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      check_first_line(line, where);
      continue;
    }
    auto parsed = parse_line(line);
    if (!parsed || (!lines.empty() && lines.back().name >= parsed->name)) {
      throw Error(Errc::invalid_argument,
                  fmt::format("cannot read {}: line {} is {}", where, number,
                              parsed ? "not after the one before it, by name"
                                     : "not 'NAME DTYPE [SHAPE] DIGEST'"));
    }
    lines.push_back(std::move(*parsed));
  }
  return lines;
}

std::vector<Finding> compare_fingerprint(std::span<const FingerprintLine> expected,
                                         std::span<const TensorDesc> tensors,
                                         std::span<const Digest> digests) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) numbers.emplace(tensors[i].name, i);
  std::vector<Finding> findings;
  for (const FingerprintLine& line : expected) {
    const auto found = numbers.find(line.name);
    if (found == numbers.end()) {
      findings.push_back(difference("RM302", line.name, "nothing", line.dtype,
                                    fmt::format("'{}': the fingerprint has it, but the checkpoint "
                                                "does not",
                                                line.name)));
      continue;
    }
    if (auto one = compare_line(line, tensors[found->second], digests[found->second])) {
      findings.push_back(std::move(*one));
    }
    numbers.erase(found);
  }
  for (const TensorDesc& desc : tensors) {
    if (!numbers.contains(desc.name)) continue;
    findings.push_back(difference("RM310", desc.name, std::string(to_string(desc.dtype)), "nothing",
                                  fmt::format("{}: the checkpoint has it, but the fingerprint does "
                                              "not",
                                              to_string(desc))));
  }
  return findings;
}

}  // namespace remesh
