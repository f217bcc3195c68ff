#include "remesh/verify/fingerprint.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "blake2b_digests.hpp"
#include "name_guess.hpp"
#include "natural_order.hpp"
#include "remesh/core/digest.hpp"
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

bool are_hexadecimal(std::string_view digits) {
  return std::ranges::all_of(
      digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<DigestKind> kind_of(std::string_view digest) {
  return parse_digest_kind(digest.substr(0, digest.find(':')));
}

bool is_digest(std::string_view text) {
  const auto kind = kind_of(text);
  if (!kind || text.find(':') == std::string_view::npos) return false;
  const std::string_view digits = text.substr(text.find(':') + 1);
  return digits.size() == (*kind == DigestKind::blake2b ? 64U : 16U) && are_hexadecimal(digits);
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
  if (!name || !dtype || !shape || !is_digest(words[3])) return std::nullopt;
  return FingerprintLine{*name, std::string(words[1]), *shape, std::string(words[3])};
}

// A digest that is well formed, but of a kind that this build does not know, is no damage.
void check_kind(std::string_view line, int number, std::string_view where) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 4) return;
  const std::string_view digest = words.back();
  const std::string_view kind = digest.substr(0, digest.find(':'));
  const bool is_word = kind.size() < digest.size() && !kind.empty() &&
                       std::ranges::all_of(kind, [](char c) { return plain(c); });
  if (!is_word || parse_digest_kind(kind)) return;
  throw Error(Errc::unsupported,
              fmt::format("cannot read {}: line {} has a digest of kind '{}', but "
                          "this build reads crc64xz and blake2b",
                          where, number, kind));
}

void check_first_line(std::string_view line, std::string_view where) {
  if (!line.starts_with(first_words)) {
    throw Error(Errc::corrupt,
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
                                    const std::string& digest) {
  const std::string expected = fmt::format("{} {}", line.dtype, shape_text(line.shape));
  const std::string found =
      fmt::format("{} {}", to_string(desc.dtype), shape_text(shape_of(desc.extent)));
  if (found != expected) {
    return difference(
        "RM303", line.name, found, expected,
        fmt::format("'{}': it is {}, but the fingerprint has {}", line.name, found, expected));
  }
  if (digest == line.digest) return std::nullopt;
  Finding finding = difference("RM311", line.name, digest, line.digest,
                               fmt::format("{}: its bytes hash to {}, but the fingerprint has {}",
                                           to_string(desc), digest, line.digest));
  finding.next_step =
      "if the change was meant, write the lock file anew; otherwise `remesh verify` tells whether "
      "the checkpoint is damaged";
  return finding;
}

// The first line, without its end, which is taken off the text. A checkout may have other line
// ends.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string_view to_string(DigestKind kind) noexcept {
  return kind == DigestKind::blake2b ? "blake2b" : "crc64xz";
}

std::optional<DigestKind> parse_digest_kind(std::string_view name) noexcept {
  for (const DigestKind kind : {DigestKind::crc64xz, DigestKind::blake2b}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

std::vector<std::string> fingerprint_digests(const JudgeContext& context, const Reader& reader,
                                             DigestKind kind) {
  if (kind == DigestKind::blake2b) return detail::blake2b_digests(context, reader);
  const std::vector<Digest> digests = tensor_digests(context, reader);
  std::vector<std::string> texts;
  texts.reserve(digests.size());
  for (const Digest digest : digests) texts.push_back(to_string(digest));
  return texts;
}

std::string fingerprint_text(std::span<const TensorDesc> tensors,
                             std::span<const std::string> digests) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t at) { return std::string_view(tensors[at].name); });
  std::string text = fmt::format("{}{}\n", first_words, version);
  for (const std::size_t at : order) {
    text += fmt::format("{} {} {} {}\n", encoded(tensors[at].name), to_string(tensors[at].dtype),
                        shape_text(shape_of(tensors[at].extent)), digests[at]);
  }
  return text;
}

std::vector<FingerprintLine> parse_fingerprint(std::string_view text, std::string_view where) {
  std::vector<FingerprintLine> lines;
  for (int number = 1; !text.empty() || number == 1; ++number) {
    const std::string_view line = take_line(text);
    if (number == 1) {
      check_first_line(line, where);
      continue;
    }
    check_kind(line, number, where);
    auto parsed = parse_line(line);
    if (!parsed || (!lines.empty() && lines.back().name >= parsed->name)) {
      throw Error(Errc::corrupt, fmt::format("cannot read {}: line {} is {}", where, number,
                                             parsed ? "not after the one before it, by name"
                                                    : "not 'NAME DTYPE [SHAPE] DIGEST'"));
    }
    if (!lines.empty() && kind_of(lines.back().digest) != kind_of(parsed->digest)) {
      throw Error(Errc::corrupt,
                  fmt::format("cannot read {}: line {} has a digest of another kind than the line "
                              "before it",
                              where, number));
    }
    lines.push_back(std::move(*parsed));
  }
  return lines;
}

DigestKind digest_kind_of(std::span<const FingerprintLine> lines) noexcept {
  if (lines.empty()) return DigestKind::crc64xz;
  return kind_of(lines.front().digest).value_or(DigestKind::crc64xz);
}

std::vector<Finding> compare_fingerprint(std::span<const FingerprintLine> expected,
                                         std::span<const TensorDesc> tensors,
                                         std::span<const std::string> digests) {
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

std::string fingerprint_hint(std::span<const FingerprintLine> expected,
                             std::span<const TensorDesc> tensors) {
  std::unordered_set<std::string_view> locked;
  for (const FingerprintLine& line : expected) locked.insert(line.name);
  std::unordered_set<std::string_view> there;
  for (const TensorDesc& desc : tensors) there.insert(desc.name);
  std::vector<TensorDesc> missing;
  for (const FingerprintLine& line : expected) {
    const bool fits = line.shape.size() <= static_cast<std::size_t>(max_ndim);
    if (there.contains(line.name) || !fits) continue;
    missing.push_back(
        {line.name, parse_dtype(line.dtype).value_or(DType::u8), Box::whole(line.shape)});
  }
  std::vector<const TensorDesc*> left;
  left.reserve(missing.size());
  for (const TensorDesc& desc : missing) left.push_back(&desc);
  std::vector<const TensorDesc*> right;
  for (const TensorDesc& desc : tensors) {
    if (!locked.contains(desc.name)) right.push_back(&desc);
  }
  std::ranges::sort(right, detail::comes_before, &TensorDesc::name);
  std::ranges::sort(left, detail::comes_before, &TensorDesc::name);
  return detail::guess_names(left, right, {"the lock file", "the checkpoint"});
}

}  // namespace remesh
