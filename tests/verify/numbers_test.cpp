#include "numbers.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "narrow_scan.hpp"
#include "numbered_tensor.hpp"
#include "remesh/store/chunks.hpp"
#include "seeds.hpp"

namespace remesh::detail {

void PrintTo(const NumberCounts& counts, std::ostream* out) {
  *out << counts.elements << " elements, " << counts.zeros << " zeros, " << counts.nans << " NaN, "
       << counts.infinities << " infinite, " << counts.denormals << " denormal, "
       << counts.negatives << " negative, exponents " << counts.least_exponent << " to "
       << counts.most_exponent << ", first not finite " << counts.first_not_finite
       << ", first negative " << counts.first_negative << ", bands";
  for (const Index band : counts.bands) *out << " " << band;
}

namespace {

// One kind of float, as its definition has it: value = fraction * 2^exponent.
struct Definition {
  DType dtype;
  int exponent_bits;
  int fraction_bits;
  int bias;
};

constexpr Definition floats[] = {{DType::f64, 11, 52, 1023}, {DType::f32, 8, 23, 127},
                                 {DType::f16, 5, 10, 15},    {DType::bf16, 8, 7, 127},
                                 {DType::f8_e4m3, 4, 3, 7},  {DType::f8_e5m2, 5, 2, 15}};

constexpr DType integers[] = {DType::u8,  DType::i8,  DType::u16, DType::i16,
                              DType::u32, DType::i32, DType::u64, DType::i64};

// The value of any such float, exactly, as a double. Shares nothing with what is tested: it
// computes.
double value_of(const Definition& kind, std::uint64_t bits) {
  const std::uint64_t fraction = bits % (std::uint64_t{1} << kind.fraction_bits);
  const std::uint64_t above = bits / (std::uint64_t{1} << kind.fraction_bits);
  const auto field = static_cast<int>(above % (std::uint64_t{1} << kind.exponent_bits));
  const bool minus = above / (std::uint64_t{1} << kind.exponent_bits) % 2 == 1;
  const int last = (1 << kind.exponent_bits) - 1;
  double value = 0;
  if (kind.dtype == DType::f8_e4m3 ? field == last && fraction == 7 : field == last) {
    const bool infinite = kind.dtype != DType::f8_e4m3 && fraction == 0;
    value = infinite ? HUGE_VAL : std::nan("");
  } else {
    const double one = field == 0 ? 0.0 : std::ldexp(1.0, kind.fraction_bits);
    value = std::ldexp(one + static_cast<double>(fraction),
                       std::max(field, 1) - kind.bias - kind.fraction_bits);
  }
  return std::copysign(value, minus ? -1.0 : 1.0);
}

void count_float(const Definition& kind, std::uint64_t bits, Index number, NumberCounts& counts) {
  const double value = value_of(kind, bits);
  ++counts.elements;
  if (value == 0) ++counts.zeros;
  if (value < 0) ++counts.negatives;
  if (value < 0 && counts.first_negative == NumberCounts::nowhere) counts.first_negative = number;
  if (std::isnan(value)) ++counts.nans;
  if (std::isinf(value)) ++counts.infinities;
  if (!std::isfinite(value) && counts.first_not_finite == NumberCounts::nowhere) {
    counts.first_not_finite = number;
  }
  if (value == 0 || !std::isfinite(value)) return;
  const double size = std::abs(value);
  const double least_normal = std::ldexp(1.0, 1 - kind.bias);
  if (size < least_normal) ++counts.denormals;
  // By comparing with powers of two, from below.
  int field = 0;
  while (field < 2047 && size >= std::ldexp(1.0, field + 1 - kind.bias)) ++field;
  int band = field;
  for (int each = kind.exponent_bits; each > 3; --each) band /= 2;
  ++counts.bands[static_cast<std::size_t>(band)];
  counts.least_exponent = std::min(counts.least_exponent, field);
  counts.most_exponent = std::max(counts.most_exponent, field);
}

void count_integer(DType dtype, std::uint64_t bits, Index number, NumberCounts& counts) {
  ++counts.elements;
  if (bits == 0) ++counts.zeros;
  const bool is_signed = to_string(dtype)[0] == 'i';
  if (!is_signed || bits < std::uint64_t{1} << (remesh::bits(dtype) - 1)) return;
  ++counts.negatives;
  if (counts.first_negative == NumberCounts::nowhere) counts.first_negative = number;
}

NumberCounts oracle(DType dtype, std::span<const std::byte> bytes) {
  NumberCounts counts;
  const auto kind = std::ranges::find(floats, dtype, &Definition::dtype);
  const auto width = static_cast<std::size_t>(bits(dtype) / 8);
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    std::uint64_t element = 0;
    for (std::size_t k = width; k-- > 0;) {
      element = element * 256 + std::to_integer<std::uint64_t>(bytes[at + k]);
    }
    const auto number = static_cast<Index>(at / width);
    if (kind != std::end(floats)) {
      count_float(*kind, element, number, counts);
    } else {
      count_integer(dtype, element, number, counts);
    }
  }
  return counts;
}

std::vector<DType> counted() {
  std::vector<DType> all(std::begin(integers), std::end(integers));
  for (const Definition& kind : floats) all.push_back(kind.dtype);
  return all;
}

template <typename Word>
std::vector<std::byte> bytes_of(const std::vector<Word>& words) {
  std::vector<std::byte> bytes(words.size() * sizeof(Word));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

TEST(CountNumbers, KnowsTheDtypesThatItSays) {
  for (const DType dtype : all_dtypes()) {
    const bool expected = std::ranges::count(counted(), dtype) == 1;
    EXPECT_EQ(is_counted(dtype), expected) << to_string(dtype);
    EXPECT_EQ(is_counted_float(dtype),
              std::ranges::find(floats, dtype, &Definition::dtype) != std::end(floats))
        << to_string(dtype);
  }
}

TEST(CountNumbers, AHandfulByHand) {
  // 1, -1, 0, -0, NaN, -NaN, infinity, -infinity, a denormal, a negative one.
  const std::vector<std::uint32_t> words{0x3f800000, 0xbf800000, 0,          0x80000000,
                                         0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000,
                                         1,          0x80000001};
  const NumberCounts counts = count_numbers(DType::f32, bytes_of(words));
  EXPECT_EQ(counts.elements, 10);
  EXPECT_EQ(counts.zeros, 2);
  EXPECT_EQ(counts.nans, 2);
  EXPECT_EQ(counts.infinities, 2);
  EXPECT_EQ(counts.denormals, 2);
  EXPECT_EQ(counts.negatives, 3) << "-1, -infinity and a denormal";
  EXPECT_EQ(counts.first_negative, 1);
  EXPECT_EQ(counts.first_not_finite, 4);
  EXPECT_EQ(counts.least_exponent, 0);
  EXPECT_EQ(counts.most_exponent, 127);
  EXPECT_EQ(counts.bands[0], 2);
  EXPECT_EQ(counts.bands[3], 2) << "1 and -1";
}

TEST(CountNumbers, EveryElementOfSixteenBitsAndOfEight) {
  for (const DType dtype : counted()) {
    const int width = bits(dtype);
    if (width > 16) continue;
    std::vector<std::byte> all;
    for (std::uint32_t word = 0; word < std::uint32_t{1} << width; ++word) {
      const auto* const begin = reinterpret_cast<const std::byte*>(&word);
      all.insert(all.end(), begin, begin + width / 8);
    }
    EXPECT_EQ(count_numbers(dtype, all), oracle(dtype, all)) << to_string(dtype);
    // And each alone, so that no two errors cancel.
    for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(width / 8)) {
      const auto one = std::span(all).subspan(at, static_cast<std::size_t>(width / 8));
      ASSERT_EQ(count_numbers(dtype, one), oracle(dtype, one)) << to_string(dtype) << " at " << at;
    }
  }
}

// Bits as they come have every exponent; some special ones are put among them.
std::vector<std::byte> drawn_elements(test::Arbitrary& arbitrary, DType dtype, Index count) {
  const std::int64_t width = bits(dtype) / 8;
  std::vector<std::byte> bytes = arbitrary.bytes(count * width);
  const Index special = arbitrary.chance(50) ? arbitrary.between(0, count) : 0;
  for (Index k = 0; k < special; ++k) {
    std::byte* const at = bytes.data() + arbitrary.between(0, count - 1) * width;
    const auto fill = static_cast<std::byte>(arbitrary.chance(50) ? 0x00 : 0xff);
    std::fill_n(at, width, fill);
    if (arbitrary.chance(50)) at[width - 1] ^= std::byte{0x80};  // the sign
    if (arbitrary.chance(30) && width > 1) {                     // infinities of both 16-bit kinds
      std::fill_n(at, width, std::byte{0});
      at[width - 1] = static_cast<std::byte>(arbitrary.chance(50) ? 0x7f : 0xfc);
      if (arbitrary.chance(50)) at[width - 2] = static_cast<std::byte>(width == 8 ? 0xf0 : 0x80);
    }
  }
  return bytes;
}

TEST(CountNumbers, IsWhatAnOracleCounts) {
  for (unsigned seed = 0; seed < test::num_seeds(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    for (const DType dtype : counted()) {
      const auto bytes = drawn_elements(arbitrary, dtype, arbitrary.between(1, 3000));
      EXPECT_EQ(count_numbers(dtype, bytes), oracle(dtype, bytes)) << to_string(dtype);
    }
  }
}

// Numbers as weights are: of few exponents, and in many blocks, few of which have a special one.
TEST(CountNumbers, OfLongRowsOfNormalNumbersIsWhatAnOracleCounts) {
  for (unsigned seed = 0; seed < test::num_seeds(4); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    for (const Definition& kind : floats) {
      const int width = bits(kind.dtype) / 8;
      const std::uint64_t fields = std::uint64_t{1} << kind.exponent_bits;
      const auto low = static_cast<std::uint64_t>(arbitrary.between(1, 3)) * fields / 5;
      const std::int64_t count = arbitrary.between(70'000, 100'000);
      std::vector<std::byte> bytes = arbitrary.bytes(count * width);
      for (std::int64_t k = 0; k < count; ++k) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + k * width, static_cast<std::size_t>(width));
        const std::uint64_t field = low + (word >> kind.fraction_bits) % (fields / 3);
        const std::uint64_t fraction = word % (std::uint64_t{1} << kind.fraction_bits);
        const std::uint64_t sign = seed % 2 == 0 ? word >> (8 * width - 1) : 0;
        word = sign << (8 * width - 1) | field << kind.fraction_bits | fraction;
        std::memcpy(bytes.data() + k * width, &word, static_cast<std::size_t>(width));
      }
      if (seed > 1) {
        const Index at = arbitrary.between(0, count - 1);
        std::fill_n(bytes.begin() + at * width, width,
                    static_cast<std::byte>(seed == 2 ? 0x00 : 0xff));
      }
      EXPECT_EQ(count_numbers(kind.dtype, bytes), oracle(kind.dtype, bytes))
          << to_string(kind.dtype);
    }
  }
}

// Whatever is taken at a time, and wherever vectors and blocks end.
TEST(CountNumbers, OfOneByteIsTheSameInVectorsOfAnyWidth) {
  const auto check = [](std::span<const std::byte> bytes, const std::string& what) {
    for (const Width width : {Width::base, best_width()}) {
      EXPECT_EQ(count_f8_e4m3(bytes, width), oracle(DType::f8_e4m3, bytes)) << what;
      EXPECT_EQ(count_f8_e5m2(bytes, width), oracle(DType::f8_e5m2, bytes)) << what;
    }
  };
  for (unsigned seed = 0; seed < test::num_seeds(20); ++seed) {
    test::Arbitrary arbitrary(seed);
    const Index count =
        arbitrary.chance(20) ? arbitrary.between(65'000, 66'000) : arbitrary.between(0, 400);
    std::vector<std::byte> bytes = arbitrary.bytes(count);
    const auto most = static_cast<unsigned char>(arbitrary.between(0, 0x7b));  // finite in both
    for (std::byte& byte : bytes) {
      const auto value = std::to_integer<unsigned>(byte);
      byte = static_cast<std::byte>((value & 0x80) | (value & 0x7f) % (most + 1U));
    }
    check(bytes, "finite, seed " + std::to_string(seed));
    if (bytes.empty()) continue;
    bytes[static_cast<std::size_t>(arbitrary.between(0, count - 1))] = std::byte{0xff};
    check(bytes, "one NaN, seed " + std::to_string(seed));
    // Columns of zeros: a lane of a vector has no other number.
    const Index row = arbitrary.pick(std::vector<Index>{8, 16, 32, 64});
    const Index column = arbitrary.between(0, row - 1);
    for (Index k = 0; k < count; ++k) {
      std::byte& byte = bytes[static_cast<std::size_t>(k)];
      byte = k % row == column ? std::byte{0} : std::byte{0x38} | (byte & std::byte{0x83});
    }
    check(bytes, "a column of zeros, seed " + std::to_string(seed));
  }
}

TEST(CountNumbers, ManyOfAKindDoNotOverflowTheSums) {
  const std::size_t count = 300'000;
  for (const DType dtype : counted()) {
    const std::vector<std::byte> zeros(count * static_cast<std::size_t>(bits(dtype) / 8));
    EXPECT_EQ(count_numbers(dtype, zeros).zeros, 300'000) << to_string(dtype);
    const std::vector<std::byte> ones(zeros.size(), std::byte{0xff});
    EXPECT_EQ(count_numbers(dtype, ones), oracle(dtype, ones)) << to_string(dtype);
  }
}

// A tensor in files: boxes at any places, some in frames, some twice.
class Scattered {
 public:
  Scattered(test::Arbitrary& arbitrary, const TensorDesc& desc, std::vector<std::byte> whole)
      : desc_(desc), whole_(std::move(whole)) {
    std::vector<Box> boxes;
    cut(arbitrary, desc.extent, 4, boxes);
    std::vector<Extent> extents;
    std::vector<Frame> frames;
    std::int64_t end = 0;
    for (const Box& box : boxes) {
      end += arbitrary.between(0, 5);
      Extent extent{.length_bytes = num_bytes(desc.dtype, box), .box = box};
      extent.offset_bytes = end;
      if (arbitrary.chance(30) && box.ndim() > 0) {
        extent.chunk_dim = static_cast<int>(arbitrary.between(0, box.ndim() - 1));
        extent.chunk_size = arbitrary.between(1, box[extent.chunk_dim].size());
        extent.first_frame = std::ssize(frames);
        for (std::int64_t k = 0; k < num_chunks(extent); ++k) {
          frames.push_back({end + 3 * k, 3});
        }
        end += 3 * num_chunks(extent);
      } else {
        end += extent.length_bytes;
      }
      extents.push_back(extent);
      if (is_chunked(extent) || !arbitrary.chance(20)) continue;
      extent.copy = 1;  // whatever a second copy holds, it is not counted
      extent.offset_bytes = end;
      end += extent.length_bytes;
      extents.push_back(extent);
    }
    file_.resize(static_cast<std::size_t>(end), std::byte{0xff});
    map_ = ExtentMap({{"file", end}}, extents, {}, {}, frames);
    for (const Extent& extent : map_.extents()) {
      if (is_chunked(extent) || extent.copy != 0) continue;
      std::ranges::copy(packed(extent.box), file_.begin() + extent.offset_bytes);
    }
  }

  struct Feed {
    std::int64_t frame = -1;
    std::int64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  // Every byte once, in runs of any length that begin anywhere, in any order.
  std::vector<Feed> feeds(test::Arbitrary& arbitrary) const {
    std::vector<Feed> all;
    add_feeds(arbitrary, -1, file_, all);
    for (const Extent& extent : map_.extents()) {
      for (std::int64_t k = 0; is_chunked(extent) && k < num_chunks(extent); ++k) {
        add_feeds(arbitrary, extent.first_frame + k, packed(chunk_box(extent, k)), all);
      }
    }
    arbitrary.shuffle(all);
    return all;
  }

  const ExtentMap& map() const { return map_; }

 private:
  static void cut(test::Arbitrary& arbitrary, const Box& box, int depth, std::vector<Box>& boxes) {
    const int dim = box.ndim() == 0 ? 0 : static_cast<int>(arbitrary.between(0, box.ndim() - 1));
    if (depth == 0 || box.ndim() == 0 || box[dim].size() < 2 || arbitrary.chance(30)) {
      boxes.push_back(box);
      return;
    }
    const Index at = arbitrary.between(box[dim].begin + 1, box[dim].end - 1);
    Box left = box;
    Box right = box;
    left[dim].end = at;
    right[dim].begin = at;
    cut(arbitrary, right, depth - 1, boxes);
    cut(arbitrary, left, depth - 1, boxes);
  }

  std::vector<std::byte> packed(const Box& box) const {
    std::vector<std::byte> bytes;
    const std::int64_t width = bits(desc_.dtype) / 8;
    test::for_each_element(desc_.extent, box, [&](Index place) {
      const auto at = whole_.begin() + place * width;
      bytes.insert(bytes.end(), at, at + width);
    });
    return bytes;
  }

  static void add_feeds(test::Arbitrary& arbitrary, std::int64_t frame,
                        const std::vector<std::byte>& bytes, std::vector<Feed>& all) {
    const Index most = arbitrary.chance(50) ? 7 : 400;
    for (std::int64_t at = 0; at < std::ssize(bytes);) {
      const std::int64_t end = std::min(at + arbitrary.between(1, most), std::ssize(bytes));
      all.push_back({frame, at, {bytes.begin() + at, bytes.begin() + end}});
      at = end;
    }
  }

  TensorDesc desc_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> file_;
  ExtentMap map_;
};

void feed(Numbers& numbers, const std::vector<Scattered::Feed>& feeds, int threads) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < feeds.size(); at = next++) {
      const auto& [frame, offset, bytes] = feeds[at];
      if (frame < 0) {
        numbers.add(0, offset, bytes);
      } else {
        numbers.add_unpacked(frame, offset, bytes);
      }
    }
  };
  std::vector<std::jthread> others;
  for (int k = 1; k < threads; ++k) others.emplace_back(work);
  work();
}

TEST(Numbers, AreTheSameWhateverTheLayoutTheRunsAndTheThreads) {
  for (unsigned seed = 0; seed < test::num_seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const TensorDesc desc{"t", arbitrary.pick(counted()), arbitrary.extent()};
    SCOPED_TRACE(to_string(desc));
    if (desc.extent.empty()) continue;
    const auto whole = drawn_elements(arbitrary, desc.dtype, desc.extent.num_elements());
    const NumberCounts expected = oracle(desc.dtype, whole);
    for (const int threads : {1, 3}) {
      const Scattered scattered(arbitrary, desc, whole);
      Numbers numbers(std::span(&desc, 1), scattered.map());
      feed(numbers, scattered.feeds(arbitrary), threads);
      EXPECT_EQ(numbers.of(0), expected) << threads << " threads";
    }
  }
}

TEST(Numbers, AnElementThatIsCutCountsWhenItIsWhole) {
  const TensorDesc desc{"t", DType::f64, Box{{0, 2}}};
  const ExtentMap map({{"file", 19}},
                      {{.offset_bytes = 3, .length_bytes = 16, .box = desc.extent}});
  const auto bytes = bytes_of<double>({-1.5, HUGE_VAL});
  Numbers numbers(std::span(&desc, 1), map);
  const auto give = [&](std::int64_t begin, std::int64_t end) {
    numbers.add(0, 3 + begin,
                std::span(bytes).subspan(static_cast<std::size_t>(begin),
                                         static_cast<std::size_t>(end - begin)));
  };
  give(5, 7);
  give(7, 12);
  EXPECT_EQ(numbers.of(0).elements, 0);
  give(12, 16);
  EXPECT_EQ(numbers.of(0).elements, 1);
  EXPECT_EQ(numbers.of(0).first_not_finite, 1);
  give(0, 5);
  EXPECT_EQ(numbers.of(0), oracle(desc.dtype, bytes));
}

TEST(Numbers, OfOtherDtypesNothingIsCounted) {
  const TensorDesc desc{"t", DType::c64, Box{{0, 4}}};
  const ExtentMap map({{"file", 32}}, {{.length_bytes = 32, .box = desc.extent}});
  Numbers numbers(std::span(&desc, 1), map);
  numbers.add(0, 0, std::vector<std::byte>(32, std::byte{0xff}));
  EXPECT_EQ(numbers.of(0), NumberCounts{});
}

TEST(NumberOf, IsTheInverseOfElementOf) {
  const Box box{{2, 5}, {0, 3}, {7, 9}};
  for (Index number = 0; number < box.num_elements(); ++number) {
    EXPECT_EQ(number_of(box, element_of(box, number)), number);
  }
  EXPECT_EQ(number_of(Box{}, Box{}), 0);
}

}  // namespace
}  // namespace remesh::detail
