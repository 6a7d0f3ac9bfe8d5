#include <algorithm>
#include <array>

#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr std::array kSpendings = {Spending::Compute, Spending::Memory, Spending::Link,
                                   Spending::Message, Spending::Launch, Spending::Signal,
                                   Spending::Barrier, Spending::Fold};

// Parts are smaller than their whole, and are shown in one unit.
Unit unit_of_parts(Picoseconds whole) { return time_unit(Picoseconds(whole.value / 10)); }

struct Sum {
  Spending spending = Spending::Compute;
  Picoseconds time;
  std::int64_t stretches = 0;
  const Segment* longest = nullptr;
};

std::vector<Sum> sums_of(const std::vector<Segment>& path) {
  std::vector<Sum> sums;
  for (const Spending spending : kSpendings) sums.emplace_back().spending = spending;
  for (const Segment& segment : path) {
    Sum& sum = sums[static_cast<std::size_t>(std::ranges::find(kSpendings, segment.spending) -
                                             kSpendings.begin())];
    const Picoseconds time = segment.end - segment.begin;
    sum.time += time;
    ++sum.stretches;
    if (sum.longest == nullptr || time > sum.longest->end - sum.longest->begin) {
      sum.longest = &segment;
    }
  }
  std::erase_if(sums, [](const Sum& sum) { return sum.time == Picoseconds(); });
  std::ranges::stable_sort(sums, std::greater<>(), &Sum::time);
  return sums;
}

std::string print_table(const std::vector<Sum>& sums, Picoseconds total) {
  const Unit unit = unit_of_parts(total);
  const Column column = column_of(unit, static_cast<double>(total.value), 4);
  std::string out =
      "<table><thead><tr><th scope=\"col\">Spent on</th><th scope=\"col\" class=\"number\">Time (" +
      std::string(unit.name) +
      ")</th><th scope=\"col\" class=\"number\">Share</th><th scope=\"col\" "
      "class=\"number\">Stretches</th><th scope=\"col\">Longest stretch</th></tr></thead><tbody>";
  for (const Sum& sum : sums) {
    const Picoseconds longest = sum.longest->end - sum.longest->begin;
    out += "<tr><th scope=\"row\"><i class=\"" + std::string(style_of(sum.spending)) + "\"></i>" +
           std::string(name_of(sum.spending)) + "</th><td class=\"number\">" +
           print_in(column, static_cast<double>(sum.time.value)) + "</td><td class=\"number\">" +
           print_share(static_cast<double>(sum.time.value) / static_cast<double>(total.value)) +
           "</td><td class=\"number\">" + print_count(sum.stretches) + "</td><td>" +
           escape(sum.longest->what) + ", " + print_time(longest) + "</td></tr>\n";
  }
  return "<div class=\"scroll\">" + out + "</tbody></table></div>\n";
}

// A part of a stacked bar.
struct Part {
  std::string_view style;
  std::string_view name;
  Picoseconds time;
};
std::array<Part, 5> parts_of(const PageTaxes& taxes) {
  return {Part{"k-compute", "roofline", taxes.roofline}, Part{"k-launch", "launch", taxes.launch},
          Part{"k-signal", "synchronization", taxes.synchronization},
          Part{"k-memory", "locality", taxes.locality}, Part{"k-rest", "residual", taxes.residual}};
}

Picoseconds total_of(const PageTaxes& taxes) {
  Picoseconds total;
  for (const Part& part : parts_of(taxes)) total += part.time;
  return total;
}

std::string draw_bar(const PageTaxes& taxes, Picoseconds longest) {
  constexpr double kHeight = 22;
  const auto scale = static_cast<double>(std::max<std::int64_t>(1, longest.value));
  std::string rectangles;
  double begin = 0;
  for (const Part& part : parts_of(taxes)) {
    const double end =
        begin + static_cast<double>(std::max<std::int64_t>(0, part.time.value)) / scale;
    if (end > begin) {
      rectangles += "<rect class=\"" + std::string(part.style) + "\" x=\"" + percent(begin) +
                    "\" width=\"" + percent(end - begin) + "\" height=\"22\"><title>" +
                    std::string(part.name) + ": " + print_time(part.time) + "</title></rect>";
    }
    begin = end;
  }
  return "<div class=\"stack" + std::string(taxes.winner ? " chosen" : "") +
         "\"><span class=\"stack-name\" title=\"" + escape(taxes.label) + "\">" +
         escape(taxes.label) + "</span><svg width=\"100%\" height=\"" + print_number(kHeight) +
         "\" aria-hidden=\"true\">" + rectangles + "</svg><span class=\"stack-total\">" +
         print_time(total_of(taxes)) + "</span></div>\n";
}

std::string print_taxes(const std::vector<PageTaxes>& all, Picoseconds longest) {
  const Unit unit = unit_of_parts(longest);
  const Column column = column_of(unit, static_cast<double>(longest.value), 4);
  std::string out =
      "<table><thead><tr><th scope=\"col\">Time (" + std::string(unit.name) + ")</th>";
  for (const Part& part : parts_of(all.front())) {
    out += "<th scope=\"col\" class=\"number\">" + std::string(part.name) + "</th>";
  }
  out +=
      "<th scope=\"col\" class=\"number\">total</th><th scope=\"col\">roofline is</th>"
      "<th scope=\"col\" class=\"number\" title=\"how much of a delay of one rank is passed on\">"
      "skew</th></tr></thead><tbody>\n";
  for (const PageTaxes& taxes : all) {
    out += "<tr" + std::string(taxes.winner ? " class=\"chosen\"" : "") + "><th scope=\"row\">" +
           escape(taxes.label) + "</th>";
    for (const Part& part : parts_of(taxes)) {
      out += "<td class=\"number\">" + print_in(column, static_cast<double>(part.time.value)) +
             "</td>";
    }
    out += "<td class=\"number\">" + print_in(column, static_cast<double>(total_of(taxes).value)) +
           "</td><td>" + escape(taxes.bound) + "</td><td class=\"number\">" +
           (taxes.skew_sensitivity ? print_figure(*taxes.skew_sensitivity, 2) : "") +
           "</td></tr>\n";
  }
  return "<div class=\"scroll\">" + out + "</tbody></table></div>\n";
}

}  // namespace

std::string draw_critical_path(const ReportPage& page) {
  if (page.critical_path.empty()) return {};
  constexpr double kHeight = 34;
  const Picoseconds first = page.critical_path.front().begin;
  const Picoseconds total = page.critical_path.back().end - first;
  if (total <= Picoseconds()) return {};
  std::array<Bars, kSpendings.size()> wide;
  std::array<Bars, kSpendings.size()> thin;
  for (const Segment& segment : page.critical_path) {
    if (segment.end == segment.begin) continue;
    const auto at = [&](Picoseconds time) {
      return static_cast<double>((time - first).value) / static_cast<double>(total.value);
    };
    const double begin = at(segment.begin);
    const double end = at(segment.end);
    const auto spending = static_cast<std::size_t>(std::ranges::find(kSpendings, segment.spending) -
                                                   kSpendings.begin());
    (end - begin > 0.006 ? wide : thin)[spending].add(begin, end, 0, kHeight);
  }
  std::string body;
  for (std::size_t i = 0; i < kSpendings.size(); ++i) {
    body += wide[i].draw(style_of(kSpendings[i]));
    body += thin[i].draw("thin " + std::string(style_of(kSpendings[i])));
  }
  const Unit unit = time_unit(total);
  const Scale scale{.low = 0, .high = static_cast<double>(total.value)};
  std::string ticks;
  for (const double tick : ticks_of(scale, 7)) {
    const double at = scale.position(tick);
    ticks += draw_text({.x = percent(at),
                        .y = print_number(kHeight),
                        .style = "tick",
                        .anchor = at < 0.02   ? "start"
                                  : at > 0.98 ? "end"
                                              : "middle",
                        .dy = 18},
                       print_in(unit, tick) + (tick == 0 ? " " + std::string(unit.name) : ""));
  }
  return draw_section(
      {.id = "path",
       .title = "Critical path",
       .lead = "From the end back to the start, through what each moment waited for: shortening "
               "anything else gains nothing."},
      draw_frame(
          {.id = "path-chart", .title = "What the critical path is spent on", .height = kHeight},
          ticks + draw_stretched(kHeight, body)) +
          print_table(sums_of(page.critical_path), total));
}

std::string draw_taxes(const ReportPage& page) {
  if (page.taxes.empty()) return {};
  Picoseconds longest;
  for (const PageTaxes& taxes : page.taxes) longest = std::max(longest, total_of(taxes));
  std::vector<LegendEntry> legend;
  for (const Part& part : parts_of(page.taxes.front())) {
    legend.push_back({part.style, std::string(part.name)});
  }
  std::string bars;
  for (const PageTaxes& taxes : page.taxes) bars += draw_bar(taxes, longest);
  return draw_section(
      {.id = "taxes",
       .title = "Taxes",
       .lead = "Time above the roofline, by what removes it: instant launches, waits "
               "per tile, intermediates kept on chip."},
      draw_legend(legend) + "<div class=\"stacks\" id=\"taxes-chart\">\n" + bars + "</div>\n" +
          print_taxes(page.taxes, longest));
}

}  // namespace harpe::page
