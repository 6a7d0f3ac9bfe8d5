#pragma once

#include <string>
#include <vector>

#include "report/page.h"

// The sections of the report page, each from the part of the page's values that it shows. An empty
// text is a section without values.
namespace harpe::page {

[[nodiscard]] std::string draw_front(const ReportPage& page);
[[nodiscard]] std::string draw_timeline(const ReportPage& page);
[[nodiscard]] std::string draw_critical_path(const ReportPage& page);
[[nodiscard]] std::string draw_taxes(const ReportPage& page);
[[nodiscard]] std::string draw_roofline(const ReportPage& page);
[[nodiscard]] std::string draw_memory(const ReportPage& page);
[[nodiscard]] std::string draw_candidates(const ReportPage& page);
[[nodiscard]] std::string draw_refused(const ReportPage& page);
[[nodiscard]] std::string draw_utilisation(const ReportPage& page);
[[nodiscard]] std::string draw_schedule(const ReportPage& page);
[[nodiscard]] std::string draw_plan(const ReportPage& page);

// The values that the script shows on hovering, as one JSON object.
[[nodiscard]] std::string data_of(const ReportPage& page);

// Whose bars the timeline holds, and where: ranks from the first until the limit of what a page
// carries.
struct Shown {
  std::vector<std::int32_t> queues;  // with something to see, by rank
  std::vector<double> tops;          // of their rows, in pixels
  double row = 0;                    // height of one
  double height = 0;                 // of all
  std::int32_t ranks = 0;            // from the first
  std::int32_t of = 0;
};
[[nodiscard]] Shown shown_of(const PageTimeline& timeline);

// Classes of the style sheet, and names.
[[nodiscard]] std::string_view style_of(Spending spending);
[[nodiscard]] std::string_view name_of(Spending spending);
[[nodiscard]] std::string_view style_of(PageTaskKind kind);
[[nodiscard]] std::string_view name_of(PageTaskKind kind);
[[nodiscard]] std::string_view style_of(WaitKind wait);
[[nodiscard]] std::string_view name_of(WaitKind wait);

}  // namespace harpe::page
