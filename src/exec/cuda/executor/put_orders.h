#pragma once

#include "exec/processes/put_orders.h"

namespace harpe::cuda {

// Of every put between nodes, under the strictest fence of its signals: those to other ranks than
// its own go behind it too.
[[nodiscard]] std::map<TaskId, processes::PutOrder> order_puts(const Plan& plan);

}  // namespace harpe::cuda
