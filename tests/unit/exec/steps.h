#pragma once

#include <vector>

#include "exec/cpu/launch_target.h"
#include "exec/cpu/prepare_steps.h"

namespace harpe::test {

// The launches of CPU ranks for a plan, as steps.
inline cpu::LaunchSteps steps_of(const Plan& plan) {
  return cpu::make_steps(plan, cpu::launches_of(plan, false).value()).value();
}

// Steps without work.
inline cpu::StepWork no_work(const Plan& plan) {
  cpu::StepWork work;
  for (const std::vector<cpu::Step>& queue : steps_of(plan).queues) work.emplace_back(queue.size());
  return work;
}

}  // namespace harpe::test
