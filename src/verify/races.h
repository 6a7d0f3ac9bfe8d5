#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "plan/plan.h"
#include "support/diag.h"
#include "support/time_limit.h"
#include "verify/clocks.h"
#include "verify/order.h"
#include "verify/resolved.h"
#include "verify/words.h"

namespace harpe::verifier {

// Called for each task with what is over when it starts.
using AtStart = std::function<Checked<Ok>(std::int32_t task, const Row& over)>;

// Whether something besides the order of tasks has `writer` write a cell before `reader` reads it.
using OrdersCell = std::function<bool(std::size_t cell, std::int32_t writer, std::int32_t reader)>;

// Every two tasks that touch the same memory, one of them writing, are ordered. Memory is the slot:
// two contents of one slot conflict whatever their blocks, equal contents only where a block is the
// same. Entry and Exit touch all slots of their rank (D11).
//
// A collective reads remote parts through the member on the rank that has them (that member sends);
// so a read counts for that member, and members are unordered among themselves.
//
// Of launches (`scope`): two executions in a row, and every step begins behind its rank's Entry.
// Other ranks may then touch a slot before its rank's Entry and after its Exit, since credits say
// when it is free; homes not, nor slots where plans take turns. With `orders_cell`, which it may
// say of a cell that has one writer and one reader, `order.sequence` has the writer first. Errors:
// those of `at_start` for any task; V401-V406; V709; I505.
[[nodiscard]] Checked<Ok> check_races(const Plan& plan, const Words& words,
                                      const Resolved& resolved, const Order& order,
                                      const Scope& scope, const TimeLimit& limit,
                                      const AtStart& at_start = {},
                                      const OrdersCell& orders_cell = {});

}  // namespace harpe::verifier
