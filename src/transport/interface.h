#pragma once

#include <string>

#include "support/diag.h"

namespace harpe::transport {

// This host's own address on a network interface, numeric. Errors: N013.
[[nodiscard]] Checked<std::string> address_on(const std::string& interface);

}  // namespace harpe::transport
