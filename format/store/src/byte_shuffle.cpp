#include "byte_shuffle.hpp"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace remesh::native {
namespace {

// Elements and planes of one chunk. A plane holds one byte of every element.
struct Shape {
  std::size_t element_bytes;
  std::size_t num_elements;
};

// Elements from `first` on, one byte after another.
void shuffle_from(std::size_t first, Shape shape, const std::byte* plain,
                  std::byte* shuffled) noexcept {
  for (std::size_t plane = 0; plane < shape.element_bytes; ++plane) {
    for (std::size_t element = first; element < shape.num_elements; ++element) {
      shuffled[plane * shape.num_elements + element] = plain[element * shape.element_bytes + plane];
    }
  }
}

void unshuffle_from(std::size_t first, Shape shape, const std::byte* shuffled,
                    std::byte* plain) noexcept {
  for (std::size_t plane = 0; plane < shape.element_bytes; ++plane) {
    for (std::size_t element = first; element < shape.num_elements; ++element) {
      plain[element * shape.element_bytes + plane] = shuffled[plane * shape.num_elements + element];
    }
  }
}

#if defined(__SSE2__)

// One register of bytes, by which 16 elements are counted too.
constexpr std::size_t lane = sizeof(__m128i);

// Sixteen elements fill as many registers as an element has bytes. Taking the even and the odd
// bytes apart halves the elements; again and again, until each register is a plane.
template <std::size_t element_bytes>
void to_planes(__m128i* registers) noexcept {
  if constexpr (element_bytes > 1) {
    constexpr std::size_t half = element_bytes / 2;
    const __m128i low_bytes = _mm_set1_epi16(0xff);
    __m128i even[half];  // NOLINT(modernize-avoid-c-arrays): they stay in registers
    __m128i odd[half];   // NOLINT(modernize-avoid-c-arrays)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) {
      const __m128i a = registers[2 * i];
      const __m128i b = registers[2 * i + 1];
      even[i] = _mm_packus_epi16(_mm_and_si128(a, low_bytes), _mm_and_si128(b, low_bytes));
      odd[i] = _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
    }
    to_planes<half>(even);
    to_planes<half>(odd);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) {
      registers[2 * i] = even[i];
      registers[2 * i + 1] = odd[i];
    }
  }
}

template <std::size_t element_bytes>
void from_planes(__m128i* registers) noexcept {
  if constexpr (element_bytes > 1) {
    constexpr std::size_t half = element_bytes / 2;
    __m128i even[half];  // NOLINT(modernize-avoid-c-arrays): they stay in registers
    __m128i odd[half];   // NOLINT(modernize-avoid-c-arrays)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) {
      even[i] = registers[2 * i];
      odd[i] = registers[2 * i + 1];
    }
    from_planes<half>(even);
    from_planes<half>(odd);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) {
      registers[2 * i] = _mm_unpacklo_epi8(even[i], odd[i]);
      registers[2 * i + 1] = _mm_unpackhi_epi8(even[i], odd[i]);
    }
  }
}

__m128i load_lane(const std::byte* from) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

void store_lane(std::byte* to, __m128i value) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

// Returns how many elements it has moved: a multiple of 16.
template <std::size_t element_bytes>
std::size_t shuffle_lanes(std::size_t num_elements, const std::byte* plain,
                          std::byte* shuffled) noexcept {
  std::size_t element = 0;
  for (; element + lane <= num_elements; element += lane) {
    __m128i registers[element_bytes];  // NOLINT(modernize-avoid-c-arrays)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < element_bytes; ++i) {
      registers[i] = load_lane(plain + element * element_bytes + i * lane);
    }
    to_planes<element_bytes>(registers);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < element_bytes; ++i) {
      store_lane(shuffled + i * num_elements + element, registers[i]);
    }
  }
  return element;
}

template <std::size_t element_bytes>
std::size_t unshuffle_lanes(std::size_t num_elements, const std::byte* shuffled,
                            std::byte* plain) noexcept {
  std::size_t element = 0;
  for (; element + lane <= num_elements; element += lane) {
    __m128i registers[element_bytes];  // NOLINT(modernize-avoid-c-arrays)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < element_bytes; ++i) {
      registers[i] = load_lane(shuffled + i * num_elements + element);
    }
    from_planes<element_bytes>(registers);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < element_bytes; ++i) {
      store_lane(plain + element * element_bytes + i * lane, registers[i]);
    }
  }
  return element;
}

std::size_t shuffle_fast(Shape shape, const std::byte* plain, std::byte* shuffled) noexcept {
  switch (shape.element_bytes) {
    case 2:
      return shuffle_lanes<2>(shape.num_elements, plain, shuffled);
    case 4:
      return shuffle_lanes<4>(shape.num_elements, plain, shuffled);
    case 8:
      return shuffle_lanes<8>(shape.num_elements, plain, shuffled);
    default:
      return 0;
  }
}

std::size_t unshuffle_fast(Shape shape, const std::byte* shuffled, std::byte* plain) noexcept {
  switch (shape.element_bytes) {
    case 2:
      return unshuffle_lanes<2>(shape.num_elements, shuffled, plain);
    case 4:
      return unshuffle_lanes<4>(shape.num_elements, shuffled, plain);
    case 8:
      return unshuffle_lanes<8>(shape.num_elements, shuffled, plain);
    default:
      return 0;
  }
}

#else

std::size_t shuffle_fast(Shape, const std::byte*, std::byte*) noexcept { return 0; }
std::size_t unshuffle_fast(Shape, const std::byte*, std::byte*) noexcept { return 0; }

#endif

// Copies what is no whole element, and returns the shape of the rest.
Shape copy_tail(std::span<const std::byte> from, std::size_t element_bytes,
                std::span<std::byte> to) noexcept {
  const Shape shape{element_bytes, from.size() / element_bytes};
  const std::size_t whole = shape.num_elements * element_bytes;
  std::ranges::copy(from.subspan(whole), to.begin() + static_cast<std::ptrdiff_t>(whole));
  return shape;
}

}  // namespace

void shuffle(std::span<const std::byte> plain, std::size_t element_bytes,
             std::span<std::byte> shuffled) noexcept {
  const Shape shape = copy_tail(plain, element_bytes, shuffled);
  const std::size_t done = shuffle_fast(shape, plain.data(), shuffled.data());
  shuffle_from(done, shape, plain.data(), shuffled.data());
}

void unshuffle(std::span<const std::byte> shuffled, std::size_t element_bytes,
               std::span<std::byte> plain) noexcept {
  const Shape shape = copy_tail(shuffled, element_bytes, plain);
  const std::size_t done = unshuffle_fast(shape, shuffled.data(), plain.data());
  unshuffle_from(done, shape, shuffled.data(), plain.data());
}

}  // namespace remesh::native
