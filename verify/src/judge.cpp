#include "judge.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "copy_checks.hpp"
#include "coverage.hpp"
#include "deep.hpp"
#include "number_checks.hpp"
#include "numbers.hpp"
#include "remesh/core/burst.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/range_digest.hpp"
#include "remesh/store/sweep.hpp"
#include "remesh/store/tally.hpp"
#include "shares.hpp"
#include "tensor_numbers.hpp"
#include "tolerant_reader.hpp"

namespace remesh::detail {
namespace {

// To look for a burst takes some 20 ms; a file with many bad blocks has another kind of damage.
constexpr int most_bursts = 16;

// A block, and what it hashes to instead of what is recorded; nothing where it is not all there.
struct BadBlock {
  Block block;
  std::optional<Digest> found;
};

// Where files end that are cut short.
std::map<std::string, std::int64_t> ends_of(const std::vector<Finding>& findings) {
  std::map<std::string, std::int64_t> ends;
  for (const Finding& finding : findings) {
    if (finding.id == "RM202" && finding.bytes) ends.emplace(finding.file, finding.bytes->begin);
  }
  return ends;
}

class Judge {
 public:
  Judge(const JudgeContext& context, const TolerantReader& reader, Judged& judged)
      : context_(context),
        reader_(reader),
        map_(reader.extents()),
        judged_(judged),
        ends_(ends_of(judged.report.findings)) {}

  /// What is in a share alone: blocks that have a recorded CRC, and guards.
  void check_share(const Share& share);
  /// `numbers` hears of the same bytes, if it is not null.
  void check_all(Numbers* numbers);
  /// Whether check_all() saw copies that may hold different numbers.
  bool copies_may_differ() const noexcept { return copies_may_differ_; }

 private:
  SweepContext machine() const {
    return {context_.pool, context_.budget, context_.progress, context_.stop};
  }
  void check_blocks(const Tally& tally);
  void check_blocks(const Tally& tally, std::uint32_t number);  // of an extent
  void check_digests(const Tally& tally);
  void check_guards(std::span<const std::uint32_t> numbers);
  std::vector<BadBlock> bad_blocks(std::span<const Block> blocks);
  void report_bad(std::vector<BadBlock> bad);
  /// What a guard's bytes hash to, where that is not what is recorded.
  std::optional<Digest> wrong_digest(const Guard& guard);
  void report_guard(const Guard& guard, Digest found);
  void report_frame(std::int64_t number, const Error& why);
  Finding about_blocks(std::uint32_t extent, std::int64_t first, std::int64_t last);
  void report_blocks(std::uint32_t extent, std::int64_t first, std::int64_t last, Digest found);
  bool is_missing(const Block& block) const;
  void report_missing(const Block& block);
  // Nothing else gives its saves an id.
  bool is_native() const { return !reader_.catalog().save_id.empty(); }

  const JudgeContext& context_;
  const TolerantReader& reader_;
  const ExtentMap& map_;
  Judged& judged_;
  const std::map<std::string, std::int64_t> ends_;
  std::mutex mutex_;
  std::set<std::uint32_t> damaged_;  // tensors with a bad block
  int bursts_looked_for_ = 0;
  bool copies_may_differ_ = false;
};

// Blocks [first, last) of an extent, as coordinates of the tensor.
Box box_of_blocks(const TensorDesc& desc, const Extent& extent, std::int64_t first,
                  std::int64_t last) {
  if (!is_chunked(extent)) {
    const std::int64_t begin = first * ExtentMap::block_bytes;
    const std::int64_t end = std::min(last * ExtentMap::block_bytes, extent.length_bytes);
    return touched_box(desc, extent.box, begin, end);
  }
  return touched_box(desc, extent.box, chunk_range(desc.dtype, extent, first).begin,
                     chunk_range(desc.dtype, extent, last - 1).end);
}

// Says which bits flipped, where the CRCs tell. Repair is for what remesh wrote.
void name_burst(const Stretch& block, Digest recorded, Digest found, bool can_repair,
                Finding& finding) {
  const auto burst = locate_burst(recorded, found, block.length_bytes);
  if (!burst) return;
  finding.message += "; " + describe(*burst, block.offset_bytes);
  if (!can_repair) return;
  const char* const rest = finding.next_step.empty() ? "" : "; ";
  finding.next_step = "`remesh repair` can flip the bits back" + (rest + finding.next_step);
}

// A frame that is what was recorded, and no frame: it was made so.
void Judge::report_frame(std::int64_t number, const Error& why) {
  const Extent& extent = map_.extents()[map_.extent_of_frame(number)];
  const TensorDesc& desc = reader_.catalog().tensors[extent.tensor];
  const std::int64_t k = number - extent.first_frame;
  const Frame& frame = map_.frames(extent)[static_cast<std::size_t>(k)];
  Finding finding;
  finding.id = why.id();
  finding.file = map_.files()[extent.file].name;
  finding.bytes = ByteRange{frame.offset_bytes, frame.offset_bytes + frame.length_bytes};
  finding.tensor = desc.name;
  finding.box = box_of_blocks(desc, extent, k, k + 1);
  finding.message = fmt::format("{}: {}", to_string(desc), why.what());
  const std::lock_guard lock(mutex_);
  judged_.report.findings.push_back(std::move(finding));
  damaged_.insert(extent.tensor);
}

// What is said of bad blocks, whatever they hash to. Their tensor is damaged.
Finding Judge::about_blocks(std::uint32_t number, std::int64_t first, std::int64_t last) {
  const Extent& extent = map_.extents()[number];
  const TensorDesc& desc = reader_.catalog().tensors[extent.tensor];
  const Stretch begin = place_of(map_, {number, first});
  const Stretch end = place_of(map_, {number, last - 1});
  damaged_.insert(extent.tensor);
  Finding finding;
  finding.id = "RM207";
  finding.file = map_.files()[extent.file].name;
  finding.bytes = ByteRange{begin.offset_bytes, end.offset_bytes + end.length_bytes};
  finding.tensor = desc.name;
  finding.box = box_of_blocks(desc, extent, first, last);
  finding.expected = to_string(map_.blocks(extent)[static_cast<std::size_t>(first)]);
  finding.message =
      fmt::format("{}: bytes [{}, {}) of {}, which hold {}", to_string(desc), finding.bytes->begin,
                  finding.bytes->end, finding.file, to_string(*finding.box));
  finding.next_step = is_native()
                          ? "restore this file from a copy, or reshard from an intact checkpoint"
                          : "restore this file from a copy, or download it again";
  return finding;
}

// Bad blocks that follow each other are one finding.
void Judge::report_blocks(std::uint32_t number, std::int64_t first, std::int64_t last,
                          Digest found) {
  Finding finding = about_blocks(number, first, last);
  finding.found = to_string(found);
  finding.message +=
      fmt::format(", hash to {}, but {} is recorded; the file changed after it was written",
                  finding.found, finding.expected);
  if (last - first == 1 && bursts_looked_for_++ < most_bursts) {
    const auto recorded = map_.blocks(map_.extents()[number]);
    name_burst(place_of(map_, {number, first}), recorded[static_cast<std::size_t>(first)], found,
               is_native(), finding);
  }
  judged_.report.findings.push_back(std::move(finding));
}

bool Judge::is_missing(const Block& block) const {
  const Stretch place = place_of(map_, block);
  return reader_.was_missing(place.file, place.offset_bytes);
}

// What lies beyond a file's end is told of the file: there are no bytes that could hash to
// anything.
void Judge::report_missing(const Block& block) {
  Finding finding = about_blocks(block.extent, block.number, block.number + 1);
  const auto end = ends_.find(finding.file);
  if (end == ends_.end() || finding.bytes->begin >= end->second) return;
  finding.message += fmt::format(
      ", are not all there, since the file ends at byte {}: nothing can be compared with {}, which "
      "is recorded",
      end->second, finding.expected);
  judged_.report.findings.push_back(std::move(finding));
}

void Judge::check_blocks(const Tally& tally, std::uint32_t number) {
  const auto recorded = map_.blocks(map_.extents()[number]);
  const std::int64_t count = std::ssize(recorded);
  const auto bad = [&](std::int64_t k) {
    if (is_missing({number, k})) return false;
    return tally.block(number, k) != recorded[static_cast<std::size_t>(k)];
  };
  for (std::int64_t k = 0; k < count;) {
    const std::int64_t first = k;
    while (k < count && bad(k)) ++k;
    if (k > first) {
      report_blocks(number, first, k, tally.block(number, first));
    } else {
      if (is_missing({number, k})) report_missing({number, k});
      ++k;
    }
  }
}

void Judge::check_blocks(const Tally& tally) {
  for (std::uint32_t number = 0; number < map_.extents().size(); ++number) {
    check_blocks(tally, number);
  }
}

void Judge::check_digests(const Tally& tally) {
  const Catalog& catalog = reader_.catalog();
  for (std::uint32_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const Tally::Sum sum = tally.sum(tensor);
    judged_.digests.push_back(sum.digest);
    if (catalog.digests.empty()) {
      judged_.report.bytes_unprotected += num_bytes(catalog.tensors[tensor]);
      continue;
    }
    if (!sum.complete || damaged_.contains(tensor)) continue;  // reported as hole or block
    if (sum.digest == catalog.digests[tensor]) continue;
    Finding finding;
    finding.id = "RM207";
    finding.tensor = catalog.tensors[tensor].name;
    finding.box = catalog.tensors[tensor].extent;
    finding.found = to_string(sum.digest);
    finding.expected = to_string(catalog.digests[tensor]);
    finding.message =
        fmt::format("{}: its bytes hash to {}, but {} is recorded",
                    to_string(catalog.tensors[tensor]), finding.found, finding.expected);
    judged_.report.findings.push_back(std::move(finding));
  }
}

std::optional<Digest> Judge::wrong_digest(const Guard& guard) {
  std::int64_t bytes = 0;
  const auto read = [&](std::int64_t at, std::span<std::byte> into) {
    context_.stop.check();
    bytes += std::ssize(into);
    return reader_.try_read(guard.file, at, into);
  };
  // What is not there was told as such; how much more the file claims to have means nothing.
  const auto digest = digest_of_ranges(guard.ranges, read);
  if (!digest) return std::nullopt;
  context_.progress.advance(bytes);
  const std::lock_guard lock(mutex_);
  judged_.report.bytes_read += bytes;
  return *digest == guard.expected ? std::nullopt : digest;
}

void Judge::report_guard(const Guard& guard, Digest found) {
  Finding finding;
  finding.id = "RM207";
  finding.file = map_.files()[guard.file].name;
  if (!guard.ranges.empty()) {
    finding.bytes = ByteRange{guard.ranges.front().begin, guard.ranges.back().end};
  }
  finding.found = to_string(found);
  finding.expected = to_string(guard.expected);
  finding.message = fmt::format("{}: the {} hashes to {}, but {} is recorded", finding.file,
                                guard.what, finding.found, finding.expected);
  const bool is_one = guard.ranges.size() == 1;
  const std::int64_t bytes = is_one ? guard.ranges[0].end - guard.ranges[0].begin : 0;
  if (is_one && bytes <= ExtentMap::block_bytes && bursts_looked_for_++ < most_bursts) {
    const Stretch whole{guard.file, guard.ranges.front().begin, bytes};
    name_burst(whole, guard.expected, found, is_native(), finding);
  }
  judged_.report.findings.push_back(std::move(finding));
}

// They are told in their own order: what is said of them must not depend on who read them first.
void Judge::check_guards(std::span<const std::uint32_t> numbers) {
  std::vector<std::optional<Digest>> wrong(numbers.size());
  context_.pool.run(numbers.size(), [&](std::size_t index, int) {
    context_.stop.check();
    wrong[index] = wrong_digest(map_.guards()[numbers[index]]);
  });
  for (std::size_t index = 0; index < wrong.size(); ++index) {
    if (wrong[index]) report_guard(map_.guards()[numbers[index]], *wrong[index]);
  }
}

// One sweep for both.
Tap tap_of(Tally& tally, Numbers* numbers) {
  if (numbers == nullptr) return tally.tap();
  return {[&tally, numbers](std::uint32_t file, std::int64_t offset, Tap::Bytes bytes) {
            tally.add(file, offset, bytes);
            numbers->add(file, offset, bytes);
          },
          [&tally](std::int64_t number, const Frame& place, Digest digest) {
            tally.add_frame(number, place, digest);
          },
          [&tally, numbers](std::int64_t number, std::int64_t within, Tap::Bytes bytes) {
            tally.add_unpacked(number, within, bytes);
            numbers->add_unpacked(number, within, bytes);
          }};
}

void Judge::check_all(Numbers* numbers) {
  const std::vector<Stretch> stretches = all_extents(map_);
  std::int64_t payload = 0;
  for (const Stretch& stretch : stretches) payload += stretch.length_bytes;
  Tally tally(reader_.catalog().tensors, map_, /*with_blocks=*/true);
  const std::vector<std::uint32_t> guards = all_guards(map_);
  context_.progress.begin("checking", payload + bytes_of_guards(map_, guards));
  sweep(machine(), reader_, stretches, tap_of(tally, numbers),
        [this](std::int64_t number, const Error& why) { report_frame(number, why); });
  judged_.report.bytes_read += payload;
  check_guards(guards);
  context_.progress.end();
  check_blocks(tally);
  check_digests(tally);
  copies_may_differ_ = may_differ(reader_, tally);
  judged_.report.recomputed = true;
}

std::vector<BadBlock> Judge::bad_blocks(std::span<const Block> blocks) {
  std::vector<BadBlock> bad;
  context_.pool.run(blocks.size(), [&](std::size_t index, int) {
    context_.stop.check();
    const Block& block = blocks[index];
    const Stretch place = place_of(map_, block);
    std::vector<std::byte> buffer(static_cast<std::size_t>(place.length_bytes));
    std::optional<Digest> found;
    if (reader_.try_read(place.file, place.offset_bytes, buffer)) found = digest_of(buffer);
    context_.progress.advance(std::ssize(buffer));
    const auto recorded = map_.blocks(map_.extents()[block.extent]);
    if (recorded.empty() || found == recorded[static_cast<std::size_t>(block.number)]) return;
    const std::lock_guard lock(mutex_);
    bad.push_back({block, found});
  });
  return bad;
}

// In their order, whichever thread found them; such that follow each other are one finding.
void Judge::report_bad(std::vector<BadBlock> bad) {
  std::ranges::sort(bad, {}, &BadBlock::block);
  for (std::size_t k = 0; k < bad.size();) {
    const Block first = bad[k].block;
    const auto found = bad[k].found;
    if (!found) {
      report_missing(first);
      ++k;
      continue;
    }
    std::int64_t last = first.number;
    const auto goes_on = [&] {
      return k < bad.size() && bad[k].found && bad[k].block == Block{first.extent, last};
    };
    for (; goes_on(); ++k) ++last;
    report_blocks(first.extent, first.number, last, *found);
  }
}

void Judge::check_share(const Share& share) {
  std::int64_t bytes = 0;
  for (const Block& block : share.blocks) {
    const std::int64_t length = place_of(map_, block).length_bytes;
    bytes += length;
    const bool is_protected = !map_.blocks(map_.extents()[block.extent]).empty();
    if (!is_protected) judged_.report.bytes_unprotected += length;
  }
  context_.progress.begin("sampling", bytes + bytes_of_guards(map_, share.guards));
  std::vector<BadBlock> bad = bad_blocks(share.blocks);
  judged_.report.bytes_read += bytes;
  check_guards(share.guards);
  context_.progress.end();
  report_bad(std::move(bad));
}

std::set<std::string> each(std::string Finding::*what, const std::vector<Finding>& findings) {
  std::set<std::string> names;
  for (const Finding& finding : findings) names.insert(finding.*what);
  return names;
}

// Opens a checkpoint; what its opener refuses outright is a finding as well, unless there is
// nothing to judge.
std::unique_ptr<Reader> open_for_judging(const Opener& open, Findings& findings) {
  try {
    return open(findings);
  } catch (const Error& error) {
    if (error.id().empty() || error.code() == Errc::not_found || error.code() == Errc::io) throw;
    Finding finding;
    finding.id = error.id();
    finding.message = error.what();
    findings.add(std::move(finding));
    return nullptr;
  }
}

void look_at_bytes(const JudgeContext& context, Level level, const Wanted& want, Judged& judged) {
  CollectedFindings collected;
  const TolerantReader reader(*judged.reader, each(&Finding::file, judged.report.findings),
                              collected);
  Judge judging(context, reader, judged);
  if ((level == Level::deep && !want.subset) || want.numbers) {
    judged.numbers = std::make_unique<Numbers>(reader.catalog().tensors, reader.extents());
  }
  if (want.subset) {
    judging.check_share(part_of(reader.extents(), *want.subset));
  } else if (level >= Level::full || want.digests) {
    judging.check_all(judged.numbers.get());
  } else if (level == Level::quick) {
    judging.check_share(sample_of(reader.extents()));
  }
  std::vector<Finding>& findings = judged.report.findings;
  std::ranges::move(collected.all, std::back_inserter(findings));
  if (level >= Level::full && judging.copies_may_differ()) {
    report_unlike_copies(context, reader, findings);
  }
  if (level != Level::deep || !judged.numbers) return;
  const ReadNumbers read = read_numbers(*judged.reader, *judged.numbers, judged.digests, findings);
  judged.report.numbers = tensor_numbers(read);
  check_numbers(context, read, findings);
}

// What the system refused is no answer about the checkpoint.
void refuse_unjudged(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::error && errc_of(finding) == Errc::io) {
      throw Error(Errc::io, finding.message, finding.id);
    }
  }
}

}  // namespace

void sort_findings(std::vector<Finding>& findings) {
  const auto key = [](const Finding& finding) {
    return std::tuple(finding.file, finding.bytes ? finding.bytes->begin : -1, finding.tensor,
                      finding.id, finding.message);
  };
  std::ranges::stable_sort(findings, {}, key);
}

Judged judge(const JudgeContext& context, const Suspect& suspect, Level level, const Wanted& want) {
  Judged judged;
  judged.report.level = level;
  judged.report.subset = want.subset;
  CollectedFindings collected;
  judged.reader = open_for_judging(suspect.open, collected);
  refuse_unjudged(collected.all);
  if (judged.reader) {
    check_coverage(*judged.reader, each(&Finding::tensor, collected.all), collected);
    // Who reads all of them says where they differ.
    if (level < Level::full || want.subset) check_copies(*judged.reader, collected);
    check_placeholders(judged.reader->catalog().tensors, collected);
    if (suspect.named_step) check_named_step(*judged.reader, *suspect.named_step, collected);
    judged.report.tensors = std::ssize(judged.reader->catalog().tensors);
    judged.report.files = std::ssize(judged.reader->extents().files());
    const bool reads_all = level >= Level::full || want.digests;
    if (!reads_all && judged.reader->catalog().digests.empty()) {
      judged.report.bytes_unprotected = payload_bytes(judged.reader->catalog());
    }
  }
  judged.report.findings = std::move(collected.all);
  if (judged.reader) {
    look_at_bytes(context, level, want, judged);
    if (level == Level::deep) {
      judged.report.views =
          check_hdf5_views(context, suspect.view, *judged.reader, judged.report.findings);
    }
    if (judged.digests.empty()) judged.digests = judged.reader->catalog().digests;
  }
  sort_findings(judged.report.findings);
  return judged;
}

Judged read_all(const JudgeContext& context, std::unique_ptr<Reader> reader) {
  Judged judged;
  judged.reader = std::move(reader);
  look_at_bytes(context, Level::full, {.numbers = true}, judged);
  return judged;
}

}  // namespace remesh::detail
