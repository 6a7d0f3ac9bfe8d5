#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "launch/exchanges.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::launch {

// What passes ask about the kernels of a target for one plan. It keeps what it has found.
class Offers {
 public:
  virtual ~Offers() = default;

  // What a task becomes on its own, in order: with arrivals and panels where the kernel has them,
  // and without signals. Of a put to another rank its packing. Errors: what the target has no
  // kernel for. Valid until it is asked for another's.
  [[nodiscard]] virtual Checked<std::span<const Kernel>> kernels_of(TaskId task) = 0;
  // The same of the receiver's side of a put.
  [[nodiscard]] virtual Checked<std::vector<Kernel>> landing_of(TaskId put) = 0;
  // Whether all kernels of the task learn as they run how many of their rows are used.
  [[nodiscard]] virtual bool counts_rows(TaskId task) = 0;
  // The kernels of tasks in order, of which neighbours that differ in their operands alone and do
  // not depend on each other are one.
  [[nodiscard]] virtual std::vector<Kernel> batched(const std::vector<TaskId>& tasks) = 0;
  // The variant of the target's kernel that does `kernel` for the tasks of `launch` on the SMs that
  // it does not reserve, whatever the launch's own kernels; none where no kernel can.
  [[nodiscard]] virtual std::optional<std::string> choose(const Launch& launch,
                                                          const Kernel& kernel) = 0;
  // Whether threads of the kernel's variant store panels of that type, and read addends of it,
  // element by element, and can tell whether an element is there.
  [[nodiscard]] virtual bool moves_by_threads(const Kernel& kernel, DType dtype) = 0;
  // Whether the kernel's variant can begin and end its rank's execution itself.
  [[nodiscard]] virtual bool bounds_epochs(const Kernel& kernel) = 0;
};

// What ranks run on, and the kernels that it offers.
class Target {
 public:
  virtual ~Target() = default;

  struct Facts {
    std::string name;         // "h200"
    std::string copy_engine;  // the name of its kernel
    // Whether kernels wait for signals inside, and ranks land the puts that come to them. Without,
    // each task is run by itself, and a put is over once its data is in place.
    bool waits_inside = true;
    std::int32_t sms = 0;          // 0: it has none
    bool shares_gpus = false;      // ranks do
    bool takes_turns = false;      // other plans use the ranks' memory between executions
    std::int64_t chunk_bytes = 0;  // what blocks of a kernel copy at a time
    std::int32_t sms_for_signals =
        0;  // what a kernel that fills the others leaves to raise signals
    std::int32_t sms_for_kernels = 0;  // ... and to kernels that make what it waits for
    std::int32_t copy_blocks = 0;      // of fused copies, where the schedule does not say
    std::int64_t most_in_data = 0;     // bytes that a kernel awaits in data
    std::size_t most_bounds = 0;  // ranks that a kernel which bounds an execution awaits, or tells
    ExchangeRules exchanges;
  };
  [[nodiscard]] virtual const Facts& facts() const = 0;

  // Errors: what the target cannot do of the plan, whatever the kernels.
  [[nodiscard]] virtual Checked<Ok> check(const Plan& plan) const = 0;
  // Offers for a plan of which the library does `exchanges`, and kernels store the partial states
  // `partials16` in 16 bits. Requires: all arguments outlive the offers; check is ok.
  [[nodiscard]] virtual std::unique_ptr<Offers> open(
      const Plan& plan, const Blocks& blocks, const Exchanges& exchanges,
      const std::vector<AllocId>& partials16) const = 0;
};

}  // namespace harpe::launch
