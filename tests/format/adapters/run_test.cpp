#include "remesh/adapters/run.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/store/forwarding_file_system.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

struct Named {
  const char* name;
  std::optional<std::int64_t> step;
};

TEST(StepInName, IsTheNumberBehindTheWord) {
  // clang-format off
  const std::vector<Named> table{
      {"iter_0012000",               12000},
      {"iter_0012000.tp4pp8",        12000},
      {"step-9",                     9},
      {"step9",                      9},
      {"STEP.9",                     9},
      {"checkpoint-500",             500},
      {"ckpt=7",                     7},
      {"global_step500",             500},
      {"global_step500_universal",   500},
      {"epoch=3-step=1000.ckpt",     1000},
      {"checkpoint_3-step_1000",     1000},   // a step goes before the number of a checkpoint
      {"step_3_of_step_8",           8},      // the last one
      {"step-3-steps",               3},
      {"iteration-44",               44},
      {"00012000",                   12000},
      {"step-0",                     0},
      {"step-999999999999999999",    999999999999999999},
      {"step-1000000000000000000",   {}},
      {"step--9",                    {}},
      {"step-",                      {}},
      {"checkpoint_last",            {}},
      {"epoch_3",                    3},
      {"epoch=3",                    3},
      {"Epoch10",                    10},
      {"epoch_3-checkpoint_7",       7},      // that of a checkpoint goes before an epoch's
      {"checkpoint-epoch5",          5},
      {"epochs-3",                   {}},
      {"my_epoch-3",                 3},
      {"checkpoint-2k",              2000},
      {"checkpoint-10K",             10000},
      {"step_3m",                    3000000},
      {"iter-2M.tp4",                2000000},
      {"step-2k_final",              2000},
      {"step-2km",                   2},
      {"step-2kg",                   2},
      {"step-2 k",                   2},
      {"step-999999999999999999k",   {}},     // beyond 63 bits
      {"llama-7b",                   {}},
      {"12a",                        {}},
      {"step_5_iter_10",             10},
      {"iter_10_step_5",             5},
      {"timestep77",                 {}},
      {"globalstep8",                8},
      {"",                           {}},
  };
  // clang-format on
  for (const Named& row : table) EXPECT_EQ(step_in_name(row.name), row.step) << row.name;
}

void put(const fs::path& path, const std::string& content = "{}") {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << content;
}

std::vector<std::string> names_of(const TrainingRun& run) {
  std::vector<std::string> names;
  for (const RunEntry& entry : run.entries) names.push_back(entry.name);
  return names;
}

class RunTest : public ::testing::Test {
 protected:
  TrainingRun read() const { return read_run(posix_file_system(), home_.path()); }

  test::TemporaryDirectory home_;
};

TEST_F(RunTest, IsOrderedByNumberAndWhatHasNoneComesFirst) {
  for (const char* name : {"step-10", "step-9", "step-100"}) fs::create_directory(home_ / name);
  put(home_ / "final" / "manifest.json");
  put(home_ / "logs" / "a");
  fs::create_directory(home_ / ".step-10.remesh-0123456789abcdef");
  fs::create_directory(home_ / ".hidden-step-3");
  put(home_ / "step-7.txt");
  const TrainingRun run = read();
  EXPECT_THAT(names_of(run), ElementsAre("final", "step-9", "step-10",
                                         ".step-10.remesh-0123456789abcdef", "step-100"));
  EXPECT_EQ(run.entries[0].step, std::nullopt);
  EXPECT_TRUE(run.entries[3].is_leftover);
  EXPECT_THAT(run.entries[3].step, Optional(10));
  EXPECT_THAT(newest_first(run), ElementsAre(4, 2, 3, 1, 0));
}

TEST_F(RunTest, AStepMayStandInTheContentOfEitherFormat) {
  put(home_ / "a" / "model.safetensors", "x");
  put(home_ / "a" / "trainer_state.json", R"({"global_step": 30, "log": [{"step": 29}]})");
  put(home_ / "b" / "manifest.json");
  put(home_ / "b" / "side" / "trainer_state.json", R"({"step": 20})");
  put(home_ / "c" / "manifest.json");
  put(home_ / "c" / "trainer_state.json", "no JSON");
  const TrainingRun run = read();
  EXPECT_THAT(run.entries,
              ElementsAre(RunEntry{"c", {}, false, true}, RunEntry{"b", 20, false, true},
                          RunEntry{"a", 30, false, true}));
}

TEST_F(RunTest, NamesThatMayBeOfOtherThingsAreSaidToBe) {
  fs::create_directory(home_ / "eval_step_5");
  fs::create_directory(home_ / "global_step5");
  const TrainingRun run = read();
  ASSERT_EQ(run.entries.size(), 2U);
  EXPECT_FALSE(run.entries[0].is_meant);
  EXPECT_TRUE(run.entries[1].is_meant);
}

// Lets nobody look into a directory below the run.
class ShyFileSystem final : public ForwardingFileSystem {
 public:
  explicit ShyFileSystem(fs::path run)
      : ForwardingFileSystem(posix_file_system()), run_(std::move(run)) {}

  std::vector<Entry> list(const Path& directory) const override {
    EXPECT_EQ(directory, run_);
    return ForwardingFileSystem::list(directory);
  }
  std::optional<Entry> look(const Path& path) const override {
    ADD_FAILURE() << "looked at " << path;
    return ForwardingFileSystem::look(path);
  }

 private:
  fs::path run_;
};

TEST_F(RunTest, DirectoriesWhoseNamesSayAStepAreNotLookedInto) {
  for (int step = 0; step < 200; ++step) {
    fs::create_directory(home_ / ("step-" + std::to_string(step)));
  }
  const ShyFileSystem files(home_.path());
  EXPECT_EQ(read_run(files, home_.path()).entries.size(), 200U);
}

TEST_F(RunTest, PointersAreReadInEveryForm) {
  for (const char* name : {"iter_0000010", "iter_0000020", "iter_0000020_universal"}) {
    fs::create_directory(home_ / name);
  }
  put(home_ / "latest", "  iter_0000010\n");
  put(home_ / "latest_checkpointed_iteration.txt", "20");
  put(home_ / "latest_universal", "iter_0000020_universal");
  fs::create_directory_symlink("iter_0000020", home_ / "LATEST");
  put(home_ / "last", std::string(5000, 'x'));
  EXPECT_THAT(
      read().pointers,
      ElementsAre(RunPointer{"LATEST", "iter_0000020", 20, false},
                  RunPointer{"last", "", {}, false},
                  RunPointer{"latest", "iter_0000010", 10, false},
                  RunPointer{"latest_checkpointed_iteration.txt", "iter_0000020", 20, false},
                  RunPointer{"latest_universal", "iter_0000020_universal", 20, true}));
}

TEST_F(RunTest, MegatronsFileNamesADirectoryThatIsNotThere) {
  put(home_ / "latest_checkpointed_iteration.txt", "12");
  EXPECT_THAT(read().pointers, ElementsAre(RunPointer{"latest_checkpointed_iteration.txt",
                                                      "iter_0000012", 12, false}));
}

TEST_F(RunTest, AReleaseHasNoNumber) {
  put(home_ / "release" / "manifest.json");
  put(home_ / "latest_checkpointed_iteration.txt", "release\n");
  const TrainingRun run = read();
  EXPECT_THAT(run.pointers,
              ElementsAre(RunPointer{"latest_checkpointed_iteration.txt", "release", {}, false}));
  EXPECT_THAT(check_pointers(run, 0), IsEmpty());
}

TEST_F(RunTest, LinksCountOnceAndLoopsDoNoHarm) {
  fs::create_directory(home_ / "step-1");
  fs::create_directory_symlink("step-1", home_ / "step-2");
  fs::create_symlink("step-3", home_ / "step-3");
  fs::create_symlink("loop", home_ / "loop");
  put(home_ / "file");
  fs::create_symlink("file", home_ / "step-4");
  EXPECT_THAT(names_of(read()), ElementsAre("step-1", "step-3"));
}

// Three entries of which the second is the newest that is whole.
struct Judged {
  const char* target;
  const char* objection;  ///< within the message; empty: none
};

TEST(CheckPointers, FindsEachThatSaysOtherwise) {
  TrainingRun run;
  run.entries = {{"odd", {}, false, true},
                 {"step-1", 1, false, true},
                 {"step-2", 2, false, true},
                 {"step-2.tp4", 2, false, true},
                 {"step-3", 3, false, true}};
  const std::vector<Judged> table{
      {"step-2", ""},
      {"step-2.tp4", ""},
      {"step-1", "but 'step-2' is whole and newer"},
      {"step-3", "which is not whole; the newest that is whole is 'step-2'"},
      {"odd", "but 'step-2' is whole, too"},
      {"step-9", "but there is no such checkpoint here"},
      {"", "holds no name of a checkpoint"}};
  for (const Judged& row : table) {
    run.pointers = {{"latest", row.target, step_in_name(row.target), false}};
    const std::vector<Finding> findings = check_pointers(run, 2);
    if (std::string(row.objection).empty()) {
      EXPECT_THAT(findings, IsEmpty()) << row.target;
      continue;
    }
    ASSERT_EQ(findings.size(), 1U) << row.target;
    EXPECT_EQ(findings[0].id, "RM107");
    EXPECT_EQ(findings[0].severity, Severity::warn);
    EXPECT_THAT(findings[0].message, ::testing::HasSubstr(row.objection));
  }
}

TEST_F(RunTest, WhatIsStillWrittenByItsNameIsNotFinished) {
  for (const char* name : {"tmp-checkpoint-20", "step-15.tmp", "iter_9.partial", "step-16"}) {
    put(home_ / name / "manifest.json");
  }
  const TrainingRun run = read();
  EXPECT_THAT(names_of(run),
              ElementsAre("iter_9.partial", "step-15.tmp", "step-16", "tmp-checkpoint-20"));
  for (const RunEntry& entry : run.entries) {
    EXPECT_EQ(entry.is_leftover, entry.name != "step-16") << entry.name;
    EXPECT_TRUE(entry.is_meant);
  }
  EXPECT_THAT(unfinished(run.entries.front()).message,
              ::testing::HasSubstr("by its name it is still being written"));
}

TEST_F(RunTest, WhatWasPutAsideByItsNameIsNotTheNewest) {
  const std::vector<const char*> aside{
      "checkpoint-11_corrupt", "checkpoint-12.Corrupted", "checkpoint-13-old",
      "checkpoint-14.deleted", "checkpoint-15.bak",       "checkpoint-16_backup",
      "trash-checkpoint-17",   "checkpoint-18=broken",    "checkpoint-19-failed"};
  for (const char* name : aside) put(home_ / name / "manifest.json");
  for (const char* name : {"checkpoint-10", "checkpoint-9-gold", "checkpoint-8-failedover"}) {
    put(home_ / name / "manifest.json");
  }
  const TrainingRun run = read();
  ASSERT_EQ(run.entries.size(), aside.size() + 3);
  for (const RunEntry& entry : run.entries) {
    EXPECT_EQ(entry.is_leftover, *entry.step > 10) << entry.name;
  }
  EXPECT_THAT(unfinished(run.entries.back()).message, ::testing::EndsWith("or was put aside"));
}

TEST_F(RunTest, EpochsAndThousandsAreOrderedByNumber) {
  for (const char* name : {"epoch-1", "epoch-2", "epoch-10", "checkpoint-2k", "checkpoint-1500"}) {
    fs::create_directory(home_ / name);
  }
  EXPECT_THAT(names_of(read()),
              ElementsAre("epoch-1", "epoch-2", "epoch-10", "checkpoint-1500", "checkpoint-2k"));
}

TEST_F(RunTest, WhatIsCalledACheckpointIsListedWithoutANumber) {
  for (const char* name : {"epoch_best", "checkpoint-last", "checkpoints", "ckpt-best", "steps"}) {
    fs::create_directory(home_ / name);
  }
  EXPECT_THAT(names_of(read()), ElementsAre("checkpoint-last", "ckpt-best", "epoch_best"));
}

TEST_F(RunTest, ATrainerThatDivergedSaysItsStepAllTheSame) {
  put(home_ / "final" / "manifest.json");
  put(home_ / "final" / "trainer_state.json",
      R"({"log_history": [{"loss": NaN, "x": -Infinity, "s": "\"NaN"}], "global_step": 40})");
  EXPECT_EQ(read().entries.front().step, 40);
}

TEST(CheckPointers, ConversionsMayLagBehindAndWithoutAWholeOneOnlyNamesCount) {
  TrainingRun run;
  run.entries = {{"step-1", 1, false, true}, {"step-2", 2, false, true}};
  run.pointers = {{"latest_universal", "step-1", 1, true}};
  EXPECT_THAT(check_pointers(run, 1), IsEmpty());
  run.pointers = {{"latest", "step-1", 1, false}};
  EXPECT_THAT(check_pointers(run, std::nullopt), IsEmpty());
}

}  // namespace
}  // namespace remesh
