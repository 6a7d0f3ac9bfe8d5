#pragma once

#include <memory>
#include <string>

#include "transport/provider.h"

namespace harpe::transport {

// The provider of that name: "shared", or one of libfabric's on the address of the interface ("":
// libfabric chooses). Errors: N001, N002, N013.
[[nodiscard]] Checked<std::unique_ptr<Provider>> make_provider(const std::string& name,
                                                               const std::string& interface);

}  // namespace harpe::transport
