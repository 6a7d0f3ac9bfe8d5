#pragma once

#include <functional>

#include "exec/actions/action.h"

namespace harpe::actions {

// Calls visit(field, value) for the address of every operand and result, null ones too. `field` is
// where the task stores it (a pointer, which memcpy may overwrite); it is valid as long as the task
// lives. Counts of rows (Occupancy) and scratch are not visited.
void for_each_address(TaskWork& work,
                      const std::function<void(void* field, std::byte* value)>& visit);

}  // namespace harpe::actions
