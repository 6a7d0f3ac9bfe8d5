#include "exec/cpu/runner.h"
#include "support/check.h"

namespace harpe::cpu {

// Single-threaded: the choices determine the interleaving, so a test can enumerate or replay them.
RunOutcome run_stepper(Marking& marking, const CpuOptions& options) {
  const Marking::Wake nobody = [](std::int32_t) {};
  RunOutcome outcome;
  while (true) {
    std::vector<std::int32_t> ready;
    bool finished = true;
    for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
      if (marking.is_finished(queue)) continue;
      finished = false;
      if (marking.is_ready(queue)) ready.push_back(queue);
    }
    outcome.finished = finished;
    if (ready.empty()) return outcome;
    const std::size_t choice = options.choose ? options.choose(ready.size()) : 0;
    HP_CHECK(choice < ready.size(), "a choice among the ready lanes");
    if (options.lose_worker_at && marking.is_at(ready[choice], *options.lose_worker_at)) {
      outcome.lost.push_back(ready[choice]);
      return outcome;
    }
    marking.step(ready[choice], nobody);
  }
}

}  // namespace harpe::cpu
