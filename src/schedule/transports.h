#pragma once

#include <optional>
#include <string>

#include "ir/form.h"

namespace harpe {

// The capability matrix of commir.md 7.4 as far as a schedule can break it.

// Kinds of signal a transport can give, as words: "`event` and `flag`"; nccl has its own only.
[[nodiscard]] std::string describe_signals(Via via);
[[nodiscard]] bool can_signal(Via via, Signal signal);
// RDMA: a signal is ordered after a put only by a fence policy.
[[nodiscard]] bool takes_fence(Via via);
// Only the source can start a transfer (a proxy thread or a kernel posts to the NIC).
[[nodiscard]] bool is_source_initiated(Via via);
// A leaf can read through it in place.
[[nodiscard]] bool is_inline_capable(Via via);

}  // namespace harpe
