#pragma once

#include <optional>
#include <string>

#include "ir/form.h"

namespace harpe {

// The part of the capability matrix of commir.md 7.4 that a schedule can violate.

// The kinds of signal that a transport offers, as text: "`event` and `flag`"; nccl has only its
// own.
[[nodiscard]] std::string describe_signals(Via via);
[[nodiscard]] bool can_signal(Via via, Signal signal);
// For RDMA, only a fence policy orders a signal after a put.
[[nodiscard]] bool takes_fence(Via via);
// Only the source can start a transfer: a proxy thread or a kernel posts to the NIC.
[[nodiscard]] bool is_source_initiated(Via via);
// A leaf can read remote operands through it in place.
[[nodiscard]] bool is_inline_capable(Via via);

}  // namespace harpe
