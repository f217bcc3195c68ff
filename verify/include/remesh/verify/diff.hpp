#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "remesh/core/dtype.hpp"
#include "remesh/schema/box.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

/// @file
/// What differs between two checkpoints, tensor by tensor and in numbers, whatever their meshes and
/// formats. Nothing of it depends on threads, ranks, files or the order of catalogs.

namespace remesh {

/// How far elements may be apart and still count as equal. An element is within the tolerance if it
/// keeps one of the limits that are given:
/// |left - right| <= absolute + relative * max(|left|, |right|), where the one that is not given is
/// 0; or at most `ulps` apart (floats alone). What is not finite is within none, unless its bits
/// are the same.
struct Tolerance {
  std::optional<double> absolute;     ///< >= 0, in the values' own unit
  std::optional<double> relative;     ///< >= 0
  std::optional<std::uint64_t> ulps;  ///< of the dtype, or of what both are widened to

  bool any() const noexcept { return absolute || relative || ulps; }
};

struct DiffOptions {
  /// Only tensors that match one of these; empty: all. A pattern is a shell's glob, in which '*'
  /// stands for dots too. One that matches a parameter's name stands for its states as well.
  std::vector<std::string> include;
  /// Not those that match one of these.
  std::vector<std::string> exclude;
  Tolerance tolerance;
};

enum class Likeness {
  equal,         ///< dtype, shape, and every bit
  within,        ///< every element is within the tolerance that was given
  different,     ///< elements, or the dtype where no tolerance was given
  not_compared,  ///< of another shape, or of dtypes that are not both floats
};

std::string_view to_string(Likeness likeness) noexcept;

/// What is known of two elements at the same place that differ.
struct ElementPair {
  std::vector<Index> index;  ///< along each dim; empty of a scalar
  std::uint64_t left_bits = 0;
  std::uint64_t right_bits = 0;
  std::string left;  ///< the value: "0.0078125"; empty where bits are all that is known
  std::string right;
};

/// A tensor that has the same name on both sides. Where both have one dtype, elements differ if
/// their bits do; floats of two dtypes are widened exactly, to f32 or, if one is f64, to f64, and
/// differ if their values do: there any NaN is the same as any other, and -0 as 0.
struct TensorDiff {
  std::size_t left = 0;  ///< its numbers in the catalogs
  std::size_t right = 0;
  Likeness likeness = Likeness::equal;
  Index elements = 0;
  Index differing = 0;
  Index beyond = 0;    ///< of these, those that are not within the tolerance
  Index nans = 0;      ///< of these, those of which one is NaN
  Index infinite = 0;  ///< of these, those of which one is infinite and none NaN
  /// Of all elements of a tensor that is not equal, those that are NaN or infinite on a side,
  /// though it be the same on both. Where there is one, its distance is no number, so nothing is
  /// known of the figures below (`max_ulps` to `cosine`).
  Index not_finite = 0;
  /// How many differing elements that are finite on both sides are so many ulps apart, by the
  /// number of bits that this takes: 0; 1; 2 and 3; 4 to 7; ... Of integers, by their difference.
  /// Ends with the last that is not 0.
  std::vector<Index> histogram;
  /// Of floats, the most ulps that two elements are apart. -0 and 0 are 0 ulps apart.
  std::optional<std::uint64_t> max_ulps;
  /// The largest |left - right|. Like all figures nothing where bits are all that is known, or
  /// nothing was compared.
  std::optional<double> max_absolute;
  /// Of integers the same, exactly.
  std::optional<std::uint64_t> max_difference;
  /// The mean of |left - right| over all elements. Like the two below nothing where it is beyond
  /// every number.
  std::optional<double> mean_absolute;
  /// |left - right| / |left|, by the root of the sum of squares. Nothing if the left side is zero.
  std::optional<double> relative_l2;
  /// Of the angle between both sides. Nothing if a side is zero.
  std::optional<double> cosine;
  std::optional<ElementPair> first;  ///< in row-major order
};

/// What two checkpoints have in common, and what not. Ordered by names, in which runs of digits
/// count as numbers.
struct Diff {
  std::vector<TensorDiff> tensors;      ///< that both sides have
  std::vector<std::size_t> only_left;   ///< by their numbers in the left catalog
  std::vector<std::size_t> only_right;  ///< likewise
  std::int64_t left_out = 0;            ///< tensors of either side, each name once
  std::int64_t bytes_read = 0;
  /// How names that only one side has may belong together; empty where nothing was found.
  std::string hint;

  std::int64_t count(Likeness likeness) const noexcept;
  /// Whether all tensors are equal or within the tolerance, and both sides have the same; false if
  /// there is none.
  bool same() const noexcept;
};

/// Compares all tensors of two checkpoints, reading each side once; of a tensor that differs in
/// some places, the equal parts of the left side twice. It compares what is there: whether that is
/// what was recorded, verify() tells.
/// Throws Error(invalid_argument) for a pattern that matches nothing on either side, and for
/// patterns that leave nothing to compare; as Reader::read() and MemoryBudget::reserve() do;
/// Error(stopped).
Diff diff(const JudgeContext& context, const Reader& left, const Reader& right,
          const DiffOptions& options = {});

}  // namespace remesh
