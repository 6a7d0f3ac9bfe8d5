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

// What H200s offer for one plan: tasks' own launches at made-up addresses, one of each kind, and
// what becomes of them.
class SpecOffers : public launch::Offers {
 public:
  // Requires: all of it outlives this.
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
  // A kernel of a task alone, but for what its panels are stored in.
  struct KernelAlone {
    TaskId task;  // of those that are alike the one that was prepared
    std::size_t index = 0;
    std::vector<DType> stored = {};  // by panel
    std::int32_t reserved_sms = 0;
    friend auto operator<=>(const KernelAlone&, const KernelAlone&) = default;
  };
  // A kernel that a task's own are joined to, where the task that was prepared has its operands.
  struct MadeUp {
    launch::Kernel kernel;
    std::int32_t reserved_sms = 0;
    std::optional<std::string> variant;
  };
  // None where the launch does more than a task, or the kernel is another.
  [[nodiscard]] std::optional<KernelAlone> find_alone(const launch::Launch& launch,
                                                      const launch::Kernel& kernel);
  [[nodiscard]] std::optional<std::string> bind_and_choose(const launch::Launch& launch,
                                                           const launch::Kernel& kernel);
  [[nodiscard]] std::optional<std::string> choose_made_up(const launch::Launch& launch,
                                                          const launch::Kernel& kernel);
  Checked<Ok> prepare(TaskId id);
  // `sums`: by rank, of the collective.
  Checked<Ok> add_exchange(TaskId id, const std::map<RankId, launch::SumSteps>& sums);
  // `steps`: the rank's own; null for none.
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
  std::map<TaskId, std::vector<launch::Kernel>> batched_;  // by the task that was prepared
  std::map<KernelAlone, std::optional<std::string>> chosen_;
  std::map<TaskId, std::vector<MadeUp>> made_up_;  // by the task that was prepared
  std::size_t next_ = 0;  // kernel of a task that is asked for next, most often
};

}  // namespace harpe::cuda
