#include "report/page_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/page_text.h"

namespace harpe::page {
namespace {

// 1, 2 or 5 times a power of ten, at least `value`.
double round_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<double> log_ticks(const Scale& scale, int count) {
  constexpr std::array<std::array<double, 3>, 3> kSets = {
      std::array{1.0, 2.0, 5.0}, std::array{1.0, 3.0, 0.0}, std::array{1.0, 0.0, 0.0}};
  std::vector<double> ticks;
  for (const auto& set : kSets) {
    ticks.clear();
    double power = std::pow(10.0, std::floor(std::log10(scale.low)));
    for (; power <= scale.high; power *= 10) {
      for (const double factor : set) {
        const double value = factor * power;
        if (factor > 0 && value >= scale.low && value <= scale.high) ticks.push_back(value);
      }
    }
    if (static_cast<int>(ticks.size()) <= count + 2) break;
  }
  return ticks;
}

// Round values in the unit that is shown.
std::vector<double> ticks_in(const Axis& axis) {
  Scale shown = axis.scale;
  shown.low /= axis.unit;
  shown.high /= axis.unit;
  std::vector<double> ticks = ticks_of(shown, axis.ticks);
  for (double& tick : ticks) tick *= axis.unit;
  return ticks;
}

// The narrowest plot on which labels do not overlap, in pixels; on a wider one they are further
// apart.
constexpr double kNarrow = 540;
constexpr double kLabelCharacter = 6.6;
constexpr double kLabelLine = 15;

}  // namespace

double Scale::position(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Scale fit_scale(const std::vector<double>& values, double spread) {
  const auto [least, most] = std::ranges::minmax_element(values);
  if (*most >= spread * *least) {
    const double room = std::pow(*most / *least, 0.06);
    return {.low = *least / room, .high = *most * room, .logarithmic = true};
  }
  const double extent = *most > *least ? *most - *least : *most;
  return {.low = std::max(0.0, *least - 0.08 * extent), .high = *most + 0.08 * extent};
}

Scale zero_scale(double high) {
  const double step = round_step(high / 5);
  return {.low = 0, .high = std::ceil(high / step - 1e-9) * step};
}

std::vector<double> ticks_of(const Scale& scale, int count) {
  if (scale.logarithmic && scale.high >= 3 * scale.low) return log_ticks(scale, count);
  const double step = round_step((scale.high - scale.low) / count);
  std::vector<double> ticks;
  for (double k = std::ceil(scale.low / step - 1e-9); k * step <= scale.high + 1e-9 * step; ++k) {
    ticks.push_back(k * step);
  }
  return ticks;
}

std::string percent(double position) { return print_number(100 * position) + "%"; }

std::string draw_line(const Line& line) {
  return "<line class=\"" + std::string(line.style) + "\" x1=\"" + line.x1 + "\" y1=\"" + line.y1 +
         "\" x2=\"" + line.x2 + "\" y2=\"" + line.y2 + "\"/>";
}

std::string draw_text(const Label& label, std::string_view text) {
  std::string out = "<text class=\"" + std::string(label.style) + "\" x=\"" + label.x + "\" y=\"" +
                    label.y + "\"";
  if (label.anchor != "start") out += " text-anchor=\"" + std::string(label.anchor) + "\"";
  if (label.dx != 0) out += " dx=\"" + print_number(label.dx) + "\"";
  if (label.dy != 0) out += " dy=\"" + print_number(label.dy) + "\"";
  return out + ">" + escape(text) + "</text>";
}

std::string draw_axes(const Axis& x, const Axis& y, double height) {
  const std::string bottom = print_number(height);
  std::string out;
  for (const double tick : ticks_in(x)) {
    const std::string at = percent(x.scale.position(tick));
    out += draw_line({.x1 = at, .y1 = "0", .x2 = at, .y2 = bottom, .style = "grid"});
    out += draw_text({.x = at, .y = bottom, .style = "tick", .anchor = "middle", .dy = 18},
                     print_figure(tick / x.unit));
  }
  for (const double tick : ticks_in(y)) {
    const std::string at = print_number(height * (1 - y.scale.position(tick)));
    out += draw_line({.x1 = "0", .y1 = at, .x2 = "100%", .y2 = at, .style = "grid"});
    out += draw_text({.x = "0", .y = at, .style = "tick", .anchor = "end", .dx = -8, .dy = 4},
                     print_figure(tick / y.unit));
  }
  out += draw_line({.x1 = "0", .y1 = bottom, .x2 = "100%", .y2 = bottom, .style = "axis"});
  out += draw_text({.x = "100%", .y = bottom, .style = "axis-name", .anchor = "end", .dy = 38},
                   x.name);
  out += draw_text({.x = "0", .y = "0", .style = "axis-name", .dx = -64, .dy = -14}, y.name);
  return out;
}

void Labels::keep_clear(double x, double y, double radius) {
  taken_.push_back({x * kNarrow - radius, y - radius, x * kNarrow + radius, y + radius});
}

void Labels::keep_clear_line(double x1, double y1, double x2, double y2) {
  taken_.push_back({std::min(x1, x2) * kNarrow - 1, std::min(y1, y2) - 1,
                    std::max(x1, x2) * kNarrow + 1, std::max(y1, y2) + 1});
}

bool Labels::is_free(const Box& box) const {
  if (box.left < 0 || box.right > kNarrow || box.top < 0 || box.bottom > height_) return false;
  return std::ranges::none_of(taken_, [&](const Box& other) {
    return box.left < other.right && other.left < box.right && box.top < other.bottom &&
           other.top < box.bottom;
  });
}

Labels::Box Labels::box_of(double x, double y, const Place& place, std::string_view text) {
  const double width = kLabelCharacter * static_cast<double>(text.size());
  const double shift = place.anchor == "start" ? 0 : place.anchor == "end" ? width : width / 2;
  const double left = x * kNarrow + place.dx - shift;
  const double base = y + place.dy;
  return {left, base - kLabelLine + 3, left + width, base + 3};
}

std::string Labels::draw(double x, double y, std::string_view style, std::string_view text,
                         bool must) {
  constexpr std::array<Place, 8> kPlaces = {
      Place{"start", 11, 4}, {"start", 9, -9}, {"end", -11, 4}, {"middle", 0, -13},
      {"middle", 0, 22},     {"start", 9, 18}, {"end", -9, -9}, {"end", -9, 18}};
  const auto at = [&](const Place& place, const std::string& shown) {
    taken_.push_back(box_of(x, y, place, shown));
    return draw_text({.x = percent(x),
                      .y = print_number(y),
                      .style = style,
                      .anchor = place.anchor,
                      .dx = place.dx,
                      .dy = place.dy},
                     shown);
  };
  for (const std::size_t most : {28U, 20U, 13U}) {
    const std::string shown = shorten(text, most);
    for (const Place& place : kPlaces) {
      if (is_free(box_of(x, y, place, shown))) return at(place, shown);
    }
    if (!must) return {};
  }
  return at(x < 0.5 ? kPlaces[1] : kPlaces[6], shorten(text, 20));
}

std::string draw_frame(const Frame& frame, const std::string& body) {
  const std::string title = escape(frame.title);
  return "<div class=\"frame\" id=\"" + std::string(frame.id) +
         "\"><svg role=\"img\" aria-label=\"" + title + "\" width=\"100%\" height=\"" +
         print_number(frame.height) + "\">" + body + "</svg></div>\n";
}

void Bars::add(double begin, double end, double top, double height) {
  const double width = std::max(1.0, std::round(1e6 * end) - std::round(1e6 * begin));
  const std::string across = print_number(width);
  path_ += "M" + print_number(std::round(1e6 * begin)) + " " + print_number(top) + "h" + across +
           "v" + print_number(height) + "h-" + across + "z";
}

std::string Bars::draw(std::string_view style) const {
  if (path_.empty()) return {};
  return "<path class=\"" + std::string(style) + "\" d=\"" + path_ + "\"/>";
}

std::string draw_stretched(double height, const std::string& body) {
  const std::string tall = print_number(height);
  return "<svg class=\"stretched\" width=\"100%\" height=\"" + tall + "\" viewBox=\"0 0 1000000 " +
         tall + "\" preserveAspectRatio=\"none\">" + body + "</svg>";
}

std::string shorten(std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U;
    if (!continues && ++characters > most) {
      std::size_t cut = i;  // the first character too many; one more is cut for the mark
      do {
        --cut;
      } while ((static_cast<unsigned char>(text[cut]) & 0xc0U) == 0x80U);
      return std::string(text.substr(0, cut)) + "…";
    }
  }
  return std::string(text);
}

std::string draw_legend(const std::vector<LegendEntry>& entries) {
  std::string out = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    out += "<li><i class=\"" + std::string(entry.style) + "\"></i>" + escape(entry.name) + "</li>";
  }
  return out + "</ul>\n";
}

std::string draw_section(const Section& section, const std::string& body) {
  return "<section id=\"" + std::string(section.id) + "\">\n<h2>" + escape(section.title) +
         "</h2>\n<p class=\"lead\">" + escape_prose(section.lead) + "</p>\n" + body +
         "</section>\n";
}

}  // namespace harpe::page
