#pragma once

#include <string>

namespace harpe {

// "AMD EPYC, 2 cores", as the system says.
[[nodiscard]] std::string describe_host();

}  // namespace harpe
