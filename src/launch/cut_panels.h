#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launch/draft.h"
#include "plan/ref_layouts.h"

namespace harpe::launch {

// Cuts a panel along one axis, so that each part stores all or nothing of every box. Boxes are
// rectangles of the panel's first result. Reads are cut where they have the axis. Returns none
// where the boxes would cut along several axes, or along an axis that some result lacks.
[[nodiscard]] std::optional<std::vector<Panel>> cut_panel(const Draft& draft, const Panel& panel,
                                                          std::span<const Span> boxes);

}  // namespace harpe::launch
