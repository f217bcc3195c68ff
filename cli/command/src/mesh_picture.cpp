#include "mesh_picture.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "escapes.hpp"
#include "text.hpp"

namespace remesh {
namespace {

constexpr int cell_width = 34;
constexpr int cell_height = 22;
constexpr int gap = 14;
constexpr int margin_left = 64;
constexpr int margin_top = 40;

/// An axis as it is drawn.
struct Drawn {
  std::string name;
  Index size = 1;
  Index stride = 1;  ///< from one of its positions to the next, in ranks
  Index shown = 1;
};

/// The axes along columns, rows, columns of grids and rows of grids. What is beyond is at position
/// 0.
struct Grid {
  std::array<Drawn, 4> axes;
  std::vector<Drawn> beyond;
};

Grid grid_of(const Mesh& mesh) {
  constexpr std::array<Index, 4> most{16, 8, 3, 3};
  Grid grid;
  std::size_t used = 0;
  Index stride = 1;
  for (const Axis& axis : mesh.axes()) {
    if (axis.size > 1) {
      Drawn drawn{axis.name, axis.size, stride, 1};
      if (used < grid.axes.size()) {
        drawn.shown = std::min(axis.size, most.at(used));
        grid.axes.at(used++) = std::move(drawn);
      } else {
        grid.beyond.push_back(std::move(drawn));
      }
    }
    stride *= axis.size;
  }
  return grid;
}

// "tp 0-15 of 64".
std::string label(const Drawn& axis) {
  if (axis.shown == axis.size) return fmt::format("{} {}", axis.name, axis.size);
  return fmt::format("{} 0-{} of {}", axis.name, axis.shown - 1, axis.size);
}

std::string text_at(Index x, Index y, std::string_view anchor, std::string_view kind,
                    std::string_view text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, kind,
                     markup_escaped(text));
}

class Picture {
 public:
  explicit Picture(const Mesh& mesh) : mesh_(mesh), grid_(grid_of(mesh)) {}

  std::string svg() {
    for (Index row = 0; row < axis(3).shown; ++row) {
      for (Index column = 0; column < axis(2).shown; ++column) draw_grid(column, row);
    }
    const Index width = margin_left + axis(2).shown * grid_width() + gap;
    const Index height = margin_top + axis(3).shown * grid_height() + 4;
    return fmt::format(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Picture of the mesh\">\n"
        "<svg class=\"mesh\" role=\"img\" aria-label=\"{}\" width=\"{}\" height=\"{}\" "
        "viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\">\n{}</svg>\n</div>\n{}",
        markup_escaped("Ranks of " + describe(mesh_)), width, height, width, height, body_,
        left_out());
  }

 private:
  const Drawn& axis(std::size_t number) const { return grid_.axes.at(number); }
  Index grid_width() const { return axis(0).shown * cell_width + gap; }
  Index grid_height() const { return axis(1).shown * cell_height + gap + title_height(); }
  // Where there are several grids each says which one it is.
  Index title_height() const { return axis(2).size > 1 ? 18 : 0; }

  void draw_grid(Index column, Index row) {
    const Index left = margin_left + column * grid_width();
    const Index top = margin_top + row * grid_height() + title_height();
    const Index first = column * axis(2).stride + row * axis(3).stride;
    if (column == 0 && row == 0) draw_axes(left, top);
    if (axis(2).size > 1) {
      std::string title = fmt::format("{} {}", axis(2).name, column);
      if (axis(3).size > 1) title += fmt::format(", {} {}", axis(3).name, row);
      body_ += text_at(left, top - 5, "start", " class=\"axis\"", title);
    }
    for (Index y = 0; y < axis(1).shown; ++y) {
      for (Index x = 0; x < axis(0).shown; ++x) {
        draw_cell(left + x * cell_width, top + y * cell_height,
                  first + x * axis(0).stride + y * axis(1).stride);
      }
    }
  }

  void draw_axes(Index left, Index top) {
    if (axis(0).size > 1) {
      body_ += text_at(left, margin_top - 22, "start", " class=\"axis\"", label(axis(0)) + " →");
    }
    if (axis(1).size > 1) {
      body_ += text_at(left - 8, top + 15, "end", " class=\"axis\"", axis(1).name + " ↓");
      body_ += text_at(left - 8, top + 31, "end", " class=\"axis\"", std::to_string(axis(1).size));
    }
  }

  void draw_cell(Index x, Index y, Index rank) {
    body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}"/>)", x, y, cell_width - 2,
                         cell_height - 2);
    body_ += text_at(x + cell_width / 2 - 1, y + 14, "middle", "", std::to_string(rank));
  }

  // What the picture does not show, in words.
  std::string left_out() const {
    std::vector<std::string> parts;
    for (const Drawn& axis : grid_.axes) {
      if (axis.shown < axis.size) parts.push_back(label(axis));
    }
    for (const Drawn& axis : grid_.beyond) {
      parts.push_back(fmt::format("{} 0 of {}", axis.name, axis.size));
    }
    if (parts.empty()) return {};
    return fmt::format("<p class=\"soft\">Of {} only {} is drawn.</p>\n",
                       counted(mesh_.num_ranks(), "rank"), markup_escaped(joined(parts)));
  }

  const Mesh& mesh_;
  Grid grid_;
  std::string body_;
};

}  // namespace

std::string mesh_picture(const Mesh& mesh) { return Picture(mesh).svg(); }

}  // namespace remesh
