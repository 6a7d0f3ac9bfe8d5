#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "exec/cuda/target/describe_kernel.h"
#include "exec/cuda/target/made_up_memory.h"
#include "exec/cuda/target/task_likeness.h"
#include "launch/target.h"

namespace harpe::cuda {

// What H200s offer for one plan: the tasks' own launches at made-up addresses, prepared once for
// tasks that are alike, and kernels made from them.
class SpecOffers : public launch::Offers {
 public:
  // Requires: all arguments outlive this.
  SpecOffers(const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
             const std::vector<AllocId>& partials16, int multiprocessors);

  Checked<std::span<const launch::Kernel>> kernels_of(TaskId id) override;
  Checked<std::vector<launch::Kernel>> landing_of(TaskId put) override;
  bool counts_rows(TaskId id) override;
  std::vector<launch::Kernel> batched(const std::vector<TaskId>& tasks) override;
  std::optional<std::string> choose(const launch::Launch& launch,
                                    const launch::Kernel& kernel) override;
  bool moves_by_threads(const launch::Kernel& kernel, DType dtype) override;
  bool bounds_epochs(const launch::Kernel& kernel) override;

 private:
  // A task's own kernel, and the types that its panels are stored in.
  struct KernelAlone {
    TaskId task;  // the prepared one of the tasks that are alike
    std::size_t index = 0;
    std::vector<DType> stored = {};  // by panel
    std::int32_t reserved_sms = 0;
    friend auto operator<=>(const KernelAlone&, const KernelAlone&) = default;
  };
  // A kernel that joins a task's own ones, with the operands of the prepared task.
  struct MadeUp {
    launch::Kernel kernel;
    std::int32_t reserved_sms = 0;
    std::optional<std::string> variant;
  };
  // None if the launch does more than one task, or the kernel differs.
  [[nodiscard]] std::optional<KernelAlone> find_alone(const launch::Launch& launch,
                                                      const launch::Kernel& kernel);
  [[nodiscard]] std::optional<std::string> bind_and_choose(const launch::Launch& launch,
                                                           const launch::Kernel& kernel);
  [[nodiscard]] std::optional<std::string> choose_made_up(const launch::Launch& launch,
                                                          const launch::Kernel& kernel);
  Checked<Ok> prepare(TaskId id);
  // `sums`: by rank, of the collective.
  Checked<Ok> add_exchange(TaskId id, const std::map<RankId, launch::SumSteps>& sums);
  // `steps`: the rank's own; null: none.
  Checked<Ok> prepare_exchange(TaskId id, const launch::SumSteps* steps);
  [[nodiscard]] std::optional<TaskLikeness::Key> key_of(const launch::SumSteps* steps);
  [[nodiscard]] std::vector<launch::Kernel> batched_alone(TaskId task);

  const launch::Exchanges& exchanges_;
  MadeUpMemory memory_;
  CollectiveChoice no_choice_;
  NarrowStates narrow_;
  SpecSource source_;
  TaskLikeness likeness_;
  std::vector<TaskAlone> alone_;                                            // by task
  std::unordered_map<TaskLikeness::Key, TaskId, launch::WordsHash> known_;  // a task of each kind
  std::unordered_map<TaskLikeness::Key, TaskId, launch::WordsHash> known_exchanges_;
  std::map<TaskId, std::vector<launch::Kernel>> batched_;  // by the prepared task
  std::map<KernelAlone, std::optional<std::string>> chosen_;
  std::map<TaskId, std::vector<MadeUp>> made_up_;  // by the prepared task
  std::size_t next_ = 0;                           // the kernel that is probably requested next
};

}  // namespace harpe::cuda
