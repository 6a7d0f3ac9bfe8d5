#pragma once

#include "exec/actions/action.h"

namespace harpe::cpu {

// Runs a task's actions in order on the calling thread. Allocates nothing.
void run(const actions::TaskWork& work);

// Actions that follow a route.
void run_action(const actions::GatherRows& gather);
void run_action(const actions::CombineRows& combine);
void run_action(const actions::ChooseExperts& choose);
void run_action(const actions::LimitChoices& limit);

}  // namespace harpe::cpu
