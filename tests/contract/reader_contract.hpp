#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/tally.hpp"

/// @file
/// What every Reader must do. An implementation is tested by one line:
///
///   INSTANTIATE_TEST_SUITE_P(Native, ReaderContract, ::testing::Values(&native_numbered));

namespace remesh::test {

/// A checkpoint whose tensors are numbered (numbered_tensor.hpp), and what it lives in.
struct NumberedCheckpoint {
  std::shared_ptr<void> home;
  std::unique_ptr<Reader> reader;
};

using MakeNumbered = NumberedCheckpoint (*)(Arbitrary& arbitrary);

class ReaderContract : public ::testing::TestWithParam<MakeNumbered> {
 protected:
  static constexpr unsigned num_seeds = 30;

  /// Calls `check` with the readers of several checkpoints.
  template <typename Check>
  void each(const Check& check) {
    for (unsigned seed = 0; seed < num_seeds && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Arbitrary arbitrary(seed);
      const NumberedCheckpoint checkpoint = GetParam()(arbitrary);
      check(*checkpoint.reader, arbitrary);
    }
  }
};

inline std::vector<std::byte> read_box(const Reader& reader, std::size_t tensor, const Box& box,
                                       const Tap& tap = {}) {
  const TensorDesc& desc = reader.catalog().tensors[tensor];
  std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc.dtype, box)));
  reader.read(tensor, box, bytes, tap);
  return bytes;
}

TEST_P(ReaderContract, ReadsEveryTensorWhole) {
  each([](const Reader& reader, Arbitrary&) {
    for (std::size_t tensor = 0; tensor < reader.catalog().tensors.size(); ++tensor) {
      const TensorDesc& desc = reader.catalog().tensors[tensor];
      ASSERT_EQ(what_differs(desc, desc.extent, read_box(reader, tensor, desc.extent)), "");
    }
  });
}

TEST_P(ReaderContract, ReadsAnyBoxOfAnyTensor) {
  each([](const Reader& reader, Arbitrary& arbitrary) {
    for (int draw = 0; draw < 20; ++draw) {
      const auto tensor =
          static_cast<std::size_t>(arbitrary.between(0, std::ssize(reader.catalog().tensors) - 1));
      const TensorDesc& desc = reader.catalog().tensors[tensor];
      const Box box = arbitrary.part(desc);
      ASSERT_EQ(what_differs(desc, box, read_box(reader, tensor, box)), "");
    }
  });
}

TEST_P(ReaderContract, TellsTheTapTheTruePlaceOfEveryByte) {
  each([](const Reader& reader, Arbitrary& arbitrary) {
    for (std::size_t tensor = 0; tensor < reader.catalog().tensors.size(); ++tensor) {
      const Box box = arbitrary.part(reader.catalog().tensors[tensor]);
      std::int64_t heard = 0;
      const auto bytes = read_box(
          reader, tensor, box,
          [&](std::uint32_t file, std::int64_t offset, std::span<const std::byte> run) {
            std::vector<std::byte> there(run.size());
            reader.read_bytes(file, offset, there);
            EXPECT_TRUE(std::ranges::equal(run, there)) << "file " << file << " at " << offset;
            heard += std::ssize(run);
          });
      ASSERT_EQ(heard, std::ssize(bytes));
    }
  });
}

TEST_P(ReaderContract, ReadsEachElementOnceWhateverTheBoxes) {
  each([](const Reader& reader, Arbitrary& arbitrary) {
    const std::vector<TensorDesc>& tensors = reader.catalog().tensors;
    Tally tally(tensors, reader.extents(), /*with_blocks=*/false);
    const Tap tap = [&](auto file, auto offset, auto run) { tally.add(file, offset, run); };
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      const bool narrow = bits(tensors[tensor].dtype) % 8 != 0;
      const Box& all = tensors[tensor].extent;
      for (const Box& box : narrow ? std::vector{all} : arbitrary.panels(all)) {
        read_box(reader, tensor, box, tap);
      }
      const Tally::Sum sum = tally.sum(tensor);
      ASSERT_TRUE(sum.complete) << to_string(tensors[tensor]);
      ASSERT_EQ(sum.digest, digest_of(numbered(tensors[tensor])));
    }
    ASSERT_EQ(tally.stray_bytes(), 0);
  });
}

TEST_P(ReaderContract, RecordsTheDigestsOfItsTensorsIfAny) {
  each([](const Reader& reader, Arbitrary&) {
    const Catalog& catalog = reader.catalog();
    if (catalog.digests.empty()) return;
    ASSERT_EQ(catalog.digests.size(), catalog.tensors.size());
    for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
      ASSERT_EQ(catalog.digests[tensor], digest_of(numbered(catalog.tensors[tensor])));
    }
  });
}

TEST_P(ReaderContract, ServesManyThreads) {
  each([](const Reader& reader, Arbitrary& arbitrary) {
    std::vector<std::string> wrong(4);
    std::vector<std::thread> threads;
    const auto seed = static_cast<std::uint64_t>(arbitrary.between(0, 1'000'000));
    for (std::size_t worker = 0; worker < wrong.size(); ++worker) {
      threads.emplace_back([&, worker] {
        Arbitrary own(seed + worker);
        for (int draw = 0; draw < 10; ++draw) {
          const auto tensor =
              static_cast<std::size_t>(own.between(0, std::ssize(reader.catalog().tensors) - 1));
          const TensorDesc& desc = reader.catalog().tensors[tensor];
          const Box box = own.part(desc);
          wrong[worker] += what_differs(desc, box, read_box(reader, tensor, box));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each : wrong) ASSERT_EQ(each, "");
  });
}

}  // namespace remesh::test
