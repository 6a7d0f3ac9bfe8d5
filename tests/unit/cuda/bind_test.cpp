#include "exec/cuda/target/bind_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/copy_engine/copy_launch.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
#include "exec/cuda/kernels/plain/plain_launch.h"
#include "exec/cuda/target/made_up_binding.h"
#include "launch/make_launches.h"
#include "tests/support/proxy_plan.h"

namespace harpe::cuda {
namespace bind_test {

// All-gather + GEMM on two ranks at made-up addresses, and rank 0's launch of the GEMM.
class Bind : public ::testing::Test {
 protected:
  [[nodiscard]] Checked<std::vector<LaunchSpec>> bind_gemm_launch() {
    return binding_->bind(gemm_);
  }

  void expect_refusal(const std::string& reason) {
    const Checked<std::vector<LaunchSpec>> bound = bind_gemm_launch();
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code, DiagCode::G092);
    EXPECT_NE(render(bound.error()).find(reason), std::string::npos) << render(bound.error());
  }

  [[nodiscard]] launch::Kernel& kernel() { return gemm_.kernels.front(); }

  Plan plan_ = test::push_plan();
  Blocks blocks_ = Blocks::make(plan_.program, plan_.mesh, plan_.form).value();
  launch::LaunchPlan launches_ = launch::make_launches(plan_, blocks_, LaunchTarget({})).value();
  std::unique_ptr<MadeUpBinding> binding_ =
      MadeUpBinding::make(plan_, blocks_, launches_, {}).value();
  launch::Launch gemm_ = *std::ranges::find_if(launches_.launches, [](const auto& launch) {
    return !launch.kernels.empty() && !launch.kernels.front().panels.empty();
  });
};

TEST_F(Bind, waits_inside_for_what_the_launch_plan_says) {
  const auto bound = bind_gemm_launch();
  ASSERT_TRUE(bound.ok()) << render(bound.error());
  const auto& spec = bound->front().get<GemmSpec>();
  ASSERT_EQ(spec.panels.size(), kernel().panels.size());
  std::size_t awaited = 0;
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    const auto arrival = static_cast<std::size_t>(kernel().panels[i].meets.front());
    const std::optional<launch::SignalId> when = kernel().arrivals[arrival].when;
    const device::FlagWait& ready = spec.panels[i].k_chunks.front().ready;
    EXPECT_EQ(ready.flag, when ? MadeUpBinding::cell_of(*when) : nullptr);
    if (when) ++awaited;
  }
  EXPECT_GT(awaited, 0U);
  EXPECT_EQ(spec.wait.task, static_cast<std::uint32_t>(gemm_.does.front().value));
}

TEST_F(Bind, waits_for_nothing_once_nothing_is_awaited) {
  for (launch::Arrival& arrival : kernel().arrivals) arrival.when.reset();
  auto bound = bind_gemm_launch();
  ASSERT_TRUE(bound.ok()) << render(bound.error());
  EXPECT_EQ(bound->front()->inner_wait(), nullptr);
}

TEST_F(Bind, refuses_a_kernel_of_another_name) {
  kernel().name = "grouped_gemm";
  expect_refusal("they make up `gemm_sm90`");
}

TEST_F(Bind, refuses_a_launch_that_leaves_out_a_panel) {
  kernel().panels.pop_back();
  expect_refusal("the launch has no such kernel");
}

TEST_F(Bind, refuses_operands_that_no_task_multiplies) {
  kernel().arrivals.front().reads.front().span.front().end += 1;
  expect_refusal("none of them multiplies what it multiplies");
}

TEST_F(Bind, refuses_places_that_its_tasks_do_not_touch) {
  launch::Place& stores = kernel().panels.front().stores.front();
  const auto other = std::ranges::find_if(plan_.allocs, [&](const Alloc& alloc) {
    return alloc.rank == RankId(1) && alloc.level == Level::Home &&
           alloc.buffer == plan_.allocs[stores.alloc.index()].buffer;
  });
  stores.alloc = AllocId(other - plan_.allocs.begin());
  expect_refusal("rows of C cannot lie in");
}

TEST_F(Bind, refuses_a_second_kernel_for_the_same_tasks) {
  gemm_.kernels.push_back(kernel());
  expect_refusal("they are done without it");
}

TEST_F(Bind, takes_the_variant_from_the_launch_plan) {
  const auto bound = bind_gemm_launch();
  ASSERT_TRUE(bound.ok());
  EXPECT_TRUE(check_variant(gemm_, kernel(), bound->front()).ok());
  kernel().variant = "tile 17x256 stages 4";
  const auto unknown = check_variant(gemm_, kernel(), bound->front());
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, DiagCode::G092);
  EXPECT_FALSE(bind_gemm_launch().ok());
}

GemmSpec product(std::int64_t rows, std::int64_t n, std::int64_t k) {
  GemmSpec spec;
  spec.n = n;
  spec.k = k;
  spec.b = 0x1000;
  spec.b_stride = n;
  spec.panels = {{.rows = rows,
                  .k_chunks = {{.a = 0x2000, .stride = k, .k_begin = 0, .k_count = k}},
                  .c = 0x3000,
                  .c_stride = n}};
  return spec;
}

TEST(InnerWait, is_of_a_kernel_that_waits_inside) {
  const auto waits = [](LaunchSpec spec) { return spec->inner_wait() != nullptr; };
  const auto flag = [] {
    static std::uint32_t cell = 0;
    return device::FlagWait{.flag = &cell, .arrivals = 1, .name = 1};
  };
  const GemmSpec plain = product(32, 64, 128);
  EXPECT_FALSE(waits(plain));
  GemmSpec arriving = plain;
  arriving.panels[0].k_chunks[0].ready = flag();
  EXPECT_TRUE(waits(arriving));
  GemmSpec adding = plain;
  adding.panels[0].addends = {{.address = 0x1000, .stride = 64, .ready = flag()}};
  EXPECT_TRUE(waits(adding));
  AttentionSpec heads{.heads = 4, .kv_heads = 2, .query_dim = 64, .value_dim = 64};
  heads.panels = {{.rows = 64}};
  heads.chunks = {{.rows = 64}};
  EXPECT_FALSE(waits(heads));
  AttentionSpec keys = heads;
  keys.chunks[0].ready = flag();
  EXPECT_TRUE(waits(keys));
  EXPECT_FALSE(waits(CopyLaunch{}));
}

TEST(GemmChoiceText, reads_back_as_the_choice) {
  bool is_any_cut = false;
  for (const std::int64_t rows : {64, 512, 4096}) {
    for (const std::int64_t k : {512, 8192}) {
      const GemmSpec spec = product(rows, 4096, k);
      const GemmChoice choice = choose_gemm(spec, 132);
      const auto back = find_gemm_choice(spec, print(choice));
      ASSERT_TRUE(back.has_value()) << print(choice);
      EXPECT_EQ(print(*back), print(choice));
      EXPECT_EQ(back->full_tiles, choice.full_tiles);
      EXPECT_EQ(back->config.cluster, choice.config.cluster);
      EXPECT_EQ(back->group, choice.group);
      is_any_cut = is_any_cut || choice.parts > 1;
    }
  }
  EXPECT_TRUE(is_any_cut);
}

TEST(GemmChoiceText, is_of_no_cut_that_cannot_be) {
  const GemmSpec spec = product(512, 4096, 512);
  for (const char* text :
       {"", "tile 128x256 stages 4 cut 0 behind tile 0",
        "tile 128x256 stages 4 cut 3 behind tile 0", "tile 128x256 stages 4 cut 2 behind tile 64",
        "tile 128x256 stages 4 cut 2 behind tile 1 more", "tile 64x256 stages 4 ping-pong"}) {
    EXPECT_FALSE(find_gemm_choice(spec, text).has_value()) << text;
  }
  EXPECT_TRUE(find_gemm_choice(spec, "tile 128x256 stages 4 cut 2 behind tile 1").has_value());
}

TEST(GemmChoiceText, lets_blocks_compute_behind_copies_that_wait_for_nothing) {
  const std::string tile = "tile 128x256 stages 4";
  const std::string joined = tile + " cut 2 behind tile 126 joined at ticket 120";
  GemmSpec spec = product(1024, 4096, 4096);  // 8 x 16 tiles
  EXPECT_FALSE(find_gemm_choice(spec, joined)) << "no block copies";
  spec.copy_blocks = 12;
  spec.copies = {{.bytes = 1 << 20}};
  const auto found = find_gemm_choice(spec, joined);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->joined, 120);
  EXPECT_EQ(print(*found), joined);
  for (const char* end :
       {" joined at ticket 0", " joined at ticket 128", " joined at ticket 120 "}) {
    EXPECT_FALSE(find_gemm_choice(spec, tile + end)) << end;
  }
  std::uint32_t flag = 0;
  spec.copies.front().ready.flag = &flag;
  EXPECT_FALSE(find_gemm_choice(spec, joined)) << "a copy may wait for what the block computes";
}

// Tables in memory fix what they name, arguments do not.
TEST(GemmCopies, are_arguments_where_they_are_few) {
  constexpr DeviceAddress kSent = 1 << 20;
  GemmSpec spec = product(1024, 4096, 4096);
  spec.copy_blocks = 12;
  const auto fixes_what_is_sent = [&](std::size_t copies) {
    spec.copies.assign(copies, {.from = reinterpret_cast<const void*>(kSent), .bytes = 1 << 10});
    FixedWords fixed;
    LaunchSpec(spec)->add_fixed(fixed);
    return fixed.fix({.begin = kSent, .end = kSent + (1 << 10)});
  };
  EXPECT_FALSE(fixes_what_is_sent(1));
  EXPECT_FALSE(fixes_what_is_sent(device::GemmArgs::kFew));
  EXPECT_TRUE(fixes_what_is_sent(device::GemmArgs::kFew + 1));
  spec.panels.front().rows = 256;
  EXPECT_TRUE(fixes_what_is_sent(1)) << "kernels for few rows look in memory";
}

// 256 tiles: 120 beside the copies, then 132 of all blocks, then 4.
TEST(GemmChoiceText, is_of_blocks_that_join_where_that_ends_sooner) {
  GemmSpec spec = product(2048, 4096, 4096);
  spec.copy_blocks = 12;
  EXPECT_GT(choose_gemm(spec, 132).joined, 0);
  spec.copies = {{.bytes = std::int64_t{1} << 40}};
  EXPECT_EQ(choose_gemm(spec, 132).joined, 0) << "the copies end later than the tiles";
  spec.copies.clear();
  spec.panels.front().rows = 512;
  EXPECT_EQ(choose_gemm(spec, 132).joined, 0) << "all tiles are taken before";
}

}  // namespace bind_test
}  // namespace harpe::cuda
