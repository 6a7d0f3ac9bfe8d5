#pragma once

#include <memory>

#include "transport/provider.h"

namespace harpe::transport {

// Ranks of one machine: threads of a process, or processes whose regions are SharedMemory. A put is
// a copy by the sender's proxy and is placed when it returns; a signal is stored with release.
[[nodiscard]] std::unique_ptr<Provider> make_shared_provider();

}  // namespace harpe::transport
