#pragma once

#include <cstdint>
#include <string>

namespace harpe {

[[nodiscard]] std::string print_bytes(std::int64_t bytes);  // "1.5 MiB"

}  // namespace harpe
