#include "tensor_numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/verify/verify.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

const fs::path fixture = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";

// One after the other, as floats.
TensorNumbers counted_slowly(const TensorDesc& desc, const std::vector<std::byte>& bytes) {
  TensorNumbers numbers;
  numbers.name = desc.name;
  numbers.dtype = desc.dtype;
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &bytes[at], 2);
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    ++numbers.elements;
    if (value == 0) ++numbers.zeros;
    if (value < 0) ++numbers.negatives;
    if (value == 0) continue;
    const int exponent = std::ilogb(value);
    numbers.least_exponent = std::min(numbers.least_exponent.value_or(exponent), exponent);
    numbers.most_exponent = std::max(numbers.most_exponent.value_or(exponent), exponent);
  }
  return numbers;
}

class NumbersOfTensors : public ::testing::Test {
 protected:
  Report judge(const fs::path& path, Level level) {
    return verify(machine_.judge(), {test::opener(path), [](const auto&, const auto&) {}}, level);
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
};

TEST_F(NumbersOfTensors, AreThoseOfASlowCount) {
  const Report report = judge(fixture, Level::deep);
  const auto reader = test::open_strictly(fixture);
  const std::vector<TensorDesc>& tensors = reader->catalog().tensors;
  ASSERT_EQ(report.numbers.size(), tensors.size());
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    ASSERT_EQ(tensors[k].dtype, DType::bf16);
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(tensors[k])));
    reader->read(k, tensors[k].extent, bytes, {});
    EXPECT_EQ(report.numbers[k], counted_slowly(tensors[k], bytes)) << tensors[k].name;
  }
}

TEST_F(NumbersOfTensors, DoNotDependOnTheMesh) {
  test::run_job(machine_, fixture, directory_ / "ck", {.mesh = "tp=4,pp=2"});
  EXPECT_EQ(judge(directory_ / "ck", Level::deep).numbers, judge(fixture, Level::deep).numbers);
}

TEST_F(NumbersOfTensors, AreThereAtDeepAlone) {
  EXPECT_THAT(judge(fixture, Level::full).numbers, IsEmpty());
  EXPECT_THAT(judge(fixture, Level::quick).numbers, IsEmpty());
}

TEST_F(NumbersOfTensors, LeaveOutWhatIsDamaged) {
  fs::create_directory(directory_ / "cut");
  const fs::path file = directory_ / "cut/model.safetensors";
  fs::copy_file(fixture / "model.safetensors", file);
  fs::resize_file(file, fs::file_size(file) - 8);
  const Report report = judge(directory_ / "cut", Level::deep);
  const auto has = [&](const char* name) {
    return std::ranges::find(report.numbers, name, &TensorNumbers::name) != report.numbers.end();
  };
  EXPECT_FALSE(has("model.norm.weight")) << "the last one of the file";
}

}  // namespace
}  // namespace remesh
