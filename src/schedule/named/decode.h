#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Homes: k and v by key positions, over all mesh axes, major first; q replicated; o and lse by
// heads (KV heads if there are enough, else the query heads of a group, else sequences), or
// replicated for `allreduce`. The partial (o, lse) of every rank's keys are sent.
[[nodiscard]] std::span<const NamedSchedule> decode_schedules();

}  // namespace harpe
