#pragma once

#include <cstdint>
#include <optional>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/model.h"
#include "verify/resolved.h"

namespace harpe::verifier {

// Structural checks that every proof relies on. Each check requires those above it.

// Every id, rank, name and box lies within the declarations of the plan, its program and its mesh;
// every slot has the dtype and the digits of its level. Errors: V204-V207.
[[nodiscard]] Checked<Ok> check_ids(const Plan& plan, const Model& model);

// Slots of equal name have equal offsets, slots of one rank do not overlap, each slot can hold what
// is put there, homes are where the outputs need them, and no rank's arena exceeds the limit.
// Errors: V208-V210, V214, V601.
[[nodiscard]] Checked<Ok> check_memory(const Plan& plan, const Model& model,
                                       const Resolved& resolved,
                                       const std::optional<std::int64_t>& limit);

// Each task runs on a queue of the right kind, accesses only what its kind may access and in that
// way, and is an Entry or Exit exactly where the rank needs one. Errors: V220-V230, V233-V235.
[[nodiscard]] Checked<Ok> check_tasks(const Plan& plan, const Model& model,
                                      const Resolved& resolved);

// The members of each collective group are parts of one operation.
// Errors: V231, V232.
[[nodiscard]] Checked<Ok> check_groups(const Plan& plan, const Model& model);

// Every signal between ranks is a flag or counter with one waiting task.
// Errors: V240-V242.
[[nodiscard]] Checked<Ok> check_signals(const Plan& plan, const Model& model);

// Every transfer declares the number of bytes that it receives from other ranks. Requires:
// check_tasks, check_groups. Errors: V236.
[[nodiscard]] Checked<Ok> check_bytes(const Plan& plan, const Model& model,
                                      const Resolved& resolved);

}  // namespace harpe::verifier
