#include "crc64_multiply.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "remesh/core/digest.hpp"

namespace remesh::crc64 {
namespace {

std::uint64_t reversed(std::uint64_t value) {
  std::uint64_t result = 0;
  for (int bit = 0; bit < 64; ++bit) result |= ((value >> bit) & 1) << (63 - bit);
  return result;
}

// By long multiplication and long division in the order of the powers, with the polynomial as
// ECMA-182 prints it.
std::uint64_t product_by_definition(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t left = reversed(a);
  const std::uint64_t right = reversed(b);
  std::uint64_t product = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const bool overflows = (product >> 63) != 0;
    product = (product << 1) ^ (overflows ? 0x42f0e1eba9ea3693 : 0);
    if (((left >> bit) & 1) != 0) product ^= right;
  }
  return reversed(product);
}

// All single bits, the ends, and values at random.
std::vector<std::uint64_t> operands() {
  std::vector<std::uint64_t> values{0, ~std::uint64_t{0}, generator};
  for (int bit = 0; bit < 64; ++bit) values.push_back(std::uint64_t{1} << bit);
  std::mt19937_64 engine(5);
  for (int i = 0; i < 100; ++i) values.push_back(engine());
  return values;
}

void expect_agreement_of(std::uint64_t (*multiply_under_test)(std::uint64_t, std::uint64_t)) {
  for (const std::uint64_t a : operands()) {
    for (const std::uint64_t b : operands()) {
      ASSERT_EQ(multiply_under_test(a, b), product_by_definition(a, b)) << a << " times " << b;
    }
  }
}

TEST(Crc64Multiply, ThePortableFormAgreesWithTheDefinition) {
  expect_agreement_of([](std::uint64_t a, std::uint64_t b) { return multiply_portable(a, b); });
}

TEST(Crc64Multiply, TheCarrylessFormAgreesWithTheDefinition) {
  if (!has_carryless()) GTEST_SKIP() << "this processor has no carry-less multiplication";
  expect_agreement_of(multiply_carryless);
}

TEST(Crc64Multiply, ThePublicFormAgreesWithTheDefinition) { expect_agreement_of(multiply); }

TEST(Crc64Multiply, OneChangesNothing) {
  for (const std::uint64_t a : operands()) EXPECT_EQ(multiply(a, one), a);
}

}  // namespace
}  // namespace remesh::crc64
