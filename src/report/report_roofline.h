#pragma once

#include <optional>
#include <vector>

#include "report/report_page.h"

namespace harpe {

// How close the plans come to what memory, links and computation allow: operations of the busiest
// rank over the bytes that its memory and its links bring. None where nothing is computed.
[[nodiscard]] std::optional<PageRoofline> make_roofline(const std::vector<ReportedPlan>& plans,
                                                        const Machine& machine);

}  // namespace harpe
