#include "layer_plots.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "escapes.hpp"
#include "layers.hpp"
#include "remesh/core/budget.hpp"
#include "text.hpp"

namespace remesh {
namespace {

constexpr std::size_t most_kinds = 60;
// A bar is no narrower than a screen shows; layers that share one are taken together.
constexpr std::int64_t most_bars = 200;

std::string layer_text(std::int64_t layer) {
  return layer == no_layer ? "no layer" : fmt::format("layer {}", layer);
}

/// Numbers of a layer, or of the layers that share a bar.
struct Cell {
  std::int64_t layer = no_layer;
  std::int64_t elements = 0;
  std::int64_t zeros = 0;
  std::int64_t not_finite = 0;
  std::optional<int> least;
  std::optional<int> most;

  double share() const {
    return elements == 0 ? 0 : static_cast<double>(zeros) / static_cast<double>(elements);
  }
  void add(const TensorNumbers& numbers) {
    elements += numbers.elements;
    zeros += numbers.zeros;
    not_finite += numbers.nans + numbers.infinities;
    if (!numbers.least_exponent) return;
    least = std::min(least.value_or(*numbers.least_exponent), *numbers.least_exponent);
    most = std::max(most.value_or(*numbers.most_exponent), *numbers.most_exponent);
  }
};

/// Tensors of one name but for numbers, layer by layer.
struct Kind {
  std::string name;
  std::map<std::int64_t, Cell> cells;
};

std::vector<Kind> kinds_of(const Judgement& judgement) {
  std::map<std::string, std::size_t> numbers;
  std::vector<Kind> kinds;
  for (const TensorNumbers& tensor : judgement.numbers) {
    const LayerName name = layer_of(tensor.name);
    const auto [at, is_new] = numbers.emplace(name.kind, kinds.size());
    if (is_new) kinds.push_back({name.kind, {}});
    Cell& cell = kinds[at->second].cells[name.layer];
    cell.layer = name.layer;
    cell.add(tensor);
  }
  return kinds;
}

/// The scale of exponents that all plots share.
struct Scale {
  int least = 0;
  int most = 1;

  double place(int exponent) const { return 100.0 * (most - exponent) / std::max(most - least, 1); }
};

Scale scale_of(const std::vector<Kind>& kinds) {
  std::optional<int> least;
  std::optional<int> most;
  for (const Kind& kind : kinds) {
    for (const auto& [layer, cell] : kind.cells) {
      if (!cell.least) continue;
      least = std::min(least.value_or(*cell.least), *cell.least);
      most = std::max(most.value_or(*cell.most), *cell.most);
    }
  }
  return {least.value_or(0), most.value_or(0) + 1};
}

std::int64_t layers_in(const Judgement& judgement) {
  std::int64_t last = no_layer;
  for (const auto& [layer, bytes] : drawn_side(judgement).layer_bytes) last = std::max(last, layer);
  return last + 1;
}

// An SVG as wide as there is room, `bars` units wide and 100 high.
std::string plot(std::int64_t bars, std::string_view label, std::string_view body,
                 std::string_view kind = {}) {
  return fmt::format(
      "<svg class=\"plot{}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} 100\" "
      "preserveAspectRatio=\"none\" xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
      kind, markup_escaped(label), std::max<std::int64_t>(bars, 1), body);
}

std::string bar(double x, double width, double top, double height, std::string_view kind,
                std::string_view title) {
  return fmt::format(
      "<rect{} x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
      "height=\"{:.2f}\"><title>{}</title></rect>",
      kind, x, top, width, height, markup_escaped(title));
}

/// Where the bar of a layer stands.
struct Bars {
  std::int64_t layers = 0;

  std::int64_t count() const { return std::clamp<std::int64_t>(layers, 1, most_bars); }
  std::int64_t of(std::int64_t layer) const {
    return layers <= most_bars ? layer : layer * most_bars / layers;
  }
};

std::string exponents_svg(const Kind& kind, const Scale& scale, const Bars& bars) {
  std::string body;
  for (const auto& [layer, cell] : kind.cells) {
    if (!cell.least) continue;
    const double top = scale.place(*cell.most + 1);
    const double height = std::max(scale.place(*cell.least) - top, 2.0);
    body +=
        bar(static_cast<double>(bars.of(std::max<std::int64_t>(layer, 0))) + 0.1, 0.8, top, height,
            "", fmt::format("{}: 2^{} to 2^{}", layer_text(layer), *cell.least, *cell.most));
  }
  const bool has_layers = !kind.cells.contains(no_layer);
  return plot(has_layers ? bars.count() : 1, fmt::format("Exponents of {}, by layer", kind.name),
              body);
}

std::string zeros_svg(const Kind& kind, const Bars& bars) {
  std::string body;
  for (const auto& [layer, cell] : kind.cells) {
    const double height = 100 * cell.share();
    if (height == 0) continue;
    body += bar(static_cast<double>(bars.of(std::max<std::int64_t>(layer, 0))) + 0.1, 0.8,
                100 - std::max(height, 2.0), std::max(height, 2.0), " class=\"second\"",
                fmt::format("{}: {:.2f} % zeros", layer_text(layer), height));
  }
  const bool has_layers = !kind.cells.contains(no_layer);
  return plot(has_layers ? bars.count() : 1,
              fmt::format("Share of zeros in {}, by layer", kind.name), body);
}

Cell together(const Kind& kind) {
  Cell sum;
  for (const auto& [layer, cell] : kind.cells) {
    sum.not_finite += cell.not_finite;
    if (!cell.least) continue;
    sum.least = std::min(sum.least.value_or(*cell.least), *cell.least);
    sum.most = std::max(sum.most.value_or(*cell.most), *cell.most);
  }
  return sum;
}

std::string kind_row(const Kind& kind, const Scale& scale, const Bars& bars) {
  const Cell sum = together(kind);
  const auto most = std::ranges::max_element(
      kind.cells, {}, [](const auto& entry) { return entry.second.share(); });
  const double share = 100 * most->second.share();
  return fmt::format(
      "<tr role=\"row\"><td role=\"cell\"><code>{}</code></td><td role=\"cell\" "
      "data-label=\"Exponents, by layer\">{}</td><td role=\"cell\" data-label=\"Range\">{}</td><td "
      "role=\"cell\" data-label=\"Zeros, by layer\">{}</td><td role=\"cell\" data-label=\"Most "
      "zeros\">{}</td><td role=\"cell\" data-label=\"Not finite\">{}</td></tr>\n",
      breakable(markup_escaped(kind.name)), exponents_svg(kind, scale, bars),
      sum.least ? fmt::format("<span class=\"range\">2<sup>{}</sup> to 2<sup>{}</sup></span>",
                              *sum.least, *sum.most)
                : "none",
      zeros_svg(kind, bars),
      share == 0 ? "none" : fmt::format("{:.2f} % ({})", share, layer_text(most->first)),
      sum.not_finite == 0 ? "0"
                          : fmt::format("<span class=\"badge error\">{}</span>", sum.not_finite));
}

std::string kinds_table(const std::vector<Kind>& kinds, const Bars& bars) {
  const Scale scale = scale_of(kinds);
  std::string rows;
  for (std::size_t k = 0; k < std::min(kinds.size(), most_kinds); ++k) {
    rows += kind_row(kinds[k], scale, bars);
  }
  std::string caption = fmt::format(
      "Numbers of each kind of tensor. Exponents of two, all on one scale from 2^{} to 2^{}; "
      "layers from left to right",
      scale.least, scale.most - 1);
  if (kinds.size() > most_kinds) {
    caption += fmt::format("; {} more kinds are not shown", kinds.size() - most_kinds);
  }
  std::string text = fmt::format(
      "<table class=\"kinds\" role=\"table\">\n<caption>{}</caption>\n<thead><tr "
      "role=\"row\">",
      caption);
  for (const std::string_view title :
       {"Tensors", "Exponents, by layer", "Range", "Zeros, by layer", "Most zeros", "Not finite"}) {
    text += fmt::format(R"(<th scope="col" role="columnheader">{}</th>)", title);
  }
  return text + "</tr></thead>\n<tbody>\n" + rows + "</tbody>\n</table>\n";
}

using PerLayer = std::map<std::int64_t, std::int64_t>;

// The bars of layers, and in words what belongs to none.
std::string layer_bars(const PerLayer& values, std::string_view title, std::string_view kind,
                       const Bars& bars, std::string (*text_of)(std::int64_t)) {
  PerLayer heights;
  std::int64_t outside = 0;
  for (const auto& [layer, value] : values) {
    if (layer == no_layer) {
      outside = value;
    } else {
      heights[bars.of(layer)] += value;
    }
  }
  std::int64_t greatest = 1;
  for (const auto& [at, value] : heights) greatest = std::max(greatest, value);
  std::string body;
  for (const auto& [at, value] : heights) {
    const double height = 100 * static_cast<double>(value) / static_cast<double>(greatest);
    body += bar(static_cast<double>(at) + 0.1, 0.8, 100 - height, height, kind,
                fmt::format("{}: {}", layer_text(at * bars.layers / bars.count()), text_of(value)));
  }
  return fmt::format(
      "<figure style=\"max-width:{5}rem\">\n<h3>{0}</h3>\n{1}\n<div class=\"scale\"><span>layer "
      "0</span><span>at most {2} a "
      "bar; {3} in no layer</span><span>layer {4}</span></div>\n</figure>\n",
      title, plot(bars.count(), title, body, " tall"), text_of(greatest), text_of(outside),
      std::max<std::int64_t>(bars.layers - 1, 0), std::max<std::int64_t>(4 * bars.count(), 28));
}

// Of the side whose layers are drawn, and of all sides; a name may say a layer beyond them.
PerLayer findings_by_layer(const Judgement& judgement, const Bars& bars) {
  PerLayer counts;
  for (const Finding& finding : judgement.findings) {
    const bool is_drawn = finding.side.empty() || finding.side == drawn_side(judgement).name;
    if (finding.tensor.empty() || !is_drawn) continue;
    ++counts[std::min(layer_of(finding.tensor).layer, bars.layers - 1)];
  }
  return counts;
}

std::string finding_count(std::int64_t count) { return counted(count, "finding"); }

}  // namespace

std::string layer_plots(const Judgement& judgement) {
  const Bars bars{layers_in(judgement)};
  if (bars.layers == 0 && judgement.numbers.empty()) return {};
  std::string text =
      "<section aria-labelledby=\"layers\">\n<h2 id=\"layers\">Layer by layer</h2>\n";
  if (bars.layers > 0) {
    text += layer_bars(drawn_side(judgement).layer_bytes, "Bytes", "", bars, format_bytes);
    const PerLayer counts = findings_by_layer(judgement, bars);
    if (!counts.empty()) {
      text += layer_bars(counts, "Findings about tensors", " class=\"bad\"", bars, finding_count);
    }
  }
  if (!judgement.numbers.empty()) text += kinds_table(kinds_of(judgement), bars);
  return text + "</section>\n";
}

}  // namespace remesh
