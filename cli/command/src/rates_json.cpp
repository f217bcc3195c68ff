#include "rates_json.hpp"

#include <type_traits>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

constexpr std::int64_t most_document_bytes = std::int64_t{1} << 16;

Json json_of(const StageCost& stage) {
  return {{"bytes", stage.bytes},
          {"seconds", stage.seconds},
          {"processor_seconds", stage.processor_seconds}};
}

template <typename T>
T positive(const Json& value, const char* key) {
  const Json& member = value.at(key);
  const bool is_number = std::is_integral_v<T> ? member.is_number_integer() : member.is_number();
  constexpr double most =
      1e15;  // of seconds and bytes: what is divided and multiplied stays finite
  if (is_number && member.get<double>() > 0 && member.get<double>() <= most) return member.get<T>();
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' is {}, but must be a positive number", key, member.dump()));
}

StageCost stage_of(const Json& stages, const char* name) {
  const Json& stage = stages.at(name);
  return {positive<std::int64_t>(stage, "bytes"), positive<double>(stage, "seconds"),
          positive<double>(stage, "processor_seconds")};
}

MachineRates rates_of(const Json& document) {
  if (document.at("schema") != "remesh.bench/1") {
    throw Error(Errc::invalid_argument, "its schema is not remesh.bench/1");
  }
  const Json& stages = document.at("stages");
  const Json& pieces = document.at("pieces");
  return {.workers = positive<std::int64_t>(document, "workers"),
          .write = stage_of(stages, "write"),
          .read_cached = stage_of(stages, "read_cached"),
          .read_cold = stage_of(stages, "read_cold"),
          .hash = stage_of(stages, "hash"),
          .copy = stage_of(stages, "copy"),
          .pieces = positive<std::int64_t>(pieces, "count"),
          .pieces_seconds = positive<double>(pieces, "seconds")};
}

}  // namespace

Json json_of(const MachineRates& rates, const std::string& path) {
  Json document = new_document("bench");
  document["path"] = path;
  document["workers"] = rates.workers;
  document["stages"] = {{"write", json_of(rates.write)},
                        {"read_cached", json_of(rates.read_cached)},
                        {"read_cold", json_of(rates.read_cold)},
                        {"hash", json_of(rates.hash)},
                        {"copy", json_of(rates.copy)}};
  document["pieces"] = {{"count", rates.pieces}, {"seconds", rates.pieces_seconds}};
  return document;
}

MachineRates read_rates(const FileSystem& files, const std::string& path) {
  const std::string text = read_text(files, path, most_document_bytes);
  std::string reason;
  try {
    return rates_of(Json::parse(text));
  } catch (const Json::exception& error) {
    reason = error.what();
  } catch (const Error& error) {
    reason = error.what();
  }
  throw Error(Errc::invalid_argument,
              fmt::format("cannot use `--io {}`: it is not what `remesh bench io DIR --json` "
                          "prints: {}",
                          path, escaped(reason)));
}

}  // namespace remesh
