#pragma once

#include <memory>

#include "transport/provider.h"

namespace harpe::transport {

// For ranks of one machine: threads of a process, or processes whose regions are SharedMemory. The
// sender's proxy copies a put, which is placed when that returns; a signal is stored with release.
[[nodiscard]] std::unique_ptr<Provider> make_shared_provider();

}  // namespace harpe::transport
