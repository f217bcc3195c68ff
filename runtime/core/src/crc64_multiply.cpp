#include "crc64_multiply.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#include <smmintrin.h>
#include <wmmintrin.h>
#endif

namespace remesh::crc64 {

#if defined(__x86_64__)

namespace {

// The quotient of x^128 by the generator, without its x^64: by long division, highest power first.
constexpr std::uint64_t reciprocal() {
  std::uint64_t quotient = 0;
  std::uint64_t remainder = generator;  // x^64 modulo the generator
  for (int step = 0; step < 64; ++step) {
    quotient |= (remainder & 1) << step;
    remainder = times_x(remainder);
  }
  return quotient;
}

// A product of two reflected words comes out one place too low. A constant makes up for it by being
// shifted beforehand, which makes room for the x^64 of the reciprocal and drops that of x^0 of the
// generator, to be added apart.
constexpr std::uint64_t shifted_reciprocal = (reciprocal() << 1) | 1;
constexpr std::uint64_t shifted_generator = generator << 1;

}  // namespace

bool has_carryless() noexcept {
  return __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
}

// Barrett's reduction. In reflected order the low word of the product holds the powers from x^64
// up: that word by the reciprocal is the quotient, and the quotient by the generator is what to
// remove.
__attribute__((target("pclmul,sse4.1"))) std::uint64_t multiply_carryless(
    std::uint64_t a, std::uint64_t b) noexcept {
  const __m128i constants = _mm_set_epi64x(static_cast<long long>(shifted_generator),
                                           static_cast<long long>(shifted_reciprocal));
  const __m128i low_place =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(a)),
                           _mm_cvtsi64_si128(static_cast<long long>(b)), 0x00);
  const __m128i carry = _mm_slli_si128(_mm_srli_epi64(low_place, 63), 8);
  const __m128i product = _mm_or_si128(_mm_slli_epi64(low_place, 1), carry);

  const __m128i quotient = _mm_clmulepi64_si128(product, constants, 0x00);
  const __m128i removed =
      _mm_xor_si128(_mm_clmulepi64_si128(quotient, constants, 0x10), _mm_slli_si128(quotient, 8));
  return static_cast<std::uint64_t>(_mm_extract_epi64(_mm_xor_si128(product, removed), 1));
}

#else

bool has_carryless() noexcept { return false; }

std::uint64_t multiply_carryless(std::uint64_t a, std::uint64_t b) noexcept {
  return multiply_portable(a, b);
}

#endif

}  // namespace remesh::crc64
