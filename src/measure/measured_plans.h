#pragma once

#include <string>

#include "compile/session.h"
#include "measure/measure.h"

namespace harpe {

// The measurements of `harpe tune` as lines that read_measurements reads back (measure/measured.h):
// one for each schedule with a time, including its normal form. `machine` is that of the
// prediction.
[[nodiscard]] std::string print_measurements(const Request& subject, const std::string& machine,
                                             const Measured& measured);

}  // namespace harpe
