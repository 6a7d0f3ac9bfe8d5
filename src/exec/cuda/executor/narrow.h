#pragma once

#include <functional>
#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/actions/launch_spec.h"
#include "plan/plan.h"

namespace harpe::cuda {

// Partial states of f32 that launches make at once, and that everybody who reads them rounds to the
// type of 16 bits that they end in, are left in that type: one rounding either way, and half the
// bytes cross. They begin where the plan has them, and take half the room.
class NarrowStates {
 public:
  // What a Compute task becomes, of any rank: every process must decide alike.
  using LaunchesOf = std::function<Checked<std::vector<LaunchSpec>>(TaskId)>;
  // `arenas`: where each rank's begins. Errors: those of `launches`.
  [[nodiscard]] static Checked<NarrowStates> find(const Plan& plan,
                                                  const std::vector<std::byte*>& arenas,
                                                  int multiprocessors, const LaunchesOf& launches);

  // The allocations of all of them.
  [[nodiscard]] std::vector<AllocId> allocs() const;
  // What reads one of them, in its type.
  void read(actions::Action& action) const;
  // What makes one of them, left in its type.
  void leave(std::vector<LaunchSpec>& launches) const;

 private:
  struct State {
    AllocId alloc;
    DeviceAddress begin = 0;
    DeviceAddress end = 0;  // in f32
    DType dtype = DType::BF16;
  };
  [[nodiscard]] static bool leave(const State& state, LaunchSpec& launch);

  std::vector<State> states_;
};

// Allocations of partial states in whose place copies, exchanges and roundings read nothing but
// their blocks' final type, and at least one on the way to another rank.
[[nodiscard]] std::vector<AllocId> find_rounded_states(const Plan& plan);

}  // namespace harpe::cuda
