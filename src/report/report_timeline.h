#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "report/page.h"
#include "sim/engine.h"

namespace harpe {

// The timeline of a plan's tasks, `spans` by task (Span::cause is a task). `bounds`, where it is
// not empty, says by task what held it back.
[[nodiscard]] PageTimeline make_timeline(const Plan& plan, Picoseconds total,
                                         const std::vector<Span>& spans,
                                         const std::vector<std::string>& bounds);

// print_svg of the plan's drawing; "" where it has too many ranks or steps to be looked at.
[[nodiscard]] std::string make_drawing(const Plan& plan);

}  // namespace harpe
