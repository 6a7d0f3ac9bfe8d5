#pragma once

#include <map>
#include <vector>

#include "ir/form.h"
#include "plan/plan.h"
#include "transport/descriptor.h"

namespace harpe::processes {

// How the signal behind a put is ordered, and what its rank's queue says may follow it.
struct PutOrder {
  Fence fence = Fence::PerPut;
  transport::Follows follows = transport::Follows::Nothing;
  friend bool operator==(const PutOrder&, const PutOrder&) = default;
};

// Per put the strictest fence of its signals to the rank that it goes to: what the network raises
// behind it. Other ranks hear of a put once it is over there, under any fence.
[[nodiscard]] std::map<TaskId, Fence> find_fences(const Plan& plan);

// Of those puts, in the order of their ids, as docs/simulator.md prices them: one without a fence
// goes with the next of its queue. Puts in a row are a batch, with `dest` and `batch` those to one
// rank, with `epoch` those to any; a put that waits for others begins one, and so does one before
// which its queue has waited: what it waited for may need the signals of those before.
[[nodiscard]] std::map<TaskId, PutOrder> order_puts(const Plan& plan,
                                                    const std::vector<TaskId>& puts);

}  // namespace harpe::processes
