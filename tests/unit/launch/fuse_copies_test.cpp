#include <gtest/gtest.h>

#include <algorithm>

#include "plan/refs.h"
#include "tests/unit/exec/plans.h"
#include "tests/unit/launch/pass_run.h"

namespace harpe::launch::passing {
namespace fuse_copies_test {

constexpr std::int64_t kBytes = 3 * kChunkBytes + 16;
const std::vector<void (*)(Draft&)> kPasses = {join_panels, fuse_copies};

// GEMMs, one kernel per rank; each rank's `tma` pushes its rows of A to the other ranks.
struct Pushed {
  Plan plan;
  std::int64_t first = -1;  // first GEMM of rank 0's kernel
  std::int64_t last = -1;
  std::int64_t sent = -1;  // rank 0's copy

  // `alone`: how many of a rank's GEMMs are separate launches before the kernel.
  explicit Pushed(std::int64_t ranks = 2, int alone = 0)
      : plan(harpe::test::gather_gemm(ranks, 256 * ranks, 1024, 256, "bf16")) {
    for (Queue& queue : plan.queues) {
      if (queue.kind == QueueKind::Ce) queue.kind = QueueKind::Tma;
    }
    std::vector<int> seen(static_cast<std::size_t>(ranks), 0);
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      Task& task = plan.tasks[i];
      const TaskId id(static_cast<std::int64_t>(i));
      const RankId rank = rank_of(plan, id);
      if (task.kind == TaskKind::Compute && ++seen[rank.index()] > alone) {
        task.kernel = static_cast<std::int32_t>(rank.value);
        if (rank == RankId(0)) (first < 0 ? first : last) = id.value;
      }
      if (task.kind != TaskKind::Copy) continue;
      const Alloc& from = plan.allocs[task.reads.front().alloc.index()];
      task.queue = copy_queue_of(from.rank);
      task.via = Via::Tma;
      task.bytes = kBytes;
      if (from.rank == RankId(0)) sent = id.value;
    }
  }

  [[nodiscard]] QueueId copy_queue_of(RankId rank) const {
    const auto found = std::ranges::find_if(plan.queues, [&](const Queue& queue) {
      return queue.rank == rank && queue.kind == QueueKind::Tma;
    });
    return QueueId(found - plan.queues.begin());
  }
  [[nodiscard]] Alloc& sent_from() {
    const Task& task = plan.tasks[static_cast<std::size_t>(sent)];
    return plan.allocs[task.reads.front().alloc.index()];
  }
};

// Expects that after the passes the copy is a separate launch and the kernel makes no copies.
void expect_apart(const PassRun& it, const Pushed& pushed, const std::string& why) {
  EXPECT_EQ(it.decided(pushed.first), why);
  EXPECT_EQ(it.launch_of(pushed.sent), it.launch_before(pushed.sent));
  EXPECT_EQ(it.launch_of(pushed.first), it.launch_before(pushed.first));
  EXPECT_EQ(it.launch_of(pushed.first).does, ids({pushed.first, pushed.last}))
      << "the kernel is one all the same";
}

TEST(FuseCopies, makes_them_in_the_kernel_that_begins_with_the_execution) {
  const Pushed pushed;
  std::int32_t reserved = -1;
  Abilities can;
  can.copy_blocks = 5;
  can.can = [&](const Launch& launch, const Kernel& kernel) {
    if (!kernel.fused_copies.empty()) reserved = launch.reserved_sms;
    return true;
  };
  PassRun it(pushed.plan, can);
  it.run(kPasses);
  EXPECT_EQ(it.decided(pushed.first), "applied");
  const Launch& launch = it.launch_of(pushed.sent);
  EXPECT_EQ(launch.does, ids({pushed.first, pushed.sent, pushed.last}));
  EXPECT_TRUE(launch.raises.empty()) << "the copy's signal is raised chunk by chunk";
  const Kernel& kernel = launch.kernels.front();
  ASSERT_EQ(kernel.fused_copies.size(), 1U);
  const FusedCopy& copy = kernel.fused_copies.front();
  const Task& task = it.plan.tasks[static_cast<std::size_t>(pushed.sent)];
  EXPECT_EQ(copy.from.alloc, task.reads.front().alloc);
  EXPECT_EQ(copy.to.alloc, task.writes.front().alloc);
  EXPECT_EQ(copy.from.span, copy.to.span);
  EXPECT_EQ(copy.raises, it.signal_from(pushed.sent, 1));
  EXPECT_TRUE(copy.raises.has_value());
  EXPECT_EQ(kernel.copy_blocks, 6) << "in pairs";
  EXPECT_EQ(reserved, kSmsForKernels) << "for what must run beside the kernel";
  EXPECT_TRUE(it.draft->is_silent(TaskId(pushed.sent), it.draft->steps.size()));
}

// Other ranks may need the copy to do the work that this kernel waits for.
TEST(FuseCopies, leaves_copies_apart_where_the_kernel_begins_later) {
  const Pushed behind_another(3, 1);
  PassRun later(behind_another.plan);
  later.run(kPasses);
  expect_apart(later, behind_another, refusal(Reason::NotFirst, behind_another.first));
  const Pushed pushed;
  PassRun it(pushed.plan);
  it.wiring.tasks[static_cast<std::size_t>(pushed.first)].after = {TaskId(pushed.last)};
  it.run(kPasses);
  EXPECT_EQ(it.decided(pushed.first), refusal(Reason::NotFirst, pushed.first));
  EXPECT_EQ(it.launch_of(pushed.sent), it.launch_before(pushed.sent));
}

TEST(FuseCopies, leaves_copies_apart_that_are_launched_before_the_kernel) {
  const Pushed pushed;
  PassRun it(pushed.plan);
  // Moves the kernel to the end of its rank's sequence.
  std::vector<TaskId>& sequence = it.wiring.sequence[0];
  for (const std::int64_t task : {pushed.first, pushed.last}) {
    std::erase(sequence, TaskId(task));
    sequence.emplace_back(task);
  }
  it.run(kPasses);
  expect_apart(it, pushed, refusal(Reason::CopiesBegun, pushed.sent));
}

TEST(FuseCopies, leaves_copies_apart_where_ranks_share_sms) {
  const Pushed pushed;
  Abilities can;
  can.shares_sms = true;
  PassRun it(pushed.plan, can);
  it.run(kPasses);
  expect_apart(it, pushed, refusal(Reason::SharedSms));
}

TEST(FuseCopies, leaves_copies_apart_that_are_not_free) {
  Pushed made;  // an earlier task writes it
  made.sent_from().level = Level::Pack;
  PassRun of_made(made.plan);
  of_made.run(kPasses);
  expect_apart(of_made, made, refusal(Reason::CopyNotFree, made.sent));

  const Pushed pushed;
  const auto at = static_cast<std::size_t>(pushed.sent);
  const std::string not_free = refusal(Reason::CopyNotFree, pushed.sent);
  PassRun waiting(pushed.plan);
  waiting.add_wait(pushed.sent, 1);
  waiting.run(kPasses);
  expect_apart(waiting, pushed, not_free);

  PassRun twice(pushed.plan);  // raises two signals
  twice.wiring.tasks[at].raises.push_back(twice.wiring.tasks[at].raises.front());
  twice.run(kPasses);
  expect_apart(twice, pushed, not_free);

  PassRun unheard(pushed.plan);
  unheard.wiring.tasks[at].raises.clear();
  unheard.run(kPasses);
  expect_apart(unheard, pushed, not_free);

  PassRun posted(pushed.plan);  // goes to another node
  posted.wiring.tasks[at].raises.front().is_posted = true;
  posted.run(kPasses);
  expect_apart(posted, pushed, not_free);

  PassRun behind(pushed.plan);  // waits for another task
  behind.wiring.tasks[at].after = {TaskId(pushed.last)};
  behind.run(kPasses);
  expect_apart(behind, pushed, not_free);
}

TEST(FuseCopies, leaves_copies_apart_that_the_copy_engine_does_not_make) {
  const Pushed pushed;
  Abilities can;
  can.edit = [&](TaskId task, Kernel& kernel) {
    if (task == TaskId(pushed.sent)) kernel.name = "move";  // rows with gaps
  };
  PassRun it(pushed.plan, can);
  it.run(kPasses);
  expect_apart(it, pushed, refusal(Reason::CopyNotFree, pushed.sent));
}

TEST(FuseCopies, leaves_copies_apart_where_no_kernel_has_blocks_for_them) {
  const Pushed pushed;
  Abilities can;
  can.can = [](const Launch&, const Kernel& kernel) { return kernel.fused_copies.empty(); };
  PassRun it(pushed.plan, can);
  it.run(kPasses);
  expect_apart(it, pushed, refusal(Reason::NoKernel, 2, 2));
}

TEST(FuseCopies, leaves_nothing_to_do_beside_the_kernel) {
  const Pushed pushed;
  PassRun fused(pushed.plan);
  fused.run({join_panels, fuse_copies, reserve_sms});
  EXPECT_EQ(fused.launch_of(pushed.first).reserved_sms, 0);
  PassRun apart(pushed.plan);
  apart.run({join_panels, reserve_sms});
  EXPECT_GT(apart.launch_of(pushed.first).reserved_sms, 0);
}

TEST(FuseCopies, has_no_rule_for_copies_of_a_copy_engine) {
  Pushed pushed;
  for (Task& task : pushed.plan.tasks) {
    if (task.via == Via::Tma) task.via = Via::Ce;
  }
  PassRun it(pushed.plan);
  it.run(kPasses);
  expect_apart(it, pushed, "");
}

}  // namespace fuse_copies_test
}  // namespace harpe::launch::passing
