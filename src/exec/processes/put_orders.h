#pragma once

#include <map>
#include <vector>

#include "ir/form.h"
#include "plan/plan.h"
#include "transport/descriptor.h"

namespace harpe::processes {

// How the signal behind a put is ordered, and what may follow it in its rank's queue.
struct PutOrder {
  Fence fence = Fence::PerPut;
  transport::Follows follows = transport::Follows::Nothing;
  friend bool operator==(const PutOrder&, const PutOrder&) = default;
};

// Per put, the strictest fence of its signals to the receiver, which the network raises behind the
// put. Other ranks learn of a put once it is complete at its receiver, under any fence.
[[nodiscard]] std::map<TaskId, Fence> find_fences(const Plan& plan);

// The orders of these puts, by ascending id, as docs/simulator.md prices them. A put without a
// fence uses the fence of the next one in its queue. Consecutive puts form a batch: to one rank
// with `dest` and `batch`, to any rank with `epoch`. A put that waits for other tasks, or before
// which its queue has waited, begins a new batch, because that wait may depend on signals of the
// earlier puts.
[[nodiscard]] std::map<TaskId, PutOrder> order_puts(const Plan& plan,
                                                    const std::vector<TaskId>& puts);

}  // namespace harpe::processes
