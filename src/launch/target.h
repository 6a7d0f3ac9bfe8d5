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

// The kernels that a target offers for one plan, as passes query them. Results are cached.
class Offers {
 public:
  virtual ~Offers() = default;

  // The kernels of a task on its own, in order: with arrivals and panels where the kernel has them,
  // and without signals. For a put to another rank: the kernels that pack it. Errors: the target
  // has no kernel for the task. The result is valid until the next call.
  [[nodiscard]] virtual Checked<std::span<const Kernel>> kernels_of(TaskId task) = 0;
  // The kernels of the receiver's side of a put.
  [[nodiscard]] virtual Checked<std::vector<Kernel>> landing_of(TaskId put) = 0;
  // True if all kernels of the task find out only while they run how many of their rows are used.
  [[nodiscard]] virtual bool counts_rows(TaskId task) = 0;
  // The kernels of the tasks in order. Neighbours that differ only in their operands and do not
  // depend on each other become one kernel.
  [[nodiscard]] virtual std::vector<Kernel> batched(const std::vector<TaskId>& tasks) = 0;
  // The variant of the target's kernel that does `kernel` for the tasks of `launch` on the SMs that
  // the launch does not reserve; it ignores the launch's own kernels. None where no kernel can.
  [[nodiscard]] virtual std::optional<std::string> choose(const Launch& launch,
                                                          const Kernel& kernel) = 0;
  // True if threads of the kernel's variant store panels of that type, and read addends of it,
  // element by element, and can detect whether an element has arrived.
  [[nodiscard]] virtual bool moves_by_threads(const Kernel& kernel, DType dtype) = 0;
  // True if the kernel's variant can begin and end its rank's execution itself.
  [[nodiscard]] virtual bool bounds_epochs(const Kernel& kernel) = 0;
};

// The hardware that ranks run on, and the kernels that it offers.
class Target {
 public:
  virtual ~Target() = default;

  struct Facts {
    std::string name;         // "h200"
    std::string copy_engine;  // the name of its kernel
    // True if kernels wait for signals inside, and ranks land the puts sent to them. Otherwise each
    // task runs by itself, and a put is over once its data is in place.
    bool waits_inside = true;
    std::int32_t sms = 0;              // 0: the target has no SMs
    bool shares_sms = false;           // several ranks share a GPU and its SMs
    bool takes_turns = false;          // other plans use the ranks' memory between executions
    std::int64_t chunk_bytes = 0;      // what thread blocks of a kernel copy at a time
    std::int32_t sms_for_signals = 0;  // SMs left free to raise signals
    std::int32_t sms_for_kernels = 0;  // SMs left free for kernels that make what it waits for
    std::int32_t copy_blocks = 0;      // for fused copies, unless the schedule states it
    std::int64_t most_in_data = 0;     // bytes that a kernel awaits in data
    std::size_t most_bounds = 0;       // ranks that a kernel which bounds an execution awaits, or
                                       // signals
    ExchangeRules exchanges;
  };
  [[nodiscard]] virtual const Facts& facts() const = 0;

  // Errors: what the target cannot do for the plan, whatever the kernels.
  [[nodiscard]] virtual Checked<Ok> check(const Plan& plan) const = 0;
  // Offers for a plan whose `exchanges` the library executes, and whose partial states `partials16`
  // kernels store in 16 bits. Requires: all arguments outlive the offers; check succeeded.
  [[nodiscard]] virtual std::unique_ptr<Offers> open(
      const Plan& plan, const Blocks& blocks, const Exchanges& exchanges,
      const std::vector<AllocId>& partials16) const = 0;
};

}  // namespace harpe::launch
