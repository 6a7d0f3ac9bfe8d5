#pragma once

#include <string>
#include <string_view>
#include <vector>

// The elements of the report page's charts. Positions along x are percent of the plot, so that a
// chart fits any width while its text keeps its size; along y they are pixels.
namespace harpe::page {

// From values to positions: 0 at `low`, 1 at `high`.
struct Scale {
  double low = 0;
  double high = 1;
  bool logarithmic = false;

  [[nodiscard]] double position(double value) const;
};

// A scale around the values, with room at both ends; logarithmic if the largest value is at least
// `spread` times the smallest. Requires: a value, all above 0.
[[nodiscard]] Scale fit_scale(const std::vector<double>& values, double spread = 8);
// A scale from 0 to `high`, which is rounded up to a tick. Requires: high > 0.
[[nodiscard]] Scale zero_scale(double high);

// Round values inside the scale, about `count` of them, ascending.
[[nodiscard]] std::vector<double> ticks_of(const Scale& scale, int count);

// A percentage with its sign, for attributes: "37.5%".
[[nodiscard]] std::string percent(double position);

// Elements of an SVG image as text. Positions are ready for attributes.
struct Line {
  std::string x1, y1, x2, y2;
  std::string_view style;
};
[[nodiscard]] std::string draw_line(const Line& line);
struct Label {
  std::string x, y;
  std::string_view style;
  std::string_view anchor = "start";
  double dx = 0, dy = 0;
};
[[nodiscard]] std::string draw_text(const Label& label, std::string_view text);

// Axes of a plot `height` pixels high: grid lines, ticks and names.
struct Axis {
  Scale scale;
  double unit = 1;   // the unit in which values are shown
  std::string name;  // "time (µs)"
  int ticks = 6;
};
[[nodiscard]] std::string draw_axes(const Axis& x, const Axis& y, double height);

// Labels beside points, which overlap neither each other nor points nor other marked areas.
class Labels {
 public:
  explicit Labels(double height) : height_(height) {}
  // Positions as in the drawing: `x` of 0 to 1, `y` in pixels.
  void keep_clear(double x, double y, double radius);
  void keep_clear_line(double x1, double y1, double x2, double y2);  // horizontal or vertical
  // "" if there is no room: hovering still shows the point. A label with `must` is shortened and,
  // as a last resort, drawn over others.
  [[nodiscard]] std::string draw(double x, double y, std::string_view style, std::string_view text,
                                 bool must = false);

 private:
  struct Box {
    double left, top, right, bottom;
  };
  struct Place {
    std::string_view anchor;
    double dx, dy;
  };
  [[nodiscard]] bool is_free(const Box& box) const;
  [[nodiscard]] static Box box_of(double x, double y, const Place& place, std::string_view text);
  double height_;
  std::vector<Box> taken_;
};

// The frame of a plot. `body` may draw beyond it, where the frame's padding leaves room.
struct Frame {
  std::string_view id;     // of the chart: "front-chart"
  std::string_view title;  // its contents, for readers who cannot see it
  double height = 280;
};
[[nodiscard]] std::string draw_frame(const Frame& frame, const std::string& body);

// Rectangles of one class, as one path, in millionths of the plot along x. They are drawn inside
// draw_stretched.
class Bars {
 public:
  void add(double begin, double end, double top, double height);
  [[nodiscard]] std::string draw(std::string_view style) const;  // "" without rectangles

 private:
  std::string path_;
};
// Wraps elements that lie on a plot and grow with it along x.
[[nodiscard]] std::string draw_stretched(double height, const std::string& body);

// At most `most` characters, of which the last marks that text was cut.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);

// An entry of a legend: a swatch of the class with its name.
struct LegendEntry {
  std::string_view style;
  std::string name;
};
[[nodiscard]] std::string draw_legend(const std::vector<LegendEntry>& entries);

// A section with its heading and one sentence on how to read it.
struct Section {
  std::string_view id;
  std::string_view title;
  std::string_view lead;
};
[[nodiscard]] std::string draw_section(const Section& section, const std::string& body);

}  // namespace harpe::page
