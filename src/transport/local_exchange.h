#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "transport/exchange.h"

namespace harpe::transport {

// Exchanges of ranks that are threads of this process, in the order of ranks. Each is used by one
// thread. An exchange that a rank waits in longer than `limit` fails for all, now and later: N010.
[[nodiscard]] std::vector<std::shared_ptr<Exchange>> make_local_exchanges(
    int ranks, std::chrono::milliseconds limit);

}  // namespace harpe::transport
