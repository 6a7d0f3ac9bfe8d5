#include <algorithm>

#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr double kHeight = 340;
constexpr std::size_t kMostPoints = 2000;

class Front {
 public:
  explicit Front(const std::vector<PageCandidate>& all) : all_(all) {
    std::vector<double> times;
    std::vector<double> bytes;
    for (const PageCandidate& candidate : all_) {
      times.push_back(static_cast<double>(std::max<std::int64_t>(1, candidate.time.value)));
      bytes.push_back(static_cast<double>(std::max<std::int64_t>(1, candidate.memory_bytes)));
    }
    x_ = fit_scale(times);
    y_ = fit_scale(bytes);
    // The units fit the best candidates, whose values are read most.
    const Unit time = time_unit(Picoseconds(static_cast<std::int64_t>(std::ranges::min(times))));
    const Unit size = byte_unit(std::ranges::min(bytes));
    axes_ =
        draw_axes({.scale = x_, .unit = time.size, .name = "time (" + std::string(time.name) + ")"},
                  {.scale = y_,
                   .unit = size.size,
                   .name = "memory per rank (" + std::string(size.name) + ")",
                   .ticks = 5},
                  kHeight);
  }

  std::string draw() {
    std::string points;
    // Later elements cover earlier ones: named points cover others, the chosen one covers all.
    for (const int layer : {0, 1, 2}) {
      for (std::size_t i = 0; i < std::min(all_.size(), kMostPoints); ++i) {
        const int own = all_[i].winner ? 2 : all_[i].named ? 1 : 0;
        if (own == layer) points += draw_point(i);
      }
    }
    const std::string steps = draw_steps();
    for (std::size_t i = 0; i < std::min<std::size_t>(all_.size(), 200); ++i) {
      labels_.keep_clear(x_of(i), y_of(i), all_[i].winner ? 9 : all_[i].named ? 6 : 3);
    }
    std::string labels;
    for (const bool winner : {true, false}) {
      for (std::size_t i = 0; i < all_.size(); ++i) {
        if (all_[i].winner != winner || !(winner || all_[i].named)) continue;
        labels += labels_.draw(x_of(i), y_of(i), winner ? "label winner-label" : "label",
                               all_[i].label, winner);
      }
    }
    return axes_ + steps + points + labels;
  }

 private:
  [[nodiscard]] double x_of(std::size_t i) const {
    return x_.position(static_cast<double>(std::max<std::int64_t>(1, all_[i].time.value)));
  }
  [[nodiscard]] double y_of(std::size_t i) const {
    return kHeight *
           (1 - y_.position(static_cast<double>(std::max<std::int64_t>(1, all_[i].memory_bytes))));
  }

  // The border of the reachable area: right along time, then down in memory.
  std::string draw_steps() {
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].front) front.push_back(i);
    }
    std::ranges::sort(front, {}, [&](std::size_t i) { return all_[i].time; });
    std::string out;
    for (std::size_t k = 0; k < front.size(); ++k) {
      const double x = x_of(front[k]);
      const double y = y_of(front[k]);
      const bool last = k + 1 == front.size();
      const double next = last ? 1 : x_of(front[k + 1]);
      out += draw_step(x, y, next, y);
      if (!last) out += draw_step(next, y, next, y_of(front[k + 1]));
    }
    return out;
  }

  std::string draw_step(double x1, double y1, double x2, double y2) {
    labels_.keep_clear_line(x1, y1, x2, y2);
    return draw_line({.x1 = percent(x1),
                      .y1 = print_number(y1),
                      .x2 = percent(x2),
                      .y2 = print_number(y2),
                      .style = "front"});
  }

  [[nodiscard]] static std::string_view style_of_point(const PageCandidate& candidate) {
    if (candidate.winner) return "point winner";
    if (candidate.named) return "point named";
    return candidate.front ? "point on-front" : "point";
  }

  std::string draw_point(std::size_t i) {
    const PageCandidate& candidate = all_[i];
    const std::string x = percent(x_of(i));
    const std::string y = print_number(y_of(i));
    std::string out = "<g class=\"" + std::string(style_of_point(candidate)) + "\" data-tip=\"" +
                      std::to_string(i) + "\"><title>" + escape(candidate.label) + ": " +
                      print_time(candidate.time) + ", " +
                      print_bytes(static_cast<double>(candidate.memory_bytes)) + "</title>";
    if (candidate.winner)
      out += "<circle class=\"halo\" cx=\"" + x + "\" cy=\"" + y + "\" r=\"11\"/>";
    const std::string_view radius = candidate.winner ? "6" : candidate.named ? "5" : "3.5";
    return out + "<circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"" + std::string(radius) +
           "\"/></g>";
  }

  const std::vector<PageCandidate>& all_;
  Scale x_;
  Scale y_;
  std::string axes_;
  Labels labels_{kHeight};
};

}  // namespace

std::string draw_front(const ReportPage& page) {
  if (page.candidates.empty()) return {};
  std::vector<LegendEntry> legend = {{"dot winner", "chosen"}};
  const auto any = [&](auto member) { return std::ranges::any_of(page.candidates, member); };
  if (any(&PageCandidate::named)) legend.push_back({"dot named", "named schedules"});
  if (any(&PageCandidate::front)) legend.push_back({"dot on-front", "on the front"});
  if (any([](const PageCandidate& c) { return !c.front && !c.named && !c.winner; })) {
    legend.push_back({"dot other", "other candidates"});
  }
  Front front(page.candidates);
  return draw_section(
      {.id = "front",
       .title = "Time and memory",
       .lead =
           "Each point is a schedule; down and to the left is better. The line is the best time "
           "for a given memory."},
      draw_legend(legend) + draw_frame({.id = "front-chart",
                                        .title = "Time and memory of the candidates",
                                        .height = kHeight},
                                       front.draw()));
}

}  // namespace harpe::page
