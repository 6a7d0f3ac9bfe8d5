#include <algorithm>
#include <cmath>

#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr double kRoofHeight = 320;
constexpr double kMemoryHeight = 200;

class Roof {
 public:
  explicit Roof(const PageRoofline& roof) : roof_(roof) {
    std::vector<double> intensities;
    std::vector<double> rates = {roof.peak};
    for (const PageSlope& slope : roof.slopes) {
      intensities.push_back(roof.peak / slope.bandwidth);  // the ridge
    }
    for (const PageRoofPoint& point : roof.points) {
      intensities.push_back(point.intensity);
      rates.push_back(point.rate);
    }
    const auto [low, high] = std::ranges::minmax(intensities);
    x_ = {.low = low / 5, .high = high * 8, .logarithmic = true};
    y_ = {.low = std::ranges::min(rates) / 4, .high = roof.peak * 2, .logarithmic = true};
  }

  [[nodiscard]] std::string draw() {
    const Unit unit = rate_unit(roof_.peak);
    std::string out = draw_axes({.scale = x_, .name = "operations per byte"},
                                {.scale = y_,
                                 .unit = unit.size,
                                 .name = "rate of a rank (" + std::string(unit.name) + ")",
                                 .ticks = 5},
                                kRoofHeight);
    double ridge = x_.high;
    for (const PageSlope& slope : roof_.slopes) {
      out += draw_slope(slope);
      ridge = std::min(ridge, roof_.peak / slope.bandwidth);
    }
    out += draw_line({.x1 = percent(x_.position(ridge)),
                      .y1 = y_of(roof_.peak),
                      .x2 = "100%",
                      .y2 = y_of(roof_.peak),
                      .style = "roof"});
    out += draw_text(
        {.x = "100%", .y = y_of(roof_.peak), .style = "roof-name", .anchor = "end", .dy = -7},
        "peak " + print_in(unit, roof_.peak) + " " + std::string(unit.name));
    for (const PageRoofPoint& point : roof_.points) {
      labels_.keep_clear(x_.position(point.intensity), kRoofHeight * (1 - y_.position(point.rate)),
                         6);
    }
    // Chosen points get places for their names first, and are drawn over the others.
    std::string chosen;
    for (const PageRoofPoint& point : roof_.points) {
      if (point.winner) chosen += draw_point(point);
    }
    for (const PageRoofPoint& point : roof_.points) {
      if (!point.winner) out += draw_point(point);
    }
    return out + chosen;
  }

 private:
  [[nodiscard]] std::string y_of(double rate) const {
    return print_number(kRoofHeight * (1 - y_.position(rate)));
  }

  [[nodiscard]] std::string draw_slope(const PageSlope& slope) {
    const double ridge = roof_.peak / slope.bandwidth;
    const double start = std::max(x_.low, y_.low / slope.bandwidth);
    const std::string x = percent(x_.position(start));
    const std::string y = y_of(start * slope.bandwidth);
    for (double part = 0; part <= 1; part += 0.02) {
      const double here = start * std::pow(ridge / start, part);
      labels_.keep_clear(x_.position(here), kRoofHeight * (1 - y_.position(here * slope.bandwidth)),
                         3);
    }
    // The slope's name is under it, a quarter of the way up.
    const double along = start * std::pow(ridge / start, 0.25);
    return draw_line({.x1 = x,
                      .y1 = y,
                      .x2 = percent(x_.position(ridge)),
                      .y2 = y_of(roof_.peak),
                      .style = "roof"}) +
           draw_text({.x = percent(x_.position(along)),
                      .y = y_of(along * slope.bandwidth),
                      .style = "roof-name",
                      .dx = 12,
                      .dy = 14},
                     slope.name + " " + print_bandwidth(slope.bandwidth));
  }

  [[nodiscard]] std::string draw_point(const PageRoofPoint& point) {
    const double under =
        std::min(roof_.peak,
                 point.intensity * roof_.slopes[static_cast<std::size_t>(point.slope)].bandwidth);
    const std::string x = percent(x_.position(point.intensity));
    const std::string y = y_of(point.rate);
    const Unit unit = rate_unit(point.rate);
    return "<g class=\"point " + std::string(point.winner ? "winner" : "named") + "\"><title>" +
           escape(point.label) + ": " + print_in(unit, point.rate) + " " + std::string(unit.name) +
           ", " + print_share(point.rate / under) +
           " of its roof</title><line class=\"drop\" x1=\"" + x + "\" x2=\"" + x + "\" y1=\"" +
           y_of(under) + "\" y2=\"" + y + "\"/><circle cx=\"" + x + "\" cy=\"" + y +
           "\" r=\"5\"/></g>" +
           labels_.draw(x_.position(point.intensity), kRoofHeight * (1 - y_.position(point.rate)),
                        point.winner ? "label winner-label" : "label",
                        shorten(point.label, 20) + ", " + print_share(point.rate / under),
                        point.winner);
  }

  const PageRoofline& roof_;
  Scale x_;
  Scale y_;
  Labels labels_{kRoofHeight};
};

}  // namespace

std::string draw_roofline(const ReportPage& page) {
  if (!page.roofline || page.roofline->slopes.empty() || page.roofline->points.empty()) return {};
  return draw_section(
      {.id = "roofline",
       .title = "Roofline",
       .lead = "The rate over operations per byte: of the chosen schedule for all that brings "
               "bytes, of others for their busiest link. Shares are of the roof above."},
      draw_frame({.id = "roofline-chart",
                  .title = "Rates reached under the roofs of memory, links and computation",
                  .height = kRoofHeight},
                 Roof(*page.roofline).draw()));
}

std::string draw_memory(const ReportPage& page) {
  if (!page.memory || page.memory->points.empty()) return {};
  const PageMemory& memory = *page.memory;
  const auto peak = static_cast<double>(memory.peak_bytes);
  // A limit far above would flatten the curve; then only the text states it.
  const bool near = memory.limit_bytes && static_cast<double>(*memory.limit_bytes) < 3 * peak;
  const Scale y =
      zero_scale(std::max(1.0, 1.05 * (near ? static_cast<double>(*memory.limit_bytes) : peak)));
  const Scale x{.low = 0,
                .high = static_cast<double>(std::max<std::int64_t>(1, memory.total.value))};
  const Unit time = time_unit(memory.total);
  const Unit size = byte_unit(y.high);
  Bars bars;
  for (std::size_t i = 0; i < memory.points.size(); ++i) {
    const MemoryPoint& point = memory.points[i];
    const Picoseconds end = i + 1 < memory.points.size() ? memory.points[i + 1].time : memory.total;
    const double height = kMemoryHeight * y.position(static_cast<double>(point.bytes));
    if (end <= point.time) continue;
    bars.add(x.position(static_cast<double>(point.time.value)),
             x.position(static_cast<double>(end.value)), kMemoryHeight - height, height);
  }
  const auto mark = [&](double bytes, std::string_view style, const std::string& name) {
    const std::string at = print_number(kMemoryHeight * (1 - y.position(bytes)));
    return draw_line({.x1 = "0", .y1 = at, .x2 = "100%", .y2 = at, .style = style}) +
           draw_text({.x = "100%", .y = at, .style = "label", .anchor = "end", .dy = -6}, name);
  };
  std::string body =
      draw_axes({.scale = x, .unit = time.size, .name = "time (" + std::string(time.name) + ")"},
                {.scale = y,
                 .unit = size.size,
                 .name = "fullest rank (" + std::string(size.name) + ")",
                 .ticks = 4},
                kMemoryHeight);
  body += draw_stretched(kMemoryHeight, bars.draw("area"));
  body += mark(peak, "peak", "peak " + print_bytes(peak));
  if (near) {
    const auto limit = static_cast<double>(*memory.limit_bytes);
    body += mark(limit, "limit", "limit " + print_bytes(limit));
  }
  std::string note;
  if (memory.limit_bytes && !near) {
    const auto limit = static_cast<double>(*memory.limit_bytes);
    note = "<p class=\"note\">The peak is " + print_share(peak / limit) + " of the " +
           print_bytes(limit) + " that a rank has.</p>\n";
  }
  return draw_section(
      {.id = "memory",
       .title = "Memory",
       .lead = "What is in use on the fullest rank, homes of inputs and outputs "
               "included."},
      draw_frame(
          {.id = "memory-chart", .title = "Memory in use over time", .height = kMemoryHeight},
          body) +
          note);
}

}  // namespace harpe::page
