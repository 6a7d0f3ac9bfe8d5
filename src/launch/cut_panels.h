#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launch/draft.h"
#include "plan/ref_layouts.h"

namespace harpe::launch {

// The panel in parts along one axis, such that each part stores all or nothing of every box:
// rectangles of its first result. What it reads is cut where it has the axis. None where the boxes
// would cut along several axes, or along one that not all results have.
[[nodiscard]] std::optional<std::vector<Panel>> cut_panel(const Draft& draft, const Panel& panel,
                                                          std::span<const Span> boxes);

}  // namespace harpe::launch
