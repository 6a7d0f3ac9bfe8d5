#pragma once

#include <map>
#include <set>
#include <vector>

#include "exec/cuda/executor/units.h"

namespace harpe::cuda {

// What else a rank's GPU must do while a kernel on it waits inside for signals, its own or a
// peer's: a kernel that fills the GPU lets no other begin, not even one that raises a signal or
// waits for one (measured, docs/gpu.md).
class ReservedSms {
 public:
  // For kernels that make what is waited for: the most that is left free.
  static constexpr int kForKernels = 8;

  struct Need {
    int multiprocessors = 0;          // to be left free
    std::vector<TaskId> behind = {};  // waits to be over before the kernel begins
  };

  ReservedSms(const Plan& plan, const Wiring& wiring, const Groups& groups,
              const std::vector<TaskSpecs>& specs, RankId rank, bool is_alone);

  // Whether the copy engine alone moves what the task moves, and can raise all it raises.
  [[nodiscard]] bool is_raised_by_engine(TaskId task) const;

  // Beside the kernel of `members`, of which `waiting` wait for anything; `silent` tasks need
  // no kernel of their own.
  [[nodiscard]] Need beside(const std::vector<TaskId>& members, const std::vector<TaskId>& waiting,
                            const std::set<TaskId>& silent) const;

 private:
  [[nodiscard]] const TaskWiring& wiring_of(TaskId task) const {
    return wiring_.tasks[task.index()];
  }
  [[nodiscard]] bool is_by_engine(TaskId task) const;
  [[nodiscard]] bool lands_here(TaskId task) const;
  [[nodiscard]] bool needs_no_kernel(TaskId producer, const std::set<TaskId>& silent) const;

  const Plan& plan_;
  const Wiring& wiring_;
  const Groups& groups_;
  const std::vector<TaskSpecs>& specs_;
  RankId rank_;
  bool is_alone_;
  std::map<TaskId, std::size_t> places_;  // in the rank's sequence
};

}  // namespace harpe::cuda
