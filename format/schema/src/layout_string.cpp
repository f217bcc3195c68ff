#include "layout_string.hpp"

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

// What a string may become when its repetitions are written out, and how deep they may nest.
constexpr std::size_t most_letters = std::size_t{1} << 20;
constexpr std::size_t most_work = 16 * most_letters;
constexpr int most_depth = 16;

class Expansion {
 public:
  explicit Expansion(std::string_view text) : text_(text) {}

  std::string run() {
    std::string letters = sequence(0);
    if (at_ < text_.size()) fail("')' closes nothing");
    return letters;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read stages '{}': at character {}: {}", text_, at_ + 1, why));
  }

  // What is written out counts, whether it stays or not.
  void spend(std::size_t letters) {
    if (letters > most_work - spent_) {
      fail(fmt::format("it takes more than {} steps to write out", most_work));
    }
    spent_ += letters;
  }

  bool next_is(char letter) const { return at_ < text_.size() && text_[at_] == letter; }

  std::string sequence(int depth) {
    std::string letters;
    while (at_ < text_.size() && text_[at_] != ')') {
      if (next_is(',')) {
        ++at_;
        continue;
      }
      const std::string one = item(depth);
      const std::size_t times = repetition();
      if (times > 0 && one.size() > (most_letters - letters.size()) / times) {
        fail(fmt::format("it has more than {} layers and stages", most_letters));
      }
      spend(one.size() * times + 1);
      for (std::size_t k = 0; k < times; ++k) letters += one;
    }
    return letters;
  }

  std::string item(int depth) {
    constexpr std::string_view letters = "EtmL|";
    const char letter = text_[at_];
    if (letter == '(') {
      if (depth >= most_depth) fail("it is nested too deep");
      ++at_;
      std::string inner = sequence(depth + 1);
      if (!next_is(')')) fail("a '(' is not closed");
      ++at_;
      return inner;
    }
    if (letters.find(letter) == std::string_view::npos) {
      fail("E, t, m, L, |, (, ) or * is expected");
    }
    ++at_;
    return {letter};
  }

  std::size_t repetition() {
    if (!next_is('*')) return 1;
    ++at_;
    std::size_t times = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), times);
    if (error != std::errc()) fail("a number is expected behind *");
    at_ += static_cast<std::size_t>(end - begin);
    return times;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t spent_ = 0;
};

}  // namespace

std::vector<Index> parse_layout_string(std::string_view text) {
  const std::string letters = Expansion(text).run();
  const auto fail = [&](std::string_view why) {
    throw Error(Errc::invalid_argument, fmt::format("cannot read stages '{}': {}", text, why));
  };
  if (!letters.starts_with('E') || letters.find('E', 1) != std::string::npos) {
    fail("it must begin with its only E, the embedding");
  }
  if (!letters.ends_with('L') || letters.find('L') + 1 != letters.size()) {
    fail("it must end with its only L, the loss");
  }
  if (letters.rfind('t') != std::string::npos && letters.find('m') < letters.rfind('t')) {
    fail("an m stands before a t, but layers of multi-token prediction come behind all others");
  }
  std::vector<Index> layers{0};
  for (const char letter : letters) {
    if (letter == '|') layers.push_back(0);
    if (letter == 't' || letter == 'm') ++layers.back();
  }
  return layers;
}

}  // namespace remesh::detail
