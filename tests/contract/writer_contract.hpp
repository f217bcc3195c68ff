#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/store/tally.hpp"
#include "remesh/store/writer.hpp"
#include "write_numbered.hpp"

/// @file
/// What every Writer must do. An implementation is tested by one line:
///
///   INSTANTIATE_TEST_SUITE_P(Native, WriterContract, ::testing::Values(&native_store));

namespace remesh::test {

/// A place for one checkpoint of a format.
struct StoreCase {
  /// Draws what the format can hold.
  std::function<Catalog(Arbitrary&)> draw;
  /// Starts to write it. Called once.
  std::function<std::unique_ptr<Writer>(const Catalog&)> create;
  /// Opens what was published; null if nothing was.
  std::function<std::unique_ptr<Reader>()> open;
};

using MakeStore = StoreCase (*)();

class WriterContract : public ::testing::TestWithParam<MakeStore> {
 protected:
  static constexpr unsigned num_seeds = 30;

  /// Calls `check` with several stores and a new writer of each.
  template <typename Check>
  void each(const Check& check) {
    for (unsigned seed = 0; seed < num_seeds && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Arbitrary arbitrary(seed);
      const StoreCase store = GetParam()();
      std::unique_ptr<Writer> writer = store.create(store.draw(arbitrary));
      check(store, writer, arbitrary);
    }
  }
};

inline void expect_numbered(const Reader& reader) {
  for (std::size_t tensor = 0; tensor < reader.catalog().tensors.size(); ++tensor) {
    const TensorDesc& desc = reader.catalog().tensors[tensor];
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc)));
    reader.read(tensor, desc.extent, bytes, {});
    EXPECT_EQ(what_differs(desc, desc.extent, bytes), "");
  }
}

// Every stored copy, not only the one that readers take.
inline void expect_numbered_extents(const Reader& reader) {
  for (const Extent& extent : reader.extents().extents()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(extent.length_bytes));
    reader.read_bytes(extent.file, extent.offset_bytes, bytes);
    EXPECT_EQ(what_differs(reader.catalog().tensors[extent.tensor], extent.box, bytes), "")
        << "copy " << extent.copy;
  }
}

TEST_P(WriterContract, WhatIsWrittenIsThereWhenItIsReopened) {
  each([](const StoreCase&, std::unique_ptr<Writer>& writer, Arbitrary& arbitrary) {
    write_and_seal_numbered(*writer, arbitrary);
    const std::unique_ptr<Reader> reader = writer->reopen();
    ASSERT_EQ(reader->catalog().tensors, writer->catalog().tensors);
    expect_numbered(*reader);
    expect_numbered_extents(*reader);
  });
}

TEST_P(WriterContract, WhatIsPublishedIsThereWhenItIsOpened) {
  each([](const StoreCase& store, std::unique_ptr<Writer>& writer, Arbitrary& arbitrary) {
    write_and_seal_numbered(*writer, arbitrary);
    const std::vector<TensorDesc> tensors = writer->catalog().tensors;
    writer->publish();
    writer.reset();
    const std::unique_ptr<Reader> reader = store.open();
    ASSERT_NE(reader, nullptr);
    ASSERT_TRUE(std::ranges::is_permutation(reader->catalog().tensors, tensors));
    expect_numbered(*reader);
  });
}

TEST_P(WriterContract, SaysFromTheBeginningWhereEverythingLies) {
  each([](const StoreCase&, std::unique_ptr<Writer>& writer, Arbitrary& arbitrary) {
    const ExtentMap promised = writer->extents();
    ASSERT_TRUE(promised.same_places(writer->extents_on_medium())) << "before the payload";
    write_numbered(*writer, arbitrary, {});
    ASSERT_TRUE(promised.same_places(writer->extents_on_medium())) << "after the payload";
    const Seals seals = seals_of(writer->catalog(), promised);
    writer->seal(seals.digests, seals.block_crcs);
    ASSERT_TRUE(promised.same_places(writer->reopen()->extents())) << "sealed";
  });
}

TEST_P(WriterContract, TellsTheTapTheTruePlaceOfEveryByteOfEveryCopy) {
  each([](const StoreCase&, std::unique_ptr<Writer>& writer, Arbitrary& arbitrary) {
    const std::vector<TensorDesc>& tensors = writer->catalog().tensors;
    const ExtentMap medium = writer->extents_on_medium();
    Tally tally(tensors, medium, /*with_blocks=*/false);
    write_numbered(*writer, arbitrary,
                   [&](auto file, auto offset, auto run) { tally.add(file, offset, run); });
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      for (std::uint32_t copy = 0; copy < medium.copies(); ++copy) {
        const Tally::Sum sum = tally.sum(tensor, copy);
        if (copy > 0 && sum.bytes < num_bytes(tensors[tensor]))
          continue;  // not every box has as many
        ASSERT_TRUE(sum.complete) << to_string(tensors[tensor]) << ", copy " << copy;
        ASSERT_EQ(sum.digest, digest_of(numbered(tensors[tensor])));
      }
    }
    ASSERT_EQ(tally.stray_bytes(), 0);
  });
}

TEST_P(WriterContract, RecordsTheDigestsThatItIsSealedWithIfAny) {
  each([](const StoreCase&, std::unique_ptr<Writer>& writer, Arbitrary& arbitrary) {
    write_and_seal_numbered(*writer, arbitrary);
    const std::unique_ptr<Reader> reader = writer->reopen();
    const Seals seals = seals_of(reader->catalog(), reader->extents());
    if (!reader->catalog().digests.empty()) {
      ASSERT_EQ(reader->catalog().digests, seals.digests);
    }
    std::size_t first = 0;
    for (const Extent& extent : reader->extents().extents()) {
      const auto recorded = reader->extents().blocks(extent);
      const auto count = static_cast<std::size_t>(num_blocks(extent));
      const auto expected = std::span(seals.block_crcs).subspan(first, count);
      if (extent.first_block >= 0) {
        ASSERT_TRUE(std::ranges::equal(recorded, expected));
      }
      first += count;
    }
  });
}

TEST_P(WriterContract, TakesPanelsFromManyThreads) {
  each([](const StoreCase&, std::unique_ptr<Writer>& writer, Arbitrary&) {
    const auto& all = writer->extents().extents();
    std::vector<std::thread> threads;
    for (std::size_t worker = 0; worker < 3; ++worker) {
      threads.emplace_back([&, worker] {
        for (std::size_t at = worker; at < all.size(); at += 3) {
          const TensorDesc& desc = writer->catalog().tensors[all[at].tensor];
          if (all[at].copy != 0) continue;
          writer->write(all[at].tensor, all[at].box, numbered(desc, all[at].box), {});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Seals seals = seals_of(writer->catalog(), writer->extents());
    writer->seal(seals.digests, seals.block_crcs);
    expect_numbered_extents(*writer->reopen());
  });
}

}  // namespace remesh::test
