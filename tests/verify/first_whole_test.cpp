#include "remesh/verify/first_whole.hpp"

#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;

Opener throwing(Errc code, const std::string& id) {
  return [code, id](Findings&) -> std::unique_ptr<Reader> { throw Error(code, "so it is", id); };
}

// Can be opened, and gives up when its bytes are read.
class GivingUp final : public Reader {
 public:
  GivingUp(std::unique_ptr<Reader> inner, Errc code) : inner_(std::move(inner)), code_(code) {}

  const Catalog& catalog() const noexcept override { return inner_->catalog(); }
  const ExtentMap& extents() const noexcept override { return inner_->extents(); }
  void read(std::size_t, const Box&, std::span<std::byte>, const Tap&) const override { fail(); }
  void read_bytes(std::uint32_t, std::int64_t, std::span<std::byte>) const override { fail(); }
  void unpack(const Extent&, std::int64_t, std::span<const std::byte>,
              std::span<std::byte>) const override {
    fail();
  }
  std::vector<std::byte> side(const SideFile&) const override { return {}; }

 private:
  [[noreturn]] void fail() const { throw Error(code_, "no more of it", "RM606"); }

  std::unique_ptr<Reader> inner_;
  Errc code_;
};

class FirstWholeTest : public ::testing::Test {
 protected:
  // Judges these, and notes which.
  FirstWhole search(const std::vector<Opener>& candidates, const IsWhole& is_whole = has_no_error,
                    Level level = Level::header) {
    asked_.clear();
    return first_whole(
        machine_.judge(), candidates.size(),
        [&](std::size_t k) {
          asked_.push_back(k);
          return Suspect(candidates[k]);
        },
        level, is_whole);
  }

  test::Machine machine_;
  std::vector<std::size_t> asked_;
  Opener whole_ = test::opener(std::filesystem::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa");
};

TEST_F(FirstWholeTest, NothingBehindTheFirstWholeOneIsAskedFor) {
  const FirstWhole found = search({throwing(Errc::not_found, "RM105"), whole_, whole_});
  EXPECT_EQ(found.candidate, 1U);
  EXPECT_THAT(asked_, ElementsAre(0, 1));
  ASSERT_EQ(found.reports.size(), 2U);
  ASSERT_EQ(found.reports[0].findings.size(), 1U);
  EXPECT_EQ(found.reports[0].findings[0].id, "RM105");
  EXPECT_EQ(found.reports[1].count(Severity::error), 0);
  EXPECT_EQ(found.reports[1].tensors, 66);
}

TEST_F(FirstWholeTest, WhatCannotBeOpenedIsNotWhole) {
  for (const Errc code :
       {Errc::not_found, Errc::corrupt, Errc::incomplete, Errc::unsupported, Errc::unsafe}) {
    const FirstWhole found = search({throwing(code, "")});
    EXPECT_EQ(found.candidate, std::nullopt);
    ASSERT_EQ(found.reports.size(), 1U);
    EXPECT_EQ(found.reports[0].count(Severity::error), 1) << to_string(code);
  }
}

TEST_F(FirstWholeTest, AQuestionWithoutAnAnswerIsNotSkipped) {
  for (const Errc code : {Errc::io, Errc::out_of_memory, Errc::stopped}) {
    EXPECT_THROW(search({throwing(code, "RM703"), whole_}), Error) << to_string(code);
    EXPECT_THAT(asked_, ElementsAre(0));
  }
}

TEST_F(FirstWholeTest, WhoeverAsksSaysWhatIsWhole) {
  const FirstWhole found =
      search({whole_, whole_, whole_}, [](std::size_t k, const Report& report) {
        EXPECT_EQ(report.tensors, 66);
        return k == 1;
      });
  EXPECT_EQ(found.candidate, 1U);
  EXPECT_EQ(found.refused, std::vector<bool>({false, false}));
}

TEST_F(FirstWholeTest, WhatIsRefusedIsNotWholeWhoeverAsks) {
  const FirstWhole found =
      search({throwing(Errc::corrupt, "RM202")}, [](std::size_t, const Report&) { return true; });
  EXPECT_EQ(found.candidate, std::nullopt);
  EXPECT_EQ(found.refused, std::vector<bool>({true}));
}

TEST_F(FirstWholeTest, WhoGivesUpWhileItIsJudgedIsNotWholeWhoeverAsks) {
  const Opener opens = [this](Findings& findings) {
    return std::make_unique<GivingUp>(whole_(findings), Errc::incomplete);
  };
  const auto any = [](std::size_t, const Report&) { return true; };
  const FirstWhole found = search({opens, whole_}, any, Level::full);
  EXPECT_EQ(found.candidate, 1U);
  EXPECT_EQ(found.refused, std::vector<bool>({true, false}));
  ASSERT_EQ(found.reports[0].findings.size(), 1U);
  EXPECT_EQ(found.reports[0].findings[0].id, "RM606");
}

TEST_F(FirstWholeTest, OfNoneNoneIsWhole) { EXPECT_EQ(search({}).candidate, std::nullopt); }

}  // namespace
}  // namespace remesh
