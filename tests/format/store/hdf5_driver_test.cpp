#include "hdf5_driver.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "seeds.hpp"
#include "temporary_directory.hpp"

namespace remesh::h5 {
namespace {

using test::Arbitrary;
using test::TemporaryDirectory;

// Groups, attributes and datasets of any size, drawn from a seed: the same calls of libhdf5 for
// every access list.
class Scribbler {
 public:
  explicit Scribbler(std::uint64_t seed) : arbitrary_(seed) {
    set_version_bounds(access_, H5F_LIBVER_V110, H5F_LIBVER_V110);
    set_alignment(access_, hsize_t{64} << 10, 4096);
    set_meta_block_size(access_, static_cast<hsize_t>(arbitrary_.between(1, 1 << 16)));
    limit_metadata_cache(access_, std::size_t{2} << 10);  // so that libhdf5 reads back
    lock_no_file(access_);
    set_userblock(creation_, 4096);
    for (const Properties* list : {&creation_, &group_, &contiguous_}) track_no_times(*list);
    set_contiguous(contiguous_);
    allocate_early(contiguous_);
    fill_never(contiguous_);
  }

  const Properties& access() const { return access_; }

  void scribble(const std::filesystem::path& path) {
    File file = create_file(path.c_str(), creation_, access_);
    const Index groups = arbitrary_.between(0, 40);
    for (Index k = 0; k < groups; ++k) {
      const Group group = create_group(file.id(), ("group" + std::to_string(k)).c_str(), group_);
      const Index datasets = arbitrary_.between(0, 4);
      for (Index each = 0; each < datasets; ++each) add_dataset(group, std::to_string(each));
    }
    for (Index k = 0; k < groups; ++k) {  // of which libhdf5 has forgotten some
      const Group group(check_id(
          H5Gopen2(file.id(), ("group" + std::to_string(k)).c_str(), H5P_DEFAULT), "H5Gopen2"));
    }
    file.close();
  }

 private:
  void add_dataset(const Group& group, const std::string& name) {
    const std::array dims{
        static_cast<hsize_t>(arbitrary_.between(0, arbitrary_.chance(6) ? 200000 : 900))};
    const Dataset dataset =
        create_dataset(group.id(), name.c_str(), H5T_STD_U8LE, create_space(dims), contiguous_);
    if (arbitrary_.chance(50)) {
      const std::array<hsize_t, 1> count{static_cast<hsize_t>(arbitrary_.between(1, 90))};
      const std::vector<std::int64_t> values(count[0], arbitrary_.between(0, 1 << 30));
      write_attribute(create_attribute(dataset.id(), "numbers", H5T_STD_I64LE, create_space(count)),
                      H5T_NATIVE_INT64, values.data());
    }
    if (dims[0] > 0 && arbitrary_.chance(30)) {
      const auto bytes = arbitrary_.bytes(static_cast<std::int64_t>(dims[0]));
      check(H5Dwrite(dataset.id(), H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
            "H5Dwrite");
    }
  }

  Arbitrary arbitrary_;
  Properties access_ = create_properties(H5P_FILE_ACCESS);
  Properties creation_ = create_properties(H5P_FILE_CREATE);
  Properties group_ = create_properties(H5P_GROUP_CREATE);
  Properties contiguous_ = create_properties(H5P_DATASET_CREATE);
};

ssize_t num_open() { return H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL); }

// A medium in memory. It may fail to read, or refuse one of the calls that change it.
class Memory final : public Medium {
 public:
  void fail_at(std::int64_t number) { fail_at_ = number; }
  void fail_to_read() { fails_to_read_ = true; }
  std::int64_t calls() const { return calls_; }
  std::int64_t reads() const { return reads_; }

  void read(std::int64_t offset, std::span<std::byte> into) override {
    ++reads_;
    if (fails_to_read_) throw Error(Errc::io, "cannot read this", "RM703");
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
  }
  void write(Content /*content*/, std::int64_t offset, std::span<const std::byte> from) override {
    count();
    const auto end = static_cast<std::size_t>(offset) + from.size();
    if (end > bytes_.size()) bytes_.resize(end);
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
  }
  void grow(std::int64_t size_bytes) override {
    count();
    bytes_.resize(static_cast<std::size_t>(size_bytes));
  }

  std::string text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  void count() {
    if (calls_++ == fail_at_) throw Error(Errc::io, "no room for this", "RM702");
  }

  std::vector<std::byte> bytes_;
  std::int64_t calls_ = 0;
  std::int64_t reads_ = 0;
  std::int64_t fail_at_ = -1;
  bool fails_to_read_ = false;
};

std::string scribbled(std::uint64_t seed, Memory& memory) {
  Driver driver(memory);
  Scribbler scribbler(seed);
  driver.use_in(scribbler.access());
  scribbler.scribble("nowhere");
  driver.rethrow_failure();
  return memory.text();
}

TEST(Hdf5Driver, TheBytesAreThoseOfTheDriverForFilesOfLibhdf5) {
  be_quiet();
  TemporaryDirectory directory;
  for (unsigned seed = 0; seed < test::num_seeds(30); ++seed) {
    SCOPED_TRACE(seed);
    const auto name = directory / std::to_string(seed);
    Scribbler plain(seed);
    check(H5Pset_fapl_sec2(plain.access().id()), "H5Pset_fapl_sec2");
    plain.scribble(name);

    const auto through = directory / (std::to_string(seed) + ".through");
    {
      const auto file = posix_file_system().create(through);
      FileMedium medium(*file);
      Driver driver(medium);
      Scribbler ours(seed);
      driver.use_in(ours.access());
      ours.scribble("a name that means nothing");
      driver.rethrow_failure();
    }
    ASSERT_TRUE(test::content_of(name) == test::content_of(through));
    Memory memory;
    ASSERT_TRUE(test::content_of(name) == scribbled(seed, memory));
  }
}

TEST(Hdf5Driver, HasTheFeaturesOfThatDriverThatDecideWhereThingsLie) {
  unsigned long theirs = 0;
  check(H5FDdriver_query(H5FD_SEC2, &theirs), "H5FDdriver_query");
  Memory memory;
  Driver driver(memory);
  const Properties access = create_properties(H5P_FILE_ACCESS);
  driver.use_in(access);
  unsigned long ours = 0;
  check(H5FDdriver_query(H5Pget_driver(access.id()), &ours), "H5FDdriver_query");
  constexpr unsigned long others =
      H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  EXPECT_EQ(theirs & ~others, ours);
}

std::string failure_of(const Driver& driver) {
  try {
    driver.rethrow_failure();
  } catch (const Error& error) {
    return error.id() + " " + error.what();
  }
  return {};
}

// libhdf5 goes on as if nothing had failed, reads back what the medium does not have, and lets go.
TEST(Hdf5Driver, AFailureComesBackWholeAndLibhdf5NoticesNothing) {
  be_quiet();
  constexpr std::uint64_t seed = 2;
  Memory whole;
  scribbled(seed, whole);
  ASSERT_GT(whole.calls(), 20);
  ASSERT_GT(whole.reads(), 20);
  for (std::int64_t call = 0; call < whole.calls(); ++call) {
    SCOPED_TRACE(call);
    Memory memory;
    memory.fail_at(call);
    Driver driver(memory);
    Scribbler scribbler(seed);
    driver.use_in(scribbler.access());
    EXPECT_NO_THROW(scribbler.scribble("nowhere"));
    ASSERT_EQ(num_open(), 0);
    EXPECT_EQ(failure_of(driver), "RM702 no room for this");
    EXPECT_EQ(memory.calls(), call + 1);
  }
}

TEST(Hdf5Driver, ItIsToldOfAFailedRead) {
  Memory memory;
  Driver driver(memory);
  ASSERT_TRUE(driver.write(Content::metadata, 0, test::bytes_of("abc")));
  memory.fail_to_read();
  std::vector<std::byte> read(2);
  EXPECT_FALSE(driver.read(0, read));
  EXPECT_EQ(failure_of(driver), "RM703 cannot read this");
}

// libhdf5 may read back what the medium did not take.
TEST(Hdf5Driver, AfterAFailureReadsGiveWhatWasWritten) {
  Memory memory;
  Driver driver(memory);
  const auto old_bytes = test::bytes_of("abcdefgh");
  ASSERT_TRUE(driver.write(Content::metadata, 0, old_bytes));
  memory.fail_at(1);
  ASSERT_TRUE(driver.write(Content::metadata, 2, test::bytes_of("XY")));
  ASSERT_TRUE(driver.write(Content::metadata, 6, test::bytes_of("1234")));
  ASSERT_TRUE(driver.write(Content::metadata, 7, test::bytes_of("!")));
  std::vector<std::byte> read(10);
  ASSERT_TRUE(driver.read(1, read));
  EXPECT_EQ(read, test::bytes_of(std::string_view("bXYef1!34\0", 10)));
  EXPECT_EQ(memory.text(), "abcdefgh");
  EXPECT_THROW(driver.rethrow_failure(), Error);
}

template <typename Step>
std::string bug(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.code() == Errc::internal ? error.what() : "another error";
  }
  return {};
}

TEST(PlannedMedium, RefusesWhatWasNotPlanned) {
  using ::testing::HasSubstr;
  TemporaryDirectory directory;
  const auto file = posix_file_system().create(directory / "f");
  PlannedMedium medium(*file, {100, 200});
  const auto bytes = test::bytes_of("0123456789");
  EXPECT_EQ(medium.place(Content::metadata, 0, 60), 100);
  EXPECT_EQ(medium.place(Content::metadata, 0, 30), 160);
  EXPECT_THAT(bug([&] { medium.place(Content::metadata, 0, 11); }), HasSubstr("end at 200"));
  EXPECT_THAT(bug([&] { medium.write(Content::metadata, 185, bytes); }), HasSubstr("[185, 195)"));
  EXPECT_THAT(bug([&] { medium.place(Content::raw, 0, 10); }), HasSubstr("were planned"));

  medium.expect({300, 310});
  EXPECT_THAT(bug([&] { medium.place(Content::raw, 0, 11); }),
              HasSubstr("asks for bytes [300, 311) for content, but [300, 310) were planned"));
  medium.expect({300, 310});
  EXPECT_EQ(medium.place(Content::raw, 0, 10), 300);
  EXPECT_EQ(bug([&] { medium.write(Content::raw, 300, bytes); }), "");
  EXPECT_THAT(bug([&] { medium.write(Content::raw, 301, bytes); }), HasSubstr("[301, 311)"));
  EXPECT_THAT(bug([&] { medium.place(Content::raw, 0, 10); }), HasSubstr("were planned"));
  EXPECT_EQ(file->size_bytes(), 0);
}

}  // namespace
}  // namespace remesh::h5
