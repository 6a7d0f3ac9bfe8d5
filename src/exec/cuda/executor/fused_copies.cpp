#include "exec/cuda/executor/fused_copies.h"

#include <algorithm>

#include "exec/describe.h"

namespace harpe::cuda {
namespace {

// Where the schedule does not say (`sm`): enough to fill the way out of a GPU.
constexpr std::int64_t kBlocks = 12;

constexpr DeviceAddress kCopyAlignment = 16;

std::optional<device::CopyJob> job_of(const Task& task, const TaskSpecs& specs,
                                      const std::optional<device::RaiseTarget>& target) {
  if (!target || specs.launches.size() != 1) return std::nullopt;
  const auto* const copy = std::get_if<CopyLaunch>(&specs.launches.front());
  const bool fits = copy != nullptr && copy->rows == 1 && copy->bytes == task.bytes &&
                    copy->bytes % kCopyAlignment == 0 && copy->to % kCopyAlignment == 0 &&
                    copy->from % kCopyAlignment == 0;
  if (!fits) return std::nullopt;
  return device::CopyJob{.from = reinterpret_cast<const void*>(copy->from),
                         .to = reinterpret_cast<void*>(copy->to),
                         .bytes = copy->bytes,
                         .ready = {},
                         .done = target->word};
}

// Nothing before it makes what it reads.
bool reads_inputs(const Plan& plan, const Task& task) {
  return std::ranges::all_of(task.reads, [&](const Ref& ref) {
    const Alloc& from = plan.allocs[ref.alloc.index()];
    return from.level == Level::Home && find_buffer(plan.program, from.buffer)->role == Role::In;
  });
}

// Blocks are pairs, as clusters are.
int blocks_of(const NormalForm& form) {
  std::int64_t blocks = kBlocks;
  for (const NestForm& nest : form.nests) {
    for (const NestItem& item : nest.items) {
      const auto* const move = std::get_if<Move>(&item);
      if (move != nullptr && move->transport() == Via::Tma) blocks = move->sm.value_or(kBlocks);
    }
  }
  return static_cast<int>((blocks + 1) / 2 * 2);
}

}  // namespace

std::optional<FusedCopies> find_fused_copies(const Plan& plan, const Wiring& wiring,
                                             const std::vector<TaskSpecs>& specs, RankId rank,
                                             const SignalSource& signals) {
  FusedCopies copies{.tasks = {}, .jobs = {}, .blocks = blocks_of(plan.form)};
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    if (rank_of(plan, id) != rank || granules_of(plan.tasks[i]) == 0) continue;
    const TaskWiring& own = wiring.tasks[i];
    const bool is_free = own.waits.empty() && own.raises.size() == 1 &&
                         !own.raises.front().is_posted && reads_inputs(plan, plan.tasks[i]) &&
                         std::ranges::all_of(own.after, [&](TaskId from) {
                           return plan.tasks[from.index()].kind == TaskKind::Entry;
                         });
    if (!is_free) return std::nullopt;
    const std::optional<device::CopyJob> job =
        job_of(plan.tasks[i], specs[i], signals.target(id, own.raises.front()));
    if (!job) return std::nullopt;
    copies.tasks.push_back(id);
    copies.jobs.push_back(*job);
  }
  if (copies.tasks.empty() || !signals.is_alone) return std::nullopt;
  return copies;
}

bool fuse_copies(const FusedCopies& copies, LaunchSpec& launch, int multiprocessors) {
  auto* const product = std::get_if<GemmSpec>(&launch);
  if (product == nullptr || !product->copies.empty()) return false;
  GemmSpec fusing = *product;
  fusing.copies = copies.jobs;
  fusing.copy_blocks = copies.blocks;
  if (!check(fusing, multiprocessors).ok()) return false;
  *product = std::move(fusing);
  return true;
}

}  // namespace harpe::cuda
