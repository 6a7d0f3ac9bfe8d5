#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr std::size_t kMostTasks = 6000;
constexpr std::size_t kMostQueues = 96;
constexpr double kTallest = 560;  // height of all rows, if they fit
// The narrowest plot in which names must fit inside bars; the script fits them to the actual width.
constexpr double kWidth = 520;
constexpr double kCharacter = 6.9;
constexpr std::int64_t kFewest = 6;  // characters of a shortened name
constexpr std::array kKinds = {PageTaskKind::Compute, PageTaskKind::Copy, PageTaskKind::Collective,
                               PageTaskKind::Fold, PageTaskKind::Other};
constexpr std::array kWaits = {WaitKind::Event, WaitKind::Signal, WaitKind::Barrier,
                               WaitKind::Member};

void place_rows(Shown& shown, const PageTimeline& timeline) {
  constexpr double kGap = 8;
  const auto rank_of = [&](std::size_t i) {
    return timeline.queues[static_cast<std::size_t>(shown.queues[i])].rank;
  };
  const auto queues = static_cast<double>(std::max<std::size_t>(1, shown.queues.size()));
  shown.row = std::floor(std::clamp((kTallest - kGap * shown.ranks) / queues, 7.0, 18.0));
  double y = 2;
  for (std::size_t i = 0; i < shown.queues.size(); ++i) {
    if (i > 0 && rank_of(i) != rank_of(i - 1)) y += kGap;
    shown.tops.push_back(y);
    y += shown.row;
  }
  shown.height = y + 2;
}

class Timeline {
 public:
  Timeline(const ReportPage& page, const Shown& shown)
      : timeline_(*page.timeline), shown_(shown), tops_(timeline_.queues.size(), -1) {
    for (std::size_t i = 0; i < shown.queues.size(); ++i) {
      tops_[static_cast<std::size_t>(shown.queues[i])] = shown.tops[i];
    }
    for (const Segment& segment : page.critical_path) critical_.insert(segment.task.value);
  }

  [[nodiscard]] const std::set<std::string_view>& styles() const { return styles_; }

  std::string draw() {
    std::vector<Picoseconds> free(timeline_.queues.size());
    for (const PageTask& task : timeline_.tasks) {
      const auto queue = static_cast<std::size_t>(task.queue);
      if (tops_[queue] >= 0) draw_task(task, free[queue]);
      free[queue] = std::max(free[queue], task.end);
    }
    std::string body;
    for (std::size_t i = 0; i < kWaits.size(); ++i) body += keep(waits_[i], style_of(kWaits[i]));
    body += keep(starts_, "t-start");
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      body += keep(wide_[i], style_of(kKinds[i]));
      body += thin_[i].draw("thin " + std::string(style_of(kKinds[i])));
    }
    body += keep(marks_, "t-critical");
    const std::string axis = draw_axis();
    return axis + draw_stretched(shown_.height, body) + "<g class=\"names\">" + names_ +
           "</g><g class=\"over\"></g>" + draw_queues();
  }

 private:
  [[nodiscard]] double at(Picoseconds time) const {
    return static_cast<double>(time.value) /
           static_cast<double>(std::max<std::int64_t>(1, timeline_.total.value));
  }

  std::string keep(const Bars& bars, std::string_view style) {
    std::string out = bars.draw(style);
    if (!out.empty()) styles_.insert(style);
    return out;
  }

  void draw_task(const PageTask& task, Picoseconds free) {
    const double top = tops_[static_cast<std::size_t>(task.queue)];
    const double middle = top + shown_.row / 2 - 1;
    if (task.ready > free && task.wait != WaitKind::Queue) {
      const auto wait = std::ranges::find(kWaits, task.wait) - kWaits.begin();
      waits_[static_cast<std::size_t>(wait)].add(at(free), at(task.ready), middle, 2);
    }
    if (task.begin > task.ready) starts_.add(at(task.ready), at(task.begin), middle, 2);
    if (task.end == task.begin) return;
    const auto kind =
        static_cast<std::size_t>(std::ranges::find(kKinds, task.kind) - kKinds.begin());
    const double begin = at(task.begin);
    const double end = at(task.end);
    const bool wide = (end - begin) * kWidth > 3;
    (wide ? wide_ : thin_)[kind].add(begin, end, top + 1, shown_.row - 2);
    if (!wide) styles_.insert(style_of(task.kind));
    if (critical_.contains(task.id)) marks_.add(begin, end, top + shown_.row - 3, 2);
    const auto room = static_cast<std::int64_t>(((end - begin) * kWidth - 8) / kCharacter);
    if (shown_.row < 13 || room < std::min<std::int64_t>(kFewest, std::ssize(task.name))) return;
    const bool dark = task.kind == PageTaskKind::Compute || task.kind == PageTaskKind::Collective;
    names_ += draw_text({.x = percent((begin + end) / 2),
                         .y = print_number(top + shown_.row / 2 + 4),
                         .style = dark ? "bar-name" : "bar-name on-bright",
                         .anchor = "middle"},
                        shorten(task.name, static_cast<std::size_t>(room)));
  }

  std::string draw_axis() const {
    const Unit unit = time_unit(timeline_.total);
    const Scale scale{.low = 0, .high = static_cast<double>(timeline_.total.value)};
    std::string out;
    for (const double tick : ticks_of(scale, 7)) {
      const std::string x = percent(scale.position(tick));
      out += draw_line(
          {.x1 = x, .y1 = "0", .x2 = x, .y2 = print_number(shown_.height), .style = "grid"});
      out += draw_text(
          {.x = x, .y = print_number(shown_.height), .style = "tick", .anchor = "middle", .dy = 16},
          print_in(unit, tick));
    }
    return "<g class=\"axis-x\">" + out + "</g>" +
           draw_text({.x = "100%",
                      .y = print_number(shown_.height),
                      .style = "axis-name",
                      .anchor = "end",
                      .dy = 34},
                     "time (" + std::string(unit.name) + ")");
  }

  std::string draw_queues() const {
    std::string out;
    std::int32_t rank = -1;
    for (const std::int32_t index : shown_.queues) {
      const PageQueue& queue = timeline_.queues[static_cast<std::size_t>(index)];
      const double top = tops_[static_cast<std::size_t>(index)];
      const std::string y = print_number(top + shown_.row / 2 + 4);
      if (queue.rank != rank) {
        out += draw_text({.x = "0", .y = y, .style = "rank-name", .dx = -104},
                         "rank " + std::to_string(queue.rank));
      }
      rank = queue.rank;
      if (shown_.row < 11) continue;
      out += draw_text({.x = "0", .y = y, .style = "lane-name", .anchor = "end", .dx = -8},
                       shorten(queue.name, 8));
    }
    return out;
  }

  const PageTimeline& timeline_;
  const Shown& shown_;
  std::vector<double> tops_;  // by queue; below 0: not shown
  std::set<std::int32_t> critical_;
  std::array<Bars, kKinds.size()> wide_;
  std::array<Bars, kKinds.size()> thin_;
  std::array<Bars, kWaits.size()> waits_;
  Bars starts_;
  Bars marks_;
  std::string names_;
  std::set<std::string_view> styles_;
};

std::string legend_of(const std::set<std::string_view>& styles) {
  std::vector<LegendEntry> entries;
  for (const PageTaskKind kind : kKinds) {
    if (styles.contains(style_of(kind))) {
      entries.push_back({style_of(kind), std::string(name_of(kind))});
    }
  }
  for (const WaitKind wait : kWaits) {
    if (styles.contains(style_of(wait))) {
      entries.push_back({style_of(wait), "waits for " + std::string(name_of(wait))});
    }
  }
  if (styles.contains("t-start")) entries.push_back({"t-start", "starts"});
  if (styles.contains("t-critical")) entries.push_back({"t-critical", "on the critical path"});
  return draw_legend(entries);
}

}  // namespace

Shown shown_of(const PageTimeline& timeline) {
  std::vector<std::size_t> visible(timeline.queues.size(), 0);
  std::vector<std::size_t> tasks;
  for (const PageTask& task : timeline.tasks) {
    const auto rank =
        static_cast<std::size_t>(timeline.queues[static_cast<std::size_t>(task.queue)].rank);
    if (tasks.size() <= rank) tasks.resize(rank + 1, 0);
    ++tasks[rank];
    if (task.end > task.begin) ++visible[static_cast<std::size_t>(task.queue)];
  }
  Shown shown;
  shown.of = static_cast<std::int32_t>(tasks.size());
  std::size_t sum = 0;
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    std::vector<std::int32_t> queues;
    for (std::size_t i = 0; i < timeline.queues.size(); ++i) {
      if (static_cast<std::size_t>(timeline.queues[i].rank) == rank && visible[i] > 0) {
        queues.push_back(static_cast<std::int32_t>(i));
      }
    }
    sum += tasks[rank];
    const bool fits = sum <= kMostTasks && shown.queues.size() + queues.size() <= kMostQueues;
    if (rank > 0 && !fits) break;
    shown.queues.insert(shown.queues.end(), queues.begin(), queues.end());
    ++shown.ranks;
  }
  place_rows(shown, timeline);
  return shown;
}

std::string draw_timeline(const ReportPage& page) {
  if (!page.timeline || page.timeline->tasks.empty()) return {};
  const Shown shown = shown_of(*page.timeline);
  if (shown.queues.empty()) return {};
  Timeline timeline(page, shown);
  const std::string body = timeline.draw();
  std::string buttons =
      "<div class=\"tools\" hidden><button type=\"button\" data-zoom=\"in\">Zoom in</button>"
      "<button type=\"button\" data-zoom=\"out\">Zoom out</button>"
      "<button type=\"button\" data-zoom=\"all\">Whole time</button>"
      "<span>drag to move, Ctrl and wheel to zoom</span></div>\n";
  std::string note;
  if (shown.ranks < shown.of) {
    note = "<p class=\"note\">The first " + print_count(shown.ranks) + " of " +
           print_count(shown.of) + " ranks are drawn.</p>\n";
  }
  return draw_section({.id = "timeline",
                       .title = "Timeline",
                       .lead = "What every engine of every rank does; thin lines are waits, in the "
                               "colour of what is waited for."},
                      legend_of(timeline.styles()) + buttons +
                          draw_frame({.id = "timeline-chart",
                                      .title = "Timeline of every rank and engine",
                                      .height = shown.height},
                                     body) +
                          note);
}

}  // namespace harpe::page
