#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "hdf5_view_expected.hpp"
#include "hdf5_view_text.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/hdf5_view.hpp"
#include "shard_hdf5.hpp"
#include "shard_reader.hpp"

namespace remesh {

using native::ViewObject;

namespace {

constexpr std::size_t most_line_bytes = std::size_t{256} << 10;
constexpr std::size_t most_shown = 200;
constexpr std::string_view next_step =
    "do not open this file with other programs; write the checkpoint again with remesh from a "
    "source that you trust";

constexpr std::array kinds{"group", "dataset",   "again",     "committed-type",
                           "other", "soft-link", "user-link", "external-link"};

std::string shortened(std::string_view text) {
  if (text.size() <= most_shown) return std::string(text);
  return fmt::format("{}... ({} bytes)", text.substr(0, most_shown), text.size());
}

[[noreturn]] void refuse(const std::string& file, std::string_view why) {
  throw Error(Errc::corrupt, fmt::format("cannot compare '{}' with its HDF5 view: {}", file, why),
              "RM211");
}

std::vector<std::uint32_t> extents_of_file(const ExtentMap& map, std::uint32_t file) {
  const std::span<const Extent> all = map.extents();
  const auto first = std::ranges::lower_bound(all, file, {}, &Extent::file);
  const auto last = std::ranges::upper_bound(all, file, {}, &Extent::file);
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(last - first));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first - all.begin()));
  std::ranges::sort(numbers, {}, [&map](std::uint32_t number) {
    const Extent& extent = map.extents()[number];
    return std::tie(extent.tensor, extent.box, extent.copy);
  });
  return numbers;
}

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text != std::to_string(number)) return std::nullopt;
  return number;
}

}  // namespace

struct Hdf5ViewCheck::State {
  State(const Reader& its_reader, std::uint32_t its_file, Findings& its_findings);

  void take_line(std::string_view line);
  void take_property(std::string_view line);
  bool take_frame(std::string_view key, std::string_view value);
  void begin_object(std::string_view line);
  void end_object();
  bool refused(const ViewObject& found, const Extent* extent);
  bool has_other_filter(const ViewObject& found, const Extent* extent);
  void compare(const ViewObject& found);
  void compare_properties(const ViewObject& found, const ViewObject& expected,
                          std::optional<std::uint32_t> extent);
  void compare_frames(const ViewObject& found, std::uint32_t extent);
  void report_missing();
  void report(std::string id, std::string found, std::string expected, std::string message,
              std::optional<std::uint32_t> extent = {}, Severity severity = Severity::error);
  std::optional<std::size_t> place_of(std::string_view path) const;
  bool is_group(std::string_view path) const;

  const Reader& reader;
  const ExtentMap& map;
  Findings& findings;
  std::string name;
  ByteRange index;

  // Expected: the datasets of each tensor are `extents` from `first` on, in their order.
  std::vector<std::uint32_t> extents;
  struct Group {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  std::unordered_map<std::string, Group> groups;  // by the name in a view
  std::vector<bool> seen;
  bool index_seen = false;

  // Of the object that is being read: frames are compared as they come, since they may be many.
  struct Frames {
    std::optional<std::uint32_t> extent;  // what the object is of, if it is a piece's
    std::size_t seen = 0;
    std::size_t different = 0;
    std::size_t first_different = 0;
    std::string found;  // of the first that is different
  };
  Frames frames;

  // The text so far.
  std::int64_t bytes_left = 0;
  std::string pending;
  std::optional<ViewObject> object;
  bool begun = false;
  bool measured = false;
  bool ended = false;
};

Hdf5ViewCheck::State::State(const Reader& its_reader, std::uint32_t its_file,
                            Findings& its_findings)
    : reader(its_reader),
      map(its_reader.extents()),
      findings(its_findings),
      name(map.files()[its_file].name),
      extents(extents_of_file(map, its_file)),
      seen(extents.size()) {
  std::vector<std::byte> block(static_cast<std::size_t>(native::header_bytes));
  reader.read_bytes(its_file, 0, block);
  index = native::parse_header(block).index;
  bytes_left = native::most_view_bytes;
  for (std::size_t at = 0; at < extents.size(); ++at) {
    const Extent& extent = map.extents()[extents[at]];
    const TensorDesc& desc = reader.catalog().tensors[extent.tensor];
    Group& group = groups[native::view_name(native::percent_encode(desc.name))];
    if (group.count == 0) group.first = at;
    ++group.count;
    bytes_left += native::most_view_bytes_of(desc, map.frames(extent).size());
  }
}

// The position in `extents` of the dataset at a path.
std::optional<std::size_t> Hdf5ViewCheck::State::place_of(std::string_view path) const {
  constexpr std::string_view prefix = "/tensors/";
  const std::size_t slash = path.rfind('/');
  if (!path.starts_with(prefix) || slash < prefix.size()) return std::nullopt;
  const auto group = groups.find(std::string(path.substr(prefix.size(), slash - prefix.size())));
  const auto number = number_in(path.substr(slash + 1));
  if (group == groups.end() || !number || *number >= group->second.count) return std::nullopt;
  return group->second.first + *number;
}

bool Hdf5ViewCheck::State::is_group(std::string_view path) const {
  constexpr std::string_view prefix = "/tensors/";
  if (path == "/" || path == "/remesh" || path == "/tensors") return true;
  return path.starts_with(prefix) && groups.contains(std::string(path.substr(prefix.size())));
}

void Hdf5ViewCheck::State::report(std::string id, std::string found, std::string expected,
                                  std::string message, std::optional<std::uint32_t> extent,
                                  Severity severity) {
  Finding finding;
  finding.severity = severity;
  finding.id = std::move(id);
  finding.file = name;
  finding.found = std::move(found);
  finding.expected = std::move(expected);
  finding.message = std::move(message);
  if (severity == Severity::error) finding.next_step = next_step;
  if (extent) {
    const Extent& its = map.extents()[*extent];
    finding.tensor = reader.catalog().tensors[its.tensor].name;
    finding.box = its.box;
    finding.bytes = map.place(its);
  }
  findings.add(std::move(finding));
}

void Hdf5ViewCheck::State::take_line(std::string_view line) {
  if (ended) refuse(name, "it goes on behind its end");
  if (!begun) {
    if (line != native::view_first_line) refuse(name, "it does not begin as a view does");
    begun = true;
  } else if (line == native::view_last_line) {
    end_object();
    if (!measured) refuse(name, "it has no user block");
    ended = true;
  } else if (line.starts_with("failed ")) {
    end_object();
    refuse(name, fmt::format("libhdf5 says: {}", shortened(line.substr(7))));
  } else if (line.starts_with("userblock ") && !measured) {
    measured = true;
    const std::string expected = std::to_string(native::header_bytes);
    const std::string found = shortened(line.substr(10));
    if (found == expected) return;
    report("RM211", found, expected,
           fmt::format("'{}': libhdf5 sees a user block of {} bytes, but the header has {}", name,
                       found, expected));
  } else if (line.starts_with(' ')) {
    take_property(line.substr(1));
  } else {
    end_object();
    begin_object(line);
  }
}

void Hdf5ViewCheck::State::take_property(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (!object || space == std::string_view::npos) {
    refuse(name, fmt::format("a line of it is '{}'", shortened(line)));
  }
  if (take_frame(line.substr(0, space), line.substr(space + 1))) return;
  const auto [at, added] =
      object->properties.emplace(line.substr(0, space), line.substr(space + 1));
  if (!added) refuse(name, fmt::format("'{}' is there twice", shortened(at->first)));
}

// Whether it is the next frame that this object must have; as it must be, or different.
bool Hdf5ViewCheck::State::take_frame(std::string_view key, std::string_view value) {
  constexpr std::string_view prefix = "frame.";
  if (!frames.extent || !key.starts_with(prefix)) return false;
  const Extent& extent = map.extents()[*frames.extent];
  const std::span<const Frame> expected = map.frames(extent);
  const std::size_t k = frames.seen;
  if (number_in(key.substr(prefix.size())) != k || k >= expected.size()) return false;
  ++frames.seen;
  if (value == native::expected_frame(extent, expected[k], static_cast<std::int64_t>(k))) {
    return true;
  }
  if (frames.different++ == 0) {
    frames.first_different = k;
    frames.found = shortened(value);
  }
  return true;
}

void Hdf5ViewCheck::State::begin_object(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view kind = line.substr(0, space);
  if (space == std::string_view::npos || !line.substr(space + 1).starts_with('/') ||
      std::ranges::find(kinds, kind) == kinds.end()) {
    refuse(name, fmt::format("a line of it is '{}'", shortened(line)));
  }
  object = ViewObject{std::string(kind), std::string(line.substr(space + 1)), {}};
  frames = {};
  if (const auto place = place_of(object->path)) frames.extent = extents[*place];
}

void Hdf5ViewCheck::State::end_object() {
  if (object) compare(*object);
  object.reset();
}

// Whether an object is one that remesh never follows; what else it is does not matter then.
// `extent`: what it is of, or null.
bool Hdf5ViewCheck::State::refused(const ViewObject& found, const Extent* extent) {
  const std::string path = shortened(found.path);
  const auto value = [&found](std::string_view key) {
    const auto at = found.properties.find(key);
    return at == found.properties.end() ? std::string() : shortened(at->second);
  };
  const std::string external = value("external-files");
  std::string outside;
  if (found.kind == "external-link") outside = "an external link";
  if (value("layout") == "virtual") outside = "a virtual dataset";
  if (!external.empty() && external != "0")
    outside = fmt::format("a dataset in {} other files", external);
  if (!outside.empty()) {
    report("RM606", outside, "",
           fmt::format("'{}': {} is {}: it leads out of the file", name, path, outside));
    return true;
  }
  return has_other_filter(found, extent);
}

// Filters are code: one that the index does not mean is told apart from other differences.
bool Hdf5ViewCheck::State::has_other_filter(const ViewObject& found, const Extent* extent) {
  const bool chunked = extent != nullptr && is_chunked(*extent);
  for (const auto& [key, text] : found.properties) {
    if (!key.starts_with("filter.")) continue;
    if (chunked && native::is_filter_of(*extent, key, text)) continue;
    report("RM607", shortened(text), "",
           fmt::format("'{}': {} is packed with filter {}, but its index says that {}", name,
                       shortened(found.path), shortened(text),
                       chunked ? "its chunks are shuffled and zstd frames" : "it is not packed"));
    return true;
  }
  return false;
}

void Hdf5ViewCheck::State::compare(const ViewObject& found) {
  const auto place = place_of(found.path);
  const bool is_index = found.path == native::index_path;
  if (place && seen[*place])
    refuse(name, fmt::format("'{}' is there twice", shortened(found.path)));
  if (place) seen[*place] = true;
  index_seen = index_seen || is_index;
  const Extent* const extent = place ? &map.extents()[extents[*place]] : nullptr;
  if (refused(found, extent)) return;
  if (place) {
    compare_properties(found,
                       native::expected_dataset(reader.catalog().tensors[extent->tensor], *extent,
                                                map.frames(*extent), found.path),
                       extents[*place]);
    if (found.kind == "dataset") compare_frames(found, extents[*place]);
  } else if (is_index) {
    compare_properties(found, native::expected_index(index), {});
  } else if (is_group(found.path)) {
    compare_properties(found, native::expected_group(found.path), {});
  } else {
    report("RM211", found.kind, "nothing",
           fmt::format("'{}': libhdf5 sees {} {}, of which its index says nothing", name,
                       found.kind == "other" ? "something" : found.kind, shortened(found.path)));
  }
}

void Hdf5ViewCheck::State::compare_properties(const ViewObject& found, const ViewObject& expected,
                                              std::optional<std::uint32_t> extent) {
  const std::string path = shortened(found.path);
  if (found.kind != expected.kind) {
    report("RM211", found.kind, expected.kind,
           fmt::format("'{}': libhdf5 sees {} at {}, but its index says {}", name,
                       found.kind == "again" ? "another object once more" : found.kind, path,
                       expected.kind),
           extent);
    return;
  }
  for (const auto& difference : native::differences(found.properties, expected.properties)) {
    const std::string sees = shortened(difference.found);
    const std::string says = shortened(difference.expected);
    report("RM211", sees, says,
           fmt::format("'{}': libhdf5 sees {} with {} = {}, but its index says {}", name, path,
                       shortened(difference.key), sees, says),
           extent);
  }
}

// The frames that were taken, with those that were not there to be taken.
void Hdf5ViewCheck::State::compare_frames(const ViewObject& found, std::uint32_t number) {
  const Extent& extent = map.extents()[number];
  const std::span<const Frame> expected = map.frames(extent);
  const std::size_t in_view = std::min(expected.size(), native::most_view_frames);
  const std::string path = shortened(found.path);
  if (frames.different > 0) {
    const std::size_t k = frames.first_different;
    const std::string says =
        native::expected_frame(extent, expected[k], static_cast<std::int64_t>(k));
    report("RM211", frames.found, says,
           fmt::format("'{}': libhdf5 sees frame {} of {} {}, but its index says {}; {} of {} "
                       "frames differ",
                       name, k, path, frames.found, says, frames.different, frames.seen),
           number);
  }
  if (frames.seen < in_view) {
    report("RM211", std::to_string(frames.seen), std::to_string(in_view),
           fmt::format("'{}': libhdf5 sees {} frames of {}, but its index has {}", name,
                       frames.seen, path, in_view),
           number);
  }
  if (in_view == expected.size()) return;
  report("RM211", std::to_string(in_view), std::to_string(expected.size()),
         fmt::format("'{}': of the {} frames of {} the first {} were compared with what libhdf5 "
                     "sees, and of all their number and the sum of their bytes",
                     name, expected.size(), path, in_view),
         number, Severity::note);
}

void Hdf5ViewCheck::State::report_missing() {
  if (!index_seen) {
    report("RM211", "nothing", "dataset",
           fmt::format("'{}': libhdf5 sees no {}, where the index lies", name, native::index_path));
  }
  for (std::size_t at = 0; at < extents.size(); ++at) {
    if (seen[at]) continue;
    const std::uint32_t tensor = map.extents()[extents[at]].tensor;
    report("RM211", "nothing", "dataset",
           fmt::format("'{}': libhdf5 does not see {} of {}, which its index has", name,
                       to_string(map.extents()[extents[at]].box),
                       to_string(reader.catalog().tensors[tensor])),
           extents[at]);
  }
}

Hdf5ViewCheck::Hdf5ViewCheck(const Reader& reader, std::uint32_t file, Findings& findings)
    : state_(std::make_unique<State>(reader, file, findings)) {}

Hdf5ViewCheck::~Hdf5ViewCheck() = default;

void Hdf5ViewCheck::feed(std::string_view text) {
  State& state = *state_;
  state.bytes_left -= std::ssize(text);
  if (state.bytes_left < 0) {
    refuse(state.name, "it is longer than that of all that the index has");
  }
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    state.pending += text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::string line = std::exchange(state.pending, {});
    state.take_line(line);
  }
  state.pending += text;
  if (state.pending.size() > most_line_bytes) refuse(state.name, "a line of it has no end");
}

void Hdf5ViewCheck::finish() {
  State& state = *state_;
  if (!state.ended || !state.pending.empty()) refuse(state.name, "it has no end");
  state.report_missing();
}

std::vector<std::uint32_t> files_with_hdf5_view(const Reader& reader) {
  std::vector<std::uint32_t> files;
  if (reader.catalog().format != "remesh") return files;
  const ExtentMap& map = reader.extents();
  // A shard is guarded if its index was read.
  files.reserve(map.guards().size());
  for (const Guard& guard : map.guards()) {
    if (map.files()[guard.file].name.ends_with(".h5") &&
        map.files()[guard.file].name.find('/') == std::string::npos) {
      files.push_back(guard.file);
    }
  }
  return files;
}

}  // namespace remesh
