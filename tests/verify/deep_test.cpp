#include "deep.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const fs::path fixture = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";

class Deep : public ::testing::Test {
 protected:
  Deep() { test::run_job(machine_, fixture, ck_, {.mesh = "tp=2,pp=2"}); }

  // Each of the files is honest, so that libhdf5 may read it here.
  Hdf5Viewer honest() const {
    return [this](const std::string& file, const TextSink& sink) {
      write_hdf5_view(ck_ / file, sink);
    };
  }
  Report judge(const Hdf5Viewer& viewer, const fs::path& path) {
    return verify(machine_.judge(), {test::opener(path), viewer}, Level::deep);
  }
  Report judge(const Hdf5Viewer& viewer) { return judge(viewer, ck_); }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
  const fs::path ck_ = directory_ / "ck";
};

TEST_F(Deep, IsFullAndEveryShardsView) {
  const Report deep = judge(honest());
  const Report full = verify(machine_.judge(), test::opener(ck_), Level::full);
  EXPECT_THAT(deep.findings, IsEmpty());
  EXPECT_EQ(deep.views, 4);
  EXPECT_EQ(deep.bytes_read, full.bytes_read);
  EXPECT_TRUE(deep.recomputed);
  EXPECT_EQ(full.views, 0);
}

TEST_F(Deep, SeesFramesAsTheIndexSays) {
  const fs::path packed = directory_ / "packed";
  test::run_job(
      machine_, fixture, packed,
      {.mesh = "tp=2,pp=2", .writer = {.compress_level = 1, .job_id = "0123456789abcdef"}});
  const Hdf5Viewer viewer = [&packed](const std::string& file, const TextSink& sink) {
    write_hdf5_view(packed / file, sink);
  };
  const Report report = judge(viewer, packed);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.views, 4);
  // The view of what is not packed is another one.
  EXPECT_THAT(judge(honest(), packed).findings,
              Contains(Field(&Finding::message, HasSubstr("its index says chunked"))));
}

TEST_F(Deep, IsFullForAFormatWithoutHdf5) {
  const Report report = judge(
      [](const std::string&, const TextSink&) { throw Error(Errc::internal, "called"); }, fixture);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.views, 0);
}

TEST_F(Deep, BothSidesAreLookedAt) {
  const Report report = verify_against(machine_.judge(), {test::opener(ck_), honest()},
                                       {test::opener(ck_), honest()}, Level::deep);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_EQ(report.views, 8);
  EXPECT_EQ(report.equal, 66);
}

TEST_F(Deep, AViewerThatFailsIsAFindingForEachFile) {
  const Report report = judge([](const std::string&, const TextSink& sink) {
    sink("hdf5-view 1\n");
    throw Error(Errc::corrupt, "it died of signal 11", "RM211");
  });
  EXPECT_THAT(report.findings, SizeIs(4));
  EXPECT_THAT(report.findings, Each(AllOf(Field(&Finding::id, "RM211"),
                                          Field(&Finding::message, HasSubstr("signal 11")))));
}

TEST_F(Deep, AViewThatIsNoneIsAFindingForEachFile) {
  for (const std::string text : {"", "\n", "hdf5-view 2\n", "\xff\xfe", "hdf5-view 1\nend\n"}) {
    const Report report = judge([&text](const std::string&, const TextSink& sink) { sink(text); });
    EXPECT_THAT(report.findings, SizeIs(4)) << text;
    EXPECT_THAT(report.findings, Each(Field(&Finding::id, "RM211"))) << text;
  }
}

TEST_F(Deep, AnEndlessViewIsNotHeardToItsEnd) {
  const Report report = judge([](const std::string&, const TextSink& sink) {
    const std::string much(std::size_t{1} << 16, 'x');
    while (true) sink(much);
  });
  EXPECT_THAT(report.findings, SizeIs(4));
}

TEST_F(Deep, TheViewOfAnotherFileIsNotBelieved) {
  const Report report = judge([this](const std::string&, const TextSink& sink) {
    write_hdf5_view(ck_ / "shard-00000-of-00004.h5", sink);
  });
  EXPECT_THAT(report.findings, Not(IsEmpty()));
  EXPECT_THAT(report.findings, Each(Field(&Finding::id, "RM211")));
  EXPECT_THAT(report.findings, Each(Field(&Finding::file, Not("shard-00000-of-00004.h5"))));
}

TEST_F(Deep, AStopAndARefusalOfTheSystemAreNoFindings) {
  for (const Errc code : {Errc::stopped, Errc::io, Errc::out_of_memory}) {
    EXPECT_THROW(
        judge([code](const std::string&, const TextSink&) { throw Error(code, "no answer"); }),
        Error)
        << to_string(code);
  }
}

}  // namespace
}  // namespace remesh
