#include "optimizer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "defect.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/states.hpp"
#include "trainer_state.hpp"
#include "weights.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::string_view step_key = "step";

// A step, and where it stands.
struct Stated {
  std::int64_t step = 0;
  std::string where;
};

template <typename T>
std::optional<std::int64_t> whole(const std::array<std::byte, 8>& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  const auto real = static_cast<double>(value);
  constexpr double exact = 9007199254740992.0;  // 2^53: beyond it, a double is no count
  if (!(real >= 0 && real <= exact) || real != std::floor(real)) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::optional<std::int64_t> step_of(DType dtype, const std::array<std::byte, 8>& bytes) {
  switch (dtype) {
    case DType::f32:
      return whole<float>(bytes);
    case DType::f64:
      return whole<double>(bytes);
    case DType::i32:
      return whole<std::int32_t>(bytes);
    case DType::i64:
      return whole<std::int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

class OptimizerCheck {
 public:
  OptimizerCheck(const FileSystem& files, const OpenCheckpoint& checkpoint, Findings& findings)
      : files_(files),
        checkpoint_(checkpoint),
        catalog_(checkpoint.catalog),
        findings_(findings),
        parameters_(parameters_of(catalog_.tensors)) {}

  void run() {
    report_strays();
    for (const Packaging::File& file : catalog_.packaging.files) {
      if (is_optimizer_file(file.name)) read_metadata(file);
    }
    if (parameters_.empty() || std::ranges::max(parameters_) < 0) return;
    read_step_tensors();
    read_trainer_state();
    report_steps();
  }

 private:
  const std::string& file_of(std::size_t tensor) const {
    return catalog_.packaging.files[catalog_.packaging.file_of[tensor]].name;
  }

  void report_strays() {
    std::vector<std::string> strays;
    std::string file;
    for (std::size_t k = 0; k < catalog_.tensors.size(); ++k) {
      if (parameters_[k] >= 0 || !is_optimizer_file(file_of(k))) continue;
      if (strays.empty()) file = file_of(k);
      strays.push_back(catalog_.tensors[k].name);
    }
    if (strays.empty()) return;
    Defect finding = defect("RM310",
                            fmt::format("it has {} tensors that are no 'PARAMETER@STATE' of a "
                                        "parameter of this model: {}",
                                        strays.size(), listed(strays)),
                            "the optimizer is that of another model");
    finding.tensor = strays.front();
    report(findings_, file, std::move(finding));
  }

  void read_metadata(const Packaging::File& file) {
    for (const auto& [key, value] : file.metadata) {
      if (key != step_key) continue;
      Stated stated{0, fmt::format("'{}'", file.name)};
      const char* const end = value.data() + value.size();
      const auto parsed = std::from_chars(value.data(), end, stated.step);
      if (parsed.ec == std::errc() && parsed.ptr == end) stated_.push_back(std::move(stated));
    }
  }

  void read_step_tensors() {
    for (const Extent& extent : checkpoint_.extents.extents()) {
      const TensorDesc& desc = catalog_.tensors[extent.tensor];
      const bool is_step = parameters_[extent.tensor] >= 0 && desc.extent.num_elements() == 1 &&
                           parse_state_name(desc.name)->state == step_key;
      std::array<std::byte, 8> bytes{};
      if (!is_step || extent.length_bytes > std::ssize(bytes)) continue;
      try {
        files_.open(checkpoint_.paths[extent.file])
            ->read_at(extent.offset_bytes,
                      std::span(bytes).first(static_cast<std::size_t>(extent.length_bytes)));
      } catch (const Error&) {
        continue;  // whoever reads the tensor will say so
      }
      if (const auto step = step_of(desc.dtype, bytes)) {
        stated_.push_back({*step, fmt::format("'{}'", desc.name)});
      }
    }
  }

  // It is carried as it is, whatever it holds: what is no JSON has no step.
  void read_trainer_state() {
    const auto found = std::ranges::find(catalog_.side, trainer_state_name, &SideFile::name);
    if (found == catalog_.side.end()) return;
    const auto number = static_cast<std::size_t>(found - catalog_.side.begin());
    if (const auto step = step_of_trainer(files_, checkpoint_.side_paths[number])) {
      stated_.push_back({*step, fmt::format("'{}'", trainer_state_name)});
    }
  }

  void report_steps() {
    const auto other = std::ranges::find_if(
        stated_, [&](const Stated& stated) { return stated.step != stated_.front().step; });
    if (other == stated_.end()) return;
    const Stated& first = stated_.front();
    Finding finding;
    finding.id = "RM502";
    finding.message = fmt::format(
        "cannot use the optimizer: {} is of step {}, but {} of step {}; two saves were mixed",
        first.where, first.step, other->where, other->step);
    finding.found = std::to_string(other->step);
    finding.expected = std::to_string(first.step);
    findings_.add(std::move(finding));
  }

  const FileSystem& files_;
  const OpenCheckpoint& checkpoint_;
  const Catalog& catalog_;
  Findings& findings_;
  const std::vector<std::int64_t> parameters_;
  std::vector<Stated> stated_;
};

}  // namespace

void check_optimizer(const FileSystem& files, const OpenCheckpoint& checkpoint,
                     Findings& findings) {
  OptimizerCheck(files, checkpoint, findings).run();
}

}  // namespace remesh::safetensors
