#pragma once

#include "report/page.h"

namespace harpe {

// A page with every section, as of a ring over `ranks` ranks with `steps` steps: figures are made
// up, and plausible.
[[nodiscard]] ReportPage sample_page(int ranks, int steps);

// The same with every text replaced by one that would break out of its place if it were not
// escaped.
[[nodiscard]] ReportPage hostile_page();

}  // namespace harpe
