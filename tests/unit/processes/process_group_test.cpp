#include "exec/processes/process_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "tests/unit/exec/plans.h"

namespace harpe::processes {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr int kRanks = 3;

std::string new_address() {
  static int count = 0;
  return "unix:@harpe-group-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

Launch launch_of(int rank, const std::string& address, int ranks = kRanks) {
  return {.rank = rank, .ranks = ranks, .local_rank = rank, .address = address};
}

// Runs each rank in its own thread.
void in_every_rank(const std::function<void(ProcessGroup&)>& run) {
  const std::string address = new_address();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Checked<ProcessGroup> group =
          ProcessGroup::meet(launch_of(rank, address), [](const Diag&) {});
      ASSERT_TRUE(group.ok()) << render(group.error());
      run(*group);
    });
  }
}

transport::Blob blob_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(ProcessGroup, shares_out_the_ranks_of_the_plan) {
  const Plan plan = test::exchange(kRanks, 12, false);
  EXPECT_EQ(*ranks_of_each(launch_of(0, "", 3), plan), 1);
  EXPECT_EQ(*ranks_of_each(launch_of(0, "", 1), plan), 3);
  const auto refused = ranks_of_each(launch_of(0, "", 2), plan);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::N016);
  EXPECT_EQ(render_message(refused.error()),
            "this process was started as one of several, and `WORLD_SIZE` is 2, among which the "
            "plan's 3 ranks cannot be divided evenly");
}

TEST(ProcessGroup, refuses_another_plan_on_every_rank) {
  in_every_rank([](ProcessGroup& group) {
    EXPECT_TRUE(group.compare("one").ok());
    const auto compared = group.compare(group.rank() == 0 ? "one" : "two");
    ASSERT_FALSE(compared.ok());
    EXPECT_EQ(compared.error().code, DiagCode::N015);
    EXPECT_EQ(render_message(compared.error()), "rank 1 runs another plan than rank 0");
  });
}

TEST(ProcessGroup, goes_on_only_where_all_can) {
  in_every_rank([](ProcessGroup& group) {
    EXPECT_TRUE(group.agree(std::nullopt).ok());
    const bool fails = group.rank() == 2;
    const auto agreed =
        group.agree(fails ? std::optional(make_diag(DiagCode::G001)) : std::nullopt);
    ASSERT_FALSE(agreed.ok());
    EXPECT_EQ(agreed.error().code, fails ? DiagCode::G001 : DiagCode::N017);
    if (fails) return;
    EXPECT_EQ(render_message(agreed.error()),
              "rank 2 cannot run its part of the plan: this build of harpe has no CUDA back end");
  });
}

TEST(ProcessGroup, tells_every_process_what_each_has_to_say) {
  in_every_rank([](ProcessGroup& group) {
    const bool is_fine = group.rank() == 0;
    const auto answers =
        group.conclude(blob_of(std::to_string(group.rank())), is_fine, seconds(60));
    ASSERT_EQ(answers.size(), 3U);
    for (std::size_t of = 0; of < 3; ++of) {
      EXPECT_EQ(answers[of].said, blob_of(std::to_string(of)));
      EXPECT_FALSE(answers[of].is_lost);
    }
  });
}

TEST(ProcessGroup, knows_which_process_is_gone) {
  in_every_rank([](ProcessGroup& group) {
    if (group.rank() == 1) return;
    const auto answers = group.conclude(blob_of("failed"), false, seconds(60));
    EXPECT_TRUE(answers[1].is_lost);
    EXPECT_TRUE(answers[0].said && answers[2].said);
    EXPECT_FALSE(answers[0].is_lost || answers[2].is_lost);
  });
  in_every_rank([](ProcessGroup& group) {
    if (group.rank() == 0) return;
    const auto answers = group.conclude(blob_of("failed"), false, seconds(60));
    EXPECT_TRUE(answers[0].is_lost);
    EXPECT_FALSE(answers[1].is_lost || answers[2].is_lost) << "nobody is left to say so";
    const auto met = group.agree(std::nullopt);
    ASSERT_FALSE(met.ok());
    EXPECT_EQ(met.error().code, DiagCode::N010);
  });
}

TEST(ProcessGroup, counts_the_longest_time_of_each_execution) {
  in_every_rank([](ProcessGroup& group) {
    std::vector<nanoseconds> times(100'000, nanoseconds(5));
    times[static_cast<std::size_t>(group.rank())] = nanoseconds(10 + group.rank());
    times[99'999] = nanoseconds(group.rank());
    const auto longest = group.longest_of(times);
    ASSERT_TRUE(longest.ok());
    EXPECT_EQ((*longest)[0], nanoseconds(10));
    EXPECT_EQ((*longest)[2], nanoseconds(12));
    EXPECT_EQ((*longest)[50'000], nanoseconds(5));
    EXPECT_EQ((*longest)[99'999], nanoseconds(2));
  });
}

TEST(ProcessGroup, gathers_the_tasks_of_all_ranks) {
  in_every_rank([](ProcessGroup& group) {
    std::vector<TraceEvent> own;  // of rank 1; larger than one exchange
    if (group.rank() == 1) own.resize(30'000, {.task = TaskId(1), .waited = nanoseconds(7)});
    if (group.rank() == 2) own.push_back({.task = TaskId(2), .end = nanoseconds(9)});
    const auto all = group.events_of_all(own);
    ASSERT_TRUE(all.ok()) << render(all.error());
    ASSERT_EQ(all->size(), 30'001U);
    EXPECT_EQ(std::ranges::count(*all, TaskId(1), &TraceEvent::task), 30'000);
    const auto last = std::ranges::find(*all, TaskId(2), &TraceEvent::task);
    ASSERT_NE(last, all->end());
    EXPECT_EQ(last->end, nanoseconds(9));
    EXPECT_EQ(all->front().waited, nanoseconds(7));
  });
}

// Each rank has records only of its own blocks, any number of them.
TEST(ProcessGroup, gathers_what_blocks_did_on_all_ranks) {
  in_every_rank([](ProcessGroup& group) {
    const std::vector<KernelEvent> own(
        static_cast<std::size_t>(group.rank()),
        {.kernel = TaskId(group.rank()), .block = 5, .part = KernelPart::Stand});
    const auto all = group.events_of_all(own);
    ASSERT_TRUE(all.ok()) << render(all.error());
    ASSERT_EQ(all->size(), 1U + 2U);
    EXPECT_EQ(std::ranges::count(*all, TaskId(2), &KernelEvent::kernel), 2);
    EXPECT_EQ(all->front(),
              (KernelEvent{.kernel = TaskId(1), .block = 5, .part = KernelPart::Stand}));
  });
}

}  // namespace
}  // namespace harpe::processes
