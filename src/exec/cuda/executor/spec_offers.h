#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "exec/cuda/executor/located_places.h"
#include "exec/cuda/executor/made_up_memory.h"
#include "exec/cuda/executor/proposals.h"
#include "exec/cuda/executor/task_likeness.h"
#include "launch/target.h"

namespace harpe::cuda {

// What H200s offer for one plan: tasks' own launches at made-up addresses, one of each kind, and
// what becomes of them.
class SpecOffers : public launch::Offers {
 public:
  // Requires: all of it outlives this.
  SpecOffers(const Plan& plan, const Blocks& blocks, const launch::Exchanges& exchanges,
             const std::vector<AllocId>& partials16, int multiprocessors);

  Checked<std::vector<launch::Kernel>> kernels_of(TaskId id) override;
  Checked<std::vector<launch::Kernel>> landing_of(TaskId put) override;
  bool counts_rows(TaskId id) override;
  std::vector<launch::Kernel> batched(const std::vector<TaskId>& tasks) override;
  std::optional<std::string> choose(const launch::Launch& launch,
                                    const launch::Kernel& kernel) override;

 private:
  // What a task, or several, become, how that is described, and what the task names.
  struct Work {
    std::vector<LaunchSpec> specs;
    std::vector<launch::Kernel> kernels;
    std::vector<LaidRef> refs = {};
    TaskId like = {};  // which has such specs and kernels; not valid: it has its own
  };

  [[nodiscard]] Work& work_of(TaskId id) { return works_[id.index()]; }
  // Its own specs, or those of the task that it is like.
  [[nodiscard]] const Work& prepared_of(TaskId id) const;
  Checked<Ok> prepare(TaskId id);
  // The kernels of a task of the same kind; none where a place is none that the task names.
  [[nodiscard]] std::optional<std::vector<launch::Kernel>> kernels_like(TaskId id,
                                                                        TaskId like) const;
  Checked<Ok> prepare_exchange(TaskId id, const std::map<RankId, launch::SumSteps>& sums);
  [[nodiscard]] std::vector<launch::Kernel> described(const std::vector<LaunchSpec>& specs,
                                                      std::span<const TaskId> tasks);
  // Specs of all the tasks at their own addresses. Requires: kernels_of gave no error.
  [[nodiscard]] std::vector<LaunchSpec> own_specs(std::span<const TaskId> tasks);
  [[nodiscard]] std::vector<TaskId> computes_of(const launch::Launch& launch) const;
  // What the launch's only computing task is on its own; null where the kernel is another.
  [[nodiscard]] const LaunchSpec* find_own(const launch::Launch& launch,
                                           const launch::Kernel& kernel) const;
  [[nodiscard]] LocatedPlaces places_of(const launch::Launch& launch);
  [[nodiscard]] std::optional<LaunchSpec> propose(const launch::Launch& launch,
                                                  const launch::Kernel& kernel);
  [[nodiscard]] std::optional<LaunchSpec> propose_gemm(const launch::Launch& launch,
                                                       const launch::Kernel& kernel);
  [[nodiscard]] std::optional<LaunchSpec> propose_attention(const launch::Launch& launch,
                                                            const launch::Kernel& kernel);
  // The launches of the tasks as one; null where no kernel has them so.
  [[nodiscard]] const Work* joined(const std::vector<TaskId>& tasks);
  // False where they are no single runs of bytes as the copying blocks take them.
  [[nodiscard]] bool add_copies(const launch::Launch& launch, const launch::Kernel& kernel,
                                GemmSpec& spec);

  const launch::Exchanges& exchanges_;
  MadeUpMemory memory_;
  CollectiveChoice no_choice_;
  NarrowStates narrow_;
  SpecSource source_;
  KernelPlaces places_;
  RefLayouts layouts_;
  TaskLikeness likeness_;
  std::vector<Work> works_;                                                 // by task
  std::unordered_map<TaskLikeness::Key, TaskId, launch::WordsHash> known_;  // a task of each kind
  std::map<TaskId, Work> batches_;                                          // by the first task
  std::map<TaskId, Work> joined_;                                           // by the first task
};

}  // namespace harpe::cuda
