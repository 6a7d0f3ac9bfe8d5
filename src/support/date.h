#pragma once

#include <cstdint>
#include <string>

namespace harpe {

// "2026-11-21", in UTC, `days` before now.
[[nodiscard]] std::string date_before(std::int64_t days);
[[nodiscard]] inline std::string today() { return date_before(0); }

}  // namespace harpe
