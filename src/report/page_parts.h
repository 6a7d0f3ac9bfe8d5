#pragma once

#include <string>
#include <vector>

#include "report/page.h"

// The sections of the report page, each from the values that it shows. The text is empty if a
// section has no values.
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

// The queues whose bars the timeline shows, and their positions: ranks from the first on, up to the
// limit of a page.
struct Shown {
  std::vector<std::int32_t> queues;  // with visible bars, by rank
  std::vector<double> tops;          // of their rows, in pixels
  double row = 0;                    // height of one
  double height = 0;                 // of all
  std::int32_t ranks = 0;            // number of ranks shown, from the first
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
