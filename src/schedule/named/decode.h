#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Homes: k and v by key positions, every mesh axis used, major first; q replicated; o and lse by
// heads (KV heads where there are enough of them, else the query heads of a group, else sequences),
// under `allreduce` replicated. What moves is the partial (o, lse) of every rank's keys.
[[nodiscard]] std::span<const NamedSchedule> decode_schedules();

}  // namespace harpe
