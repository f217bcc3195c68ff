#include "remesh/models/mesh_file.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::HasSubstr;

TEST(MeshFile, SaysWhatTheCommandLineWould) {
  const MeshFile file = parse_mesh_file(R"(
mesh = "same,pp=4"
stages = [7, 8, 8, 7]
zero = 1
shard_rule = "flat"
[line]
unit = "layer"
reversed = true
align = 64
bucket = 40000000
pad = 128
pad_each = 2
)",
                                        "m.toml");
  EXPECT_EQ(file.mesh, "same,pp=4");
  ASSERT_TRUE(file.stages);
  EXPECT_EQ(file.stages->text(), "7,8,8,7");
  ASSERT_TRUE(file.sharding);
  EXPECT_EQ(file.sharding->zero, 1);
  EXPECT_EQ(file.sharding->rule, ShardRule::flat);
  const Flat& line = file.sharding->line.value();
  EXPECT_EQ(line.unit, FlatUnit::layer);
  EXPECT_TRUE(line.reversed);
  EXPECT_EQ(line.align, 64);
  EXPECT_EQ(line.bucket, 40'000'000);
  EXPECT_EQ(line.pad, 128);
  EXPECT_EQ(line.pad_each, 2);
}

TEST(MeshFile, MayLeaveStagesOpen) {
  EXPECT_EQ(parse_mesh_file("mesh = \"pp=4\"\nstages = [7, \"*\", 7]", "m.toml").stages->text(),
            "7,*,7");
}

TEST(MeshFile, MayHaveTheMeshAsATable) {
  const MeshFile file =
      parse_mesh_file("[mesh]\ntp = 2\npp = 3\norder = \"pp-tp-cp-dp\"\n", "m.toml");
  EXPECT_EQ(file.mesh, "order=pp-tp-cp-dp,pp=3,tp=2");
  EXPECT_FALSE(file.stages);
  EXPECT_FALSE(file.sharding);
}

TEST(MeshFile, SaysWhereItIsWrong) {
  struct Row {
    const char* toml;
    const char* message;
  };
  // clang-format off
  const Row rows[] = {
      {"mesh = ", "cannot read mesh file m.toml: line 1, column"},
      {"", "a mesh file has no 'mesh'"},
      {"mesh = \"tp=2\"\nstage = \"even\"", "line 2, column 1: unknown key 'stage' in a mesh file; did you mean 'stages'?"},
      {"mesh = \"tq=2\"", "line 1, column 8: cannot read mesh 'tq=2': unknown axis 'tq'; did you mean 'tp'?"},
      {"[mesh]\ntp = 2\ndpp = 2", "line 3, column 1: unknown key 'dpp' in [mesh]; did you mean 'dp'?"},
      {"[mesh]\ntp = 1.5", "line 2, column 6: 'tp' is a fraction, but a whole number is expected"},
      {"[mesh]", "[mesh] has no axis"},
      {"mesh = \"tp=2\"\nstages = \"evn\"", "line 2, column 10: cannot read stages 'evn'"},
      {"mesh = \"tp=2\"\nstages = [1, \"a\"]", "line 2, column 14: 'stages' is a text"},
      {"mesh = \"tp=2\"\nzero = 4", "line 2, column 8: 'zero' is 4, but 0, 1, 2 or 3 is expected"},
      {"mesh = \"tp=2\"\nshard_rule = \"flat\"", "there is 'shard_rule', but no 'zero' that it is about"},
      {"mesh = \"tp=2\"\nzero = 0\n[line]\nalign = 2", "there is 'line', but 'zero' is 0: nothing is divided"},
      {"mesh = \"tp=2\"\nzero = 1\nshard_rule = \"flt\"", "line 3, column 14: 'shard_rule' is 'flt', but chunk or flat is expected"},
      {"mesh = \"tp=2\"\nzero = 1\nshard_rule = \"chunk\"\n[line]\nalign = 2", "there is a 'line', but 'shard_rule' is chunk"},
      {"mesh = \"tp=2\"\nzero = 1\n[line]\nalign = 0", "line 4, column 9: 'align' is 0, but a number from 1 to"},
      {"mesh = \"tp=2\"\nzero = 1\n[line]\nunit = \"row\"", "'unit' is 'row', but all, layer or tensor is expected"},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.toml);
    try {
      (void)parse_mesh_file(row.toml, "m.toml");
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

}  // namespace
}  // namespace remesh
