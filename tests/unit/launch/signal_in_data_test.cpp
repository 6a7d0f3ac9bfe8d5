#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/launch/pass_run.h"

// GEMM + reduce-scatter on three ranks: task 18 adds the sums that ranks 1 and 2 store here by
// tasks 15 and 12 to rank 0's own sum.
namespace harpe::launch::passing {
namespace signal_in_data_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, store_at_peers, add_at_home,
                                               signal_in_data};
const std::vector<void (*)(Draft&)> kApart = {join_panels, store_at_peers, signal_in_data};

Abilities by_threads() {
  Abilities can;
  can.moves_by_threads = true;
  return can;
}

std::int64_t count_in_data(const PassRun& it) {
  return std::ranges::count_if(it.draft->out.signals, &Signal::is_in_data);
}

TEST(SignalInData, carries_flags_that_addends_alone_wait_for) {
  PassRun it(push_sums(), by_threads());
  it.run(kPasses);
  EXPECT_EQ(count_in_data(it), 6) << "each rank has what two others send";
  for (const std::int64_t copy : {12, 15}) {
    const std::optional<SignalId> signal = it.signal_from(copy, 0);
    ASSERT_TRUE(signal.has_value());
    EXPECT_TRUE(it.draft->out.signals[signal->index()].is_in_data);
    EXPECT_EQ(it.decided(copy), "applied");
  }
}

TEST(SignalInData, carries_sums_that_all_ranks_add_up) {
  PassRun it(one_shot(), by_threads());
  it.run(kPasses);
  EXPECT_EQ(count_in_data(it), 6);
}

TEST(SignalInData, leaves_flags_where_other_kernels_move_elements) {
  PassRun it(push_sums());
  it.run(kPasses);
  EXPECT_EQ(count_in_data(it), 0);
}

TEST(SignalInData, leaves_flags_that_launches_wait_for) {
  PassRun it(push_sums(), by_threads());
  it.run(kApart);
  EXPECT_EQ(count_in_data(it), 0);
}

TEST(SignalInData, leaves_flags_of_much_data) {
  Abilities can = by_threads();
  can.most_in_data = 1;
  PassRun it(push_sums(), can);
  it.run(kPasses);
  EXPECT_EQ(count_in_data(it), 0);
  const std::vector<Place>& read =
      it.launch_of(18).kernels.front().panels.back().addends.front().reads;
  const std::int64_t bytes = 2 * 2 * count_elements(read.front().span);  // from two ranks, in bf16
  EXPECT_EQ(it.decided(15), refusal(Reason::MuchData, bytes, 1));
}

// Reading an element with a signal in it removes the signal.
void read_twice(Draft& draft) {
  std::vector<Addend>& addends =
      draft.step_of(TaskId(18)).launch.kernels.front().panels.back().addends;
  addends.push_back(addends.front());
}

TEST(SignalInData, leaves_flags_of_what_is_read_twice) {
  PassRun it(push_sums(), by_threads());
  it.run({join_panels, store_at_peers, add_at_home, read_twice, signal_in_data});
  EXPECT_EQ(count_in_data(it), 5);
}

}  // namespace signal_in_data_test
}  // namespace harpe::launch::passing
