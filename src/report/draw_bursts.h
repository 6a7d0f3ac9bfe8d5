#pragma once

#include <string>

#include "machine/machine.h"
#include "sim/fabric.h"
#include "support/diag.h"

namespace harpe {

// The queues, wire and arrivals of a small burst over time, one policy below the other.
[[nodiscard]] Checked<std::string> draw_bursts(const Machine& machine,
                                               const FabricQuestion& question);

}  // namespace harpe
