#include "launch/partials16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plan/text.h"
#include "tests/unit/launch/fake_target.h"

namespace harpe::launch::passing {
namespace partials16_test {

// Attention by heads, `ulysses` on two ranks. Tasks 20 and 21 make each rank's output states,
// allocations 8 and 26; 23 and 22 send them; 24 and 27 round them at home.
Plan exchanged() {
  std::ifstream file(HARPE_SOURCE_DIR "/tests/unit/launch/exchanged.plan");
  std::stringstream text;
  text << file.rdbuf();
  return parse_plan(text.str(), "exchanged.plan").value();
}

const std::vector<AllocId> kBoth = {AllocId(8), AllocId(26)};
const std::vector<AllocId> kOfRank1 = {AllocId(26)};

std::vector<AllocId> find(const Plan& plan, const Abilities& can = {}) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  FakeOffers offers(plan, blocks, can);
  return find_partials16(plan, offers).value();
}

// The states found if rank 0's task has the edited kernel.
std::vector<AllocId> find_with(const std::function<void(Kernel&)>& edit) {
  Abilities can;
  can.edit = [=](TaskId task, Kernel& kernel) {
    if (task == TaskId(20)) edit(kernel);
  };
  return find(exchanged(), can);
}

TEST(Partials16, are_states_that_everybody_rounds_on_the_way) {
  const Plan plan = exchanged();
  bool is_asked = false;
  Abilities can;
  can.can = [&](const Launch& launch, const Kernel& kernel) {
    is_asked = true;
    EXPECT_EQ(launch.does.size(), 1U);
    EXPECT_EQ(kernel.panels.front().dtype, DType::BF16);
    EXPECT_EQ(kernel.panels.front().stores.size(), 2U);
    return true;
  };
  EXPECT_EQ(find(plan, can), kBoth);
  EXPECT_TRUE(is_asked);
  for (const AllocId alloc : kBoth) EXPECT_EQ(plan.allocs[alloc.index()].buffer, "o");
}

TEST(Partials16, are_none_where_a_reader_wants_all_bits) {
  Plan plan = exchanged();
  plan.allocs[plan.tasks[23].writes.front().alloc.index()].dtype = DType::F32;
  EXPECT_EQ(find(plan), kOfRank1);
  plan = exchanged();
  plan.tasks[24].kind = TaskKind::Fold;
  EXPECT_EQ(find(plan), kOfRank1);
  plan = exchanged();  // combines two states before it rounds
  std::vector<Ref>& reads = plan.tasks[24].reads;
  const std::vector<Ref> sources = reads;
  reads.insert(reads.end(), sources.begin(), sources.end());
  EXPECT_EQ(find(plan), kOfRank1);
}

TEST(Partials16, are_none_where_a_put_takes_them) {
  Plan plan = exchanged();
  plan.tasks[23].via = Via::Proxy;
  EXPECT_EQ(find(plan), kOfRank1);
}

TEST(Partials16, are_none_where_nothing_crosses) {
  Plan plan = exchanged();
  plan.tasks[23].reads.clear();
  plan.tasks[23].writes.clear();
  EXPECT_EQ(find(plan), kOfRank1);
}

TEST(Partials16, are_none_where_something_else_writes_them) {
  Plan plan = exchanged();
  plan.tasks[25].writes.push_back(plan.tasks[20].writes.front());
  EXPECT_EQ(find(plan), kOfRank1);
}

TEST(Partials16, are_none_where_a_kernel_goes_on_with_them) {
  EXPECT_EQ(find_with([](Kernel& kernel) {
              kernel.panels.front().reads.push_back(kernel.panels.front().stores.front());
            }),
            kOfRank1);
  EXPECT_EQ(find_with([](Kernel& kernel) { kernel.panels.front().adds = true; }), kOfRank1);
}

TEST(Partials16, are_none_where_kernels_do_not_store_them_at_once) {
  EXPECT_EQ(find_with([](Kernel& kernel) { kernel.panels.clear(); }), kOfRank1);
  EXPECT_EQ(find_with([](Kernel& kernel) { kernel.panels.push_back(kernel.panels.front()); }),
            kOfRank1);
  EXPECT_EQ(find_with([](Kernel& kernel) { std::ranges::reverse(kernel.panels.front().stores); }),
            kOfRank1);
}

TEST(Partials16, are_none_where_operands_have_another_type) {
  Plan plan = exchanged();
  plan.allocs[plan.tasks[20].reads[1].alloc.index()].dtype = DType::F32;
  EXPECT_EQ(find(plan), kOfRank1);
}

TEST(Partials16, are_none_where_no_kernel_stores_them) {
  Abilities can;
  can.can = [](const Launch& launch, const Kernel&) { return launch.rank == RankId(1); };
  EXPECT_EQ(find(exchanged(), can), kOfRank1);
}

}  // namespace partials16_test
}  // namespace harpe::launch::passing
