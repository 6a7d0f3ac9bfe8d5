#pragma once

#include "machine/machine.h"

namespace harpe {

// Refuses a line or a figure that no prediction on the machine can depend on: most likely it was
// meant for something else. Requires: levels are there. Errors: M122.
[[nodiscard]] Checked<Ok> check_uses(const Machine& machine);

}  // namespace harpe
