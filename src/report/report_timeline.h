#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "report/page.h"
#include "sim/engine.h"

namespace harpe {

// The timeline of a plan's tasks, with `spans` by task (Span::cause is a task). `bounds`, unless
// empty, gives by task the resource that limited it.
[[nodiscard]] PageTimeline make_timeline(const Plan& plan, Picoseconds total,
                                         const std::vector<Span>& spans,
                                         const std::vector<std::string>& bounds);

// print_svg of the plan's drawing; "" if it has too many ranks or steps to be readable.
[[nodiscard]] std::string make_drawing(const Plan& plan);

}  // namespace harpe
