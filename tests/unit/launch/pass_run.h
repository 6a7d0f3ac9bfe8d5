#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/passes.h"
#include "tests/unit/launch/fake_target.h"

namespace harpe::launch::passing {

// Passes over a plan, for a target whose kernels have the given abilities. Groups and wiring are
// the plan's; a test may change them before the passes run.
class PassRun {
 public:
  explicit PassRun(Plan of, Abilities abilities = {});
  PassRun(const PassRun&) = delete;
  PassRun& operator=(const PassRun&) = delete;

  // Makes every task a launch, then runs the passes. Call it once.
  void run(const std::vector<void (*)(Draft&)>& passes);

  // After the last pass and before it: the launch that does the task.
  [[nodiscard]] const Launch& launch_of(std::int64_t task) const;
  [[nodiscard]] const Launch& launch_before(std::int64_t task) const;
  // The last pass's decision about the task; "" if there is none.
  [[nodiscard]] std::string decided(std::int64_t task) const;
  // The signal to `rank` that reports the end of the task.
  [[nodiscard]] std::optional<SignalId> signal_from(std::int64_t task, std::int64_t rank) const;
  // Adds a signal for the end of `from` that the task waits for. Returns its place in the rank's
  // page.
  std::int32_t add_wait(std::int64_t task, std::int64_t from);

  [[nodiscard]] AllocId alloc(std::int64_t rank, std::string_view buffer, Level level) const;

  Plan plan;
  Blocks blocks;
  Abilities can;
  sync::Groups groups;
  sync::Wiring wiring;
  std::optional<Draft> draft;

 private:
  LaunchPlan before_;
  LaunchPlan behind_;
  Target::Facts facts_;
  FakeOffers offers_;
};

[[nodiscard]] std::vector<TaskId> ids(const std::vector<std::int64_t>& tasks);
// The text of a refusal.
[[nodiscard]] std::string refusal(Reason reason, std::int64_t a = 0, std::int64_t b = 0);

// GEMM + reduce-scatter on three ranks. On rank 0, tasks 3, 6 and 9 make the sums of ranks 0, 1 and
// 2 in one kernel, 13 and 17 send the last two, and 18 adds what ranks 1 and 2 send by 15 and 12.
[[nodiscard]] Plan push_sums();

// GEMM + reduce-scatter on two ranks whose drain is cut in two. On rank 0, tasks 2 to 8 make the
// sums, 12 and 13 send those of rank 1, and 14 and 15 add what rank 1 sends by 10 and 11.
[[nodiscard]] Plan parted_sums();

// GEMM + all-reduce on two ranks. On rank 0, tasks 2 and 4 make both ranks' sums in one kernel, 7
// sends those of rank 1, 8 adds what rank 1 sends by 6 to its own, and 11 sends the total.
[[nodiscard]] Plan all_sums();

// GEMM + one-shot all-reduce on three ranks. On rank 0, task 3 makes the sums, 7 and 11 send them
// to ranks 1 and 2, 12 leaves a copy here, and 15 adds this copy and what ranks 1 and 2 send by 9
// and 6.
[[nodiscard]] Plan one_shot();

// Decode on two ranks. On rank 0, task 2 makes the states of all heads, 5 sends rank 1's heads, and
// 6 combines its own heads with what rank 1 sends by 4; on rank 1 they are 3, 4 and 7.
[[nodiscard]] Plan states();

// y = gelu(a b + bias) on two ranks, after all-gather + GEMM. On rank 0, tasks 6 and 8 make rows of
// the GEMM's result, 10 rounds it, 12 adds the bias and 14 applies gelu; on rank 1 each is the next
// number.
[[nodiscard]] Plan mapped();

}  // namespace harpe::launch::passing
