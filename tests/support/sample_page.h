#pragma once

#include "report/page.h"

namespace harpe {

// A page with every section, for a ring over `ranks` ranks with `steps` steps. Its figures are
// invented but plausible.
[[nodiscard]] ReportPage sample_page(int ranks, int steps);

// The same page with every text replaced by one that would break the markup if it were not escaped.
[[nodiscard]] ReportPage hostile_page();

}  // namespace harpe
