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

// Called for each task with the tasks that are over when it starts.
using AtStart = std::function<Checked<Ok>(std::int32_t task, const Row& over)>;

// Whether something other than the order of tasks makes `writer` write a cell before `reader` reads
// it.
using OrdersCell = std::function<bool(std::size_t cell, std::int32_t writer, std::int32_t reader)>;

// Checks that every two tasks that access the same memory are ordered if one of them writes. Memory
// is the slot: different contents of a slot always conflict, equal contents only in common blocks.
// Entry and Exit access all slots of their rank (D11).
//
// A member of a collective reads remote parts through the member that owns them and sends them.
// Such a read counts as an access of the sending member. Members are unordered among themselves.
//
// For launches (`scope`): it checks two consecutive executions, and that every step begins behind
// its rank's Entry. Other ranks may access a slot before its rank's Entry and after its Exit,
// because credits report when it is free; they may not access homes then, nor any slot if plans
// take turns. `orders_cell` may order cells with one writer and one reader; `order.sequence` then
// has the writer first. Errors: those of `at_start` for any task; V401-V406; V709; I505.
[[nodiscard]] Checked<Ok> check_races(const Plan& plan, const Words& words,
                                      const Resolved& resolved, const Order& order,
                                      const Scope& scope, const TimeLimit& limit,
                                      const AtStart& at_start = {},
                                      const OrdersCell& orders_cell = {});

}  // namespace harpe::verifier
