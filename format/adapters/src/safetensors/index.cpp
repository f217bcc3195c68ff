#include "index.hpp"

#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "defect.hpp"
#include "json.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::safetensors {
namespace {

constexpr const char* damaged = "the index is damaged";

// {"metadata": {"total_size": n, ...}, "weight_map": {tensor: file}}; other keys are nobody's
// business, as transformers has it too.
class IndexHandler final : public JsonHandler {
 public:
  bool open(std::size_t depth, bool is_object) override {
    if (depth == 1) return is_object || malformed("is no JSON object");
    if (depth == 2) return is_object || part_ == Part::other || misplaced_value();
    return part_ != Part::weight_map || misplaced_value();
  }

  bool close(std::size_t) override { return true; }

  bool key(std::size_t depth, std::string_view key) override {
    if (depth == 1) {
      part_ = key == "weight_map" ? Part::weight_map
              : key == "metadata" ? Part::metadata
                                  : Part::other;
    } else if (depth == 2) {
      key_ = key;
    }
    return true;
  }

  bool scalar(std::size_t depth, const JsonScalar& value) override {
    if (depth == 0) return malformed("is no JSON object");
    if (part_ == Part::weight_map) {
      if (depth != 2 || value.kind != JsonScalar::Kind::text) return misplaced_value();
      index.weight_map.emplace_back(std::move(key_), value.text);
    }
    if (part_ == Part::metadata) {
      if (depth == 1 && value.kind != JsonScalar::Kind::null) return misplaced_value();
      if (depth == 2 && key_ == "total_size") index.total_size = whole_number(value);
    }
    return true;
  }

  WeightIndex index;

 private:
  enum class Part { weight_map, metadata, other };

  bool malformed(const std::string& what) { return refuse(defect("RM210", "it " + what, damaged)); }

  bool misplaced_value() {
    return malformed(part_ == Part::weight_map ? "has a 'weight_map' that is no object of texts"
                                               : "has a 'metadata' that is no object");
  }

  // Old writers computed the size in floating point. What is no count at all is -1, which no sum
  // is.
  static std::int64_t whole_number(const JsonScalar& value) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    if (value.kind == JsonScalar::Kind::natural && value.natural <= std::uint64_t{most}) {
      return static_cast<std::int64_t>(value.natural);
    }
    constexpr double exact = 9007199254740992.0;  // 2^53: beyond it, a double is no count
    if (value.kind == JsonScalar::Kind::real && value.real >= 0 && value.real <= exact &&
        value.real == std::floor(value.real)) {
      return static_cast<std::int64_t>(value.real);
    }
    return -1;
  }

  Part part_ = Part::other;
  std::string key_;
};

// The files that a map names, if each is a plain name.
std::optional<std::vector<std::string>> files_of(const WeightMap& weight_map, std::string_view file,
                                                 Findings& findings) {
  std::set<std::string> names;
  for (const auto& entry : weight_map) names.insert(entry.second);
  for (const std::string& name : names) {
    try {
      check_component(name, file);
    } catch (const Error& error) {
      findings.add(as_finding(error, file));
      return std::nullopt;
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

// The metadata of an index, without its weight map, which may be large.
nlohmann::json metadata_of(std::string_view source_text) {
  if (source_text.empty()) return nlohmann::json::object();
  const auto keep = [](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    return depth != 1 || event != nlohmann::json::parse_event_t::key || value == "metadata";
  };
  const auto whole = nlohmann::json::parse(source_text, keep);
  const auto found = whole.find("metadata");
  return found != whole.end() && found->is_object() ? *found : nlohmann::json::object();
}

}  // namespace

std::optional<WeightIndex> parse_index(std::string_view text, std::string_view file,
                                       Findings& findings) {
  IndexHandler handler;
  if (!parse_json(text, handler)) {
    report(findings, file, std::move(*handler.objection));
    return std::nullopt;
  }
  if (handler.index.weight_map.empty()) {
    report(findings, file, defect("RM210", "it has no 'weight_map', or an empty one", damaged));
    return std::nullopt;
  }
  auto files = files_of(handler.index.weight_map, file, findings);
  if (!files) return std::nullopt;
  handler.index.files = std::move(*files);
  return std::move(handler.index);
}

std::string index_text(const WeightMap& weight_map, std::int64_t total_size,
                       std::string_view source_text) {
  nlohmann::json index;
  index["metadata"] = metadata_of(source_text);
  index["metadata"]["total_size"] = total_size;
  nlohmann::json& map = index["weight_map"] = nlohmann::json::object();
  for (const auto& [tensor, file] : weight_map) map[tensor] = file;
  return index.dump(/*indent=*/2, ' ', /*ensure_ascii=*/true) + "\n";
}

}  // namespace remesh::safetensors
