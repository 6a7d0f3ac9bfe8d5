#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/unit/sim/plans.h"

namespace harpe {
namespace {

// The results of ulysses return as sends of a library: each rank's sends are one launch.
TEST(Groups, sends_that_wait_for_their_packing_alone_start_once) {
  const Plan plan = plan_of("attention", {"seq=4096", "heads=8", "head_dim=64"}, "cp=4", "ulysses");
  for (const Launch launch : {Launch::Graph, Launch::Host}) {
    SimulateOptions options;
    options.launch = launch;
    const Simulation simulation = *simulate(plan, plain_machine(100), options);
    std::int64_t sends = 0;
    std::int64_t starts = 0;
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind != TaskKind::Copy || plan.tasks[i].via != Via::Nccl) continue;
      ++sends;
      const Span& span = simulation.tasks[i];
      if (span.begin - span.ready >= from_microseconds(10)) ++starts;
    }
    EXPECT_EQ(sends, 4 * 3);
    EXPECT_EQ(starts, 4);
  }
}

}  // namespace
}  // namespace harpe
