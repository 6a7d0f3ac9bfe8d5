#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "transport/exchange.h"

namespace harpe::transport {

// Exchanges of ranks that are threads of this process, in the order of ranks, each for one thread.
// If a rank waits in an exchange longer than `limit`, it fails for all ranks, now and later: N010.
[[nodiscard]] std::vector<std::shared_ptr<Exchange>> make_local_exchanges(
    int ranks, std::chrono::milliseconds limit);

}  // namespace harpe::transport
