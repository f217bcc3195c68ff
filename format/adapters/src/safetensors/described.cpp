#include "described.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/checked.hpp"

namespace remesh::safetensors {
namespace {

// No count of a file exceeds this: sizes are signed from here on.
constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

// The checks of one tensor, each of which leaves its objection.
class Check {
 public:
  Check(const DescribedTensor& tensor, Defect& objection)
      : tensor_(tensor), objection_(objection) {}

  bool complete() {
    if (tensor_.dtype.present && tensor_.shape.present && tensor_.offsets.present) return true;
    return fail("RM210", "lacks its dtype, its shape or its data_offsets");
  }

  std::optional<DType> dtype() {
    const auto dtype = parse_dtype_name(tensor_.dtype.value);
    if (!dtype) {
      fail_unsupported(fmt::format("has the dtype '{}', which this build does not know",
                                   shown(tensor_.dtype.value)),
                       "a newer remesh may know it");
    }
    return dtype;
  }

  std::optional<Box> extent() {
    const std::vector<std::uint64_t>& shape = tensor_.shape.value;
    if (shape.size() > static_cast<std::size_t>(max_ndim)) {
      fail_unsupported(
          fmt::format("has {} dims, but at most {} are supported", shape.size(), max_ndim),
          /*next_step=*/"");
      return std::nullopt;
    }
    Box extent = Box::of_ndim(shape.size());
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (shape[dim] > most) {
        fail("RM303", fmt::format("has a dim of {} elements, which no file holds", shape[dim]));
        return std::nullopt;
      }
      extent[static_cast<int>(dim)].end = static_cast<Index>(shape[dim]);
    }
    return extent;
  }

  // The bytes that dtype and shape ask for. A 0 among the sizes does not excuse an overflow:
  // strides are products too.
  std::optional<std::int64_t> wanted_bytes(const TensorDesc& desc) {
    std::optional<std::int64_t> size_bits = bits(desc.dtype);
    for (int dim = 0; dim < desc.extent.ndim() && size_bits; ++dim) {
      size_bits = checked_multiply(*size_bits, std::max<Index>(desc.extent[dim].size(), 1));
    }
    if (!size_bits) {
      fail("RM303", "has a shape whose size in bits overflows 64 bits");
      return std::nullopt;
    }
    if (desc.extent.empty()) return 0;
    if (*size_bits % 8 != 0) {
      fail("RM303", fmt::format("has {} bits, which are no whole bytes", *size_bits));
      return std::nullopt;
    }
    return *size_bits / 8;
  }

  bool offsets(std::int64_t wanted, const TensorDesc& desc) {
    const std::vector<std::uint64_t>& at = tensor_.offsets.value;
    if (at.size() != 2 || at[0] > at[1] || at[1] > most) {
      return fail("RM210", "has data_offsets that are no range of bytes");
    }
    if (at[1] - at[0] == static_cast<std::uint64_t>(wanted)) return true;
    return fail("RM303", fmt::format("({}, {}) has the {} bytes [{}, {}), but its dtype and shape "
                                     "take {}",
                                     to_string(desc.dtype), to_string(desc.extent), at[1] - at[0],
                                     at[0], at[1], wanted));
  }

 private:
  bool fail(std::string id, std::string_view what,
            std::string next_step = "the header is damaged") {
    objection_ = about(tensor_, std::move(id), what, std::move(next_step));
    return false;
  }

  void fail_unsupported(std::string_view what, std::string next_step) {
    fail("RM303", what, std::move(next_step));
    objection_.code = Errc::unsupported;
  }

  const DescribedTensor& tensor_;
  Defect& objection_;
};

}  // namespace

Defect about(const DescribedTensor& tensor, std::string id, std::string_view what,
             std::string next_step) {
  Defect finding = defect(std::move(id), fmt::format("tensor '{}' {}", shown(tensor.name), what),
                          std::move(next_step));
  finding.tensor = tensor.name;
  return finding;
}

std::optional<HeaderTensor> checked(DescribedTensor& tensor, Defect& objection) {
  Check check(tensor, objection);
  if (!check.complete()) return std::nullopt;
  const auto dtype = check.dtype();
  if (!dtype) return std::nullopt;
  const auto extent = check.extent();
  if (!extent) return std::nullopt;

  TensorDesc desc{.name = {}, .dtype = *dtype, .extent = *extent};
  const auto wanted = check.wanted_bytes(desc);
  if (!wanted || !check.offsets(*wanted, desc)) return std::nullopt;
  desc.name = std::move(tensor.name);
  const std::vector<std::uint64_t>& at = tensor.offsets.value;
  return HeaderTensor{std::move(desc), static_cast<std::int64_t>(at[0]),
                      static_cast<std::int64_t>(at[1])};
}

}  // namespace remesh::safetensors
