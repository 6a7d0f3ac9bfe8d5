#include "measure/timeline_taxes.h"

#include <gtest/gtest.h>

#include <string>

namespace harpe {
namespace {

using std::chrono::nanoseconds;

// A plan of two ranks with a timeline, in microseconds.
class Timeline {
 public:
  Timeline() {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      for (const QueueKind kind : {QueueKind::Host, QueueKind::Sm, QueueKind::Ce}) {
        plan_.queues.push_back({.rank = RankId(rank), .kind = kind});
      }
    }
    add(0, QueueKind::Host, TaskKind::Entry, 0, 0);
    add(1, QueueKind::Host, TaskKind::Entry, 0, 0);
  }

  TaskId add(std::int64_t rank, QueueKind queue, TaskKind kind, std::int64_t start,
             std::int64_t end, std::int64_t waited = 0) {
    Task task;
    for (std::size_t i = 0; i < plan_.queues.size(); ++i) {
      if (plan_.queues[i] == Queue{RankId(rank), queue}) {
        task.queue = QueueId(static_cast<std::int64_t>(i));
      }
    }
    task.kind = kind;
    const TaskId id(std::ssize(plan_.tasks));
    plan_.tasks.push_back(task);
    events_.push_back({.task = id,
                       .start = nanoseconds(start * 1000),
                       .end = nanoseconds(end * 1000),
                       .waited = nanoseconds(waited * 1000)});
    return id;
  }
  void sync(TaskId from, TaskId to, SyncKind kind) {
    plan_.syncs.push_back({.from = from, .to = to, .kind = kind});
  }
  Task& at(TaskId task) { return plan_.tasks[task.index()]; }

  // Marks the tasks as one kernel, which its queue reached at `reached`.
  void run_as_kernel(const std::vector<TaskId>& tasks, std::int64_t reached,
                     std::int64_t launched) {
    for (const TaskId task : tasks) events_[task.index()].kernel = tasks.front();
    add_kernel(tasks.front(), KernelPart::Held, 0, reached, launched);
  }
  void add_kernel(TaskId kernel, KernelPart part, std::int32_t block, std::int64_t start,
                  std::int64_t end, bool copies = false) {
    kernels_.push_back({.kernel = kernel,
                        .block = block,
                        .part = part,
                        .copies = copies,
                        .start = nanoseconds(start * 1000),
                        .end = nanoseconds(end * 1000)});
  }

  // "compute 2 [5, 30]", in order of time.
  [[nodiscard]] std::string path() const {
    static const char* const kNames[] = {"launch",  "signal",   "local",
                                         "compute", "transfer", "kernel"};
    std::string text;
    for (const PathStretch& stretch : measured_path(plan_, events_, kernels_)) {
      text += std::string(kNames[static_cast<int>(stretch.part)]) + " " +
              std::to_string(stretch.task.value) + " [" +
              std::to_string(stretch.begin.count() / 1000) + ", " +
              std::to_string(stretch.end.count() / 1000) + "]";
      if (stretch.part == PathPart::Kernel) {
        text += " stood " + std::to_string(stretch.stood.count() / 1000) + " moved " +
                std::to_string(stretch.moved.count() / 1000);
      }
      text += "\n";
    }
    return text;
  }

  [[nodiscard]] Taxes taxes(std::int64_t total, std::int64_t roofline, ResourceKind bound) const {
    Taxes predicted;
    predicted.roofline = from_microseconds(static_cast<double>(roofline));
    predicted.bound.kind = bound;
    return measured_taxes(measured_path(plan_, events_, kernels_), nanoseconds(total * 1000),
                          predicted);
  }

 private:
  Plan plan_;
  std::vector<TraceEvent> events_;
  std::vector<KernelEvent> kernels_;
};

Picoseconds us(std::int64_t time) { return from_microseconds(static_cast<double>(time)); }

// A gather on rank 1 and its GEMM; the gather waits for a GEMM of rank 0.
Timeline across_ranks() {
  Timeline line;
  const TaskId made = line.add(0, QueueKind::Sm, TaskKind::Compute, 5, 30);
  const TaskId copied = line.add(1, QueueKind::Ce, TaskKind::Copy, 34, 50, 30);
  line.at(copied).bytes = 100;
  const TaskId idle = line.add(1, QueueKind::Sm, TaskKind::Compute, 4, 20);
  const TaskId packed = line.add(1, QueueKind::Sm, TaskKind::Pack, 53, 60, 30);
  line.add(1, QueueKind::Sm, TaskKind::Compute, 62, 100);
  line.sync(made, copied, SyncKind::Flag);
  line.sync(copied, packed, SyncKind::Event);
  EXPECT_TRUE(idle.valid());
  return line;
}

TEST(MeasuredPath, goes_from_rank_to_rank_by_what_was_waited_for) {
  EXPECT_EQ(across_ranks().path(),
            "launch 2 [0, 5]\n"
            "compute 2 [5, 30]\n"
            "signal 3 [30, 34]\n"
            "transfer 3 [34, 50]\n"
            "launch 5 [50, 53]\n"
            "local 5 [53, 60]\n"
            "launch 6 [60, 62]\n"
            "compute 6 [62, 100]\n");
}

TEST(MeasuredTaxes, divide_the_path_and_add_up) {
  // 4 us lie outside the path.
  const Taxes taxes = across_ranks().taxes(104, 50, ResourceKind::Sm);
  EXPECT_EQ(taxes.total, us(104));
  EXPECT_EQ(taxes.launch, us(5 + 3 + 2 + 4));
  EXPECT_EQ(taxes.synchronization, us(4 + 16));
  EXPECT_EQ(taxes.locality, us(7));
  EXPECT_EQ(taxes.roofline, us(50));
  EXPECT_EQ(taxes.residual, us(25 + 38 - 50));
}

// If links are the bound, transfers are the roofline, and computing between them counts as waiting.
TEST(MeasuredTaxes, of_links_count_the_computing_between_as_waiting) {
  const Taxes taxes = across_ranks().taxes(100, 10, ResourceKind::Ingress);
  EXPECT_EQ(taxes.synchronization, us(4 + 25 + 38));
  EXPECT_EQ(taxes.roofline, us(10));
  EXPECT_EQ(taxes.residual, us(6));
}

// Stamps lengthen a traced execution. The taxes subtract this from launches, and none becomes
// negative.
TEST(MeasuredTaxes, take_what_stamps_add_off_the_launches) {
  const Taxes taxes = across_ranks().taxes(94, 50, ResourceKind::Sm);
  EXPECT_EQ(taxes.launch, us(10 - 6));
  EXPECT_EQ(taxes.residual, us(13));
  const Taxes faster = across_ranks().taxes(40, 50, ResourceKind::Sm);
  EXPECT_EQ(faster.launch, us(0));
  EXPECT_EQ(faster.synchronization, us(20));
  EXPECT_EQ(faster.locality, us(7));
  EXPECT_EQ(faster.roofline, us(13));
  EXPECT_EQ(faster.residual, us(0));
}

// Three parts of one kernel, of which the last two wait for signals.
Timeline one_kernel(std::int64_t last_waited) {
  Timeline line;
  const TaskId own = line.add(1, QueueKind::Sm, TaskKind::Compute, 2, 60);
  const TaskId second = line.add(1, QueueKind::Sm, TaskKind::Compute, 20, 60);
  const TaskId third = line.add(1, QueueKind::Sm, TaskKind::Compute, 45, 60, last_waited);
  for (const TaskId task : {own, second, third}) line.at(task).kernel = 0;
  const TaskId one = line.add(0, QueueKind::Ce, TaskKind::Copy, 3, 18);
  const TaskId other = line.add(0, QueueKind::Ce, TaskKind::Copy, 19, 43);
  line.at(one).bytes = line.at(other).bytes = 1;
  line.sync(one, second, SyncKind::Flag);
  line.sync(other, third, SyncKind::Flag);
  return line;
}

TEST(MeasuredPath, stays_in_a_kernel_that_was_busy) {
  EXPECT_EQ(one_kernel(0).path(),
            "launch 2 [0, 2]\n"
            "compute 2 [2, 20]\n"
            "compute 3 [20, 45]\n"
            "compute 4 [45, 60]\n");
}

TEST(MeasuredPath, leaves_a_kernel_that_stood_still) {
  EXPECT_EQ(one_kernel(5).path(),
            "launch 5 [0, 3]\n"
            "transfer 5 [3, 18]\n"
            "launch 6 [18, 19]\n"
            "transfer 6 [19, 43]\n"
            "signal 4 [43, 45]\n"
            "compute 4 [45, 60]\n");
}

// The same kernel with records of four computing blocks and a copying one.
Timeline noted_kernel() {
  Timeline line = one_kernel(5);
  const TaskId own(2);
  const TaskId beside = line.add(0, QueueKind::Ce, TaskKind::Copy, 10, 19);
  line.at(beside).bytes = 1;
  line.sync(beside, own, SyncKind::Flag);
  line.run_as_kernel({own, TaskId(3), TaskId(4)}, 1, 2);
  for (std::int32_t block = 0; block < 4; ++block) {
    line.add_kernel(own, KernelPart::Work, block, 4 + block, block == 0 ? 58 : 50);
    line.add_kernel(own, KernelPart::Stand, block, 35, 43);
  }
  line.add_kernel(own, KernelPart::Stand, 1, 10, 18);
  line.add_kernel(own, KernelPart::Stand, 2, 14, 18);
  line.add_kernel(own, KernelPart::Work, 4, 3, 57, true);
  line.add_kernel(own, KernelPart::Stand, 4, 3, 20, true);
  return line;
}

// The path stays in the kernel from its first block's begin to its last block's end, although the
// kernel stood still meanwhile.
TEST(MeasuredPath, goes_through_a_kernel_whose_blocks_were_noted) {
  EXPECT_EQ(noted_kernel().path(),
            "launch 4 [0, 1]\n"
            "signal 4 [1, 2]\n"
            "launch 4 [2, 3]\n"
            "kernel 4 [3, 58] stood 11 moved 40\n"
            "launch 4 [58, 60]\n");
}

// 8 us of all four blocks, 8 us of one, 4 us of another.
TEST(MeasuredTaxes, count_blocks_that_stand_still_by_their_share) {
  const Taxes taxes = noted_kernel().taxes(63, 30, ResourceKind::Sm);
  EXPECT_EQ(taxes.synchronization, us(1 + 8 + 2 + 1));
  EXPECT_EQ(taxes.launch, us(1 + 1 + 2 + 3));
  EXPECT_EQ(taxes.locality, us(0));
  EXPECT_EQ(taxes.roofline, us(30));
  EXPECT_EQ(taxes.residual, us(14));
  EXPECT_EQ(taxes.launch + taxes.synchronization + taxes.locality + taxes.roofline + taxes.residual,
            us(63));
}

// If links are the bound, the path waits for them while nothing moves: 15 us of 55.
TEST(MeasuredTaxes, of_links_count_what_a_kernel_does_while_nothing_moves) {
  const Taxes taxes = noted_kernel().taxes(63, 30, ResourceKind::Ingress);
  EXPECT_EQ(taxes.synchronization, us(1 + 15));
  EXPECT_EQ(taxes.roofline, us(30));
  EXPECT_EQ(taxes.residual, us(63 - 7 - 16 - 30));
}

// No tax becomes negative if blocks stood still longer than the untraced execution takes.
TEST(MeasuredTaxes, of_kernels_add_up_where_stamps_took_more) {
  const Taxes taxes = noted_kernel().taxes(10, 30, ResourceKind::Sm);
  EXPECT_EQ(taxes.launch, us(0));
  EXPECT_EQ(taxes.synchronization, us(10));
  EXPECT_EQ(taxes.roofline, us(0));
  EXPECT_EQ(taxes.residual, us(0));
}

// A kernel begins after the last work of its own rank. If that work ends after the queue has
// reached the kernel, the delay is not due to another rank.
TEST(MeasuredPath, leads_from_a_kernel_to_what_its_rank_did_before) {
  for (const bool is_late : {false, true}) {
    Timeline line;
    const TaskId before = line.add(1, QueueKind::Ce, TaskKind::Pack, 2, is_late ? 14 : 8);
    const TaskId own = line.add(1, QueueKind::Sm, TaskKind::Compute, 16, 40);
    line.sync(before, own, SyncKind::Event);
    line.run_as_kernel({own}, 10, 16);
    line.add_kernel(own, KernelPart::Work, 0, 16, 40);
    EXPECT_EQ(line.path(), is_late ? "launch 2 [0, 2]\n"
                                     "local 2 [2, 14]\n"
                                     "launch 3 [14, 16]\n"
                                     "kernel 3 [16, 40] stood 0 moved 0\n"
                                   : "launch 2 [0, 2]\n"
                                     "local 2 [2, 8]\n"
                                     "launch 3 [8, 10]\n"
                                     "signal 3 [10, 16]\n"
                                     "kernel 3 [16, 40] stood 0 moved 0\n");
  }
}

// Without records of its blocks, a kernel is treated like any other task.
TEST(MeasuredPath, needs_blocks_to_go_through_a_kernel) {
  Timeline line = one_kernel(0);
  line.run_as_kernel({TaskId(2), TaskId(3), TaskId(4)}, 1, 2);
  EXPECT_EQ(line.path(), one_kernel(0).path());
}

TEST(MeasuredPath, leads_to_the_last_member_of_a_collective) {
  Timeline line;
  const TaskId early = line.add(0, QueueKind::Sm, TaskKind::Compute, 1, 10);
  const TaskId late = line.add(1, QueueKind::Sm, TaskKind::Compute, 1, 40);
  const TaskId first = line.add(0, QueueKind::Ce, TaskKind::Collective, 44, 71, 33);
  const TaskId second = line.add(1, QueueKind::Ce, TaskKind::Collective, 44, 70, 3);
  line.at(first).group = line.at(second).group = 0;
  line.sync(early, first, SyncKind::Event);
  line.sync(late, second, SyncKind::Event);
  EXPECT_EQ(line.path(),
            "launch 3 [0, 1]\n"
            "compute 3 [1, 40]\n"
            "signal 4 [40, 44]\n"
            "transfer 4 [44, 71]\n");
}

// With inaccurate clocks, a signal may appear before it is raised.
TEST(MeasuredPath, has_no_overlaps_where_clocks_are_off) {
  Timeline line;
  const TaskId made = line.add(0, QueueKind::Sm, TaskKind::Compute, 1, 31);
  const TaskId used = line.add(1, QueueKind::Sm, TaskKind::Compute, 30, 50, 20);
  line.sync(made, used, SyncKind::Flag);
  EXPECT_EQ(line.path(),
            "launch 2 [0, 1]\n"
            "compute 2 [1, 30]\n"
            "compute 3 [30, 50]\n");
}

}  // namespace
}  // namespace harpe
