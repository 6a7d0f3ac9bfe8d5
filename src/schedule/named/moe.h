#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Expert parallelism (commir.md 8, A.5): tokens and experts are divided over the same ranks.
[[nodiscard]] std::span<const NamedSchedule> moe_schedules();

}  // namespace harpe
