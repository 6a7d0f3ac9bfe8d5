#pragma once

#include <map>
#include <set>
#include <vector>

#include "exec/cuda/executor/units.h"

namespace harpe::cuda {

// Transfers of sums right behind the products that make them, and the total behind those: one
// launch then stores each panel where it is wanted, raises its signal, and adds what others have
// stored here (actions/fuse_stores.h).
class FusedStores {
 public:
  FusedStores(const Plan& plan, const Wiring& wiring, const std::vector<TaskSpecs>& specs,
              const SignalSource& signals)
      : plan_(plan), wiring_(wiring), specs_(specs), signals_(signals) {}

  // Takes such tasks behind the unit into it; `next` of each task in its queue.
  void fuse(UnitSpec& unit, const std::map<TaskId, TaskId>& next) const;

 private:
  [[nodiscard]] const TaskWiring& wiring_of(TaskId task) const {
    return wiring_.tasks[task.index()];
  }
  [[nodiscard]] bool can_leave(TaskId copy) const;
  [[nodiscard]] bool is_sole_reader(TaskId copy, const Ref& ref) const;
  [[nodiscard]] bool takes_total(UnitSpec& unit, GemmSpec staying, TaskId finalise) const;
  // The signal of `finalise` that says what lies there has come.
  [[nodiscard]] std::optional<std::int32_t> signal_of(TaskId finalise, DeviceAddress address) const;

  const Plan& plan_;
  const Wiring& wiring_;
  const std::vector<TaskSpecs>& specs_;
  const SignalSource& signals_;
};

}  // namespace harpe::cuda
