#pragma once

#include "machine/machine.h"

namespace harpe {

// Refuses a line or a figure that cannot affect any prediction on the machine, because it was most
// likely meant for something else. Requires: levels exist. Errors: M122.
[[nodiscard]] Checked<Ok> check_uses(const Machine& machine);

}  // namespace harpe
