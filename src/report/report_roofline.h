#pragma once

#include <optional>
#include <vector>

#include "report/report_page.h"

namespace harpe {

// How close the plans come to the limits of memory, links and computation: the operations of the
// busiest rank over the bytes that its memory and its links bring. None if nothing is computed.
[[nodiscard]] std::optional<PageRoofline> make_roofline(const std::vector<ReportedPlan>& plans,
                                                        const Machine& machine);

}  // namespace harpe
