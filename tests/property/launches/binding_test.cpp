#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/target/made_up_binding.h"
#include "exec/cuda/target/spec_offers.h"
#include "launch/make_launches.h"
#include "support/check.h"
#include "tests/property/launches/described.h"
#include "tests/support/linear.h"

// Passes bind kernels through similar tasks, the executor through a launch's own: results agree.
namespace harpe::test {
namespace {

using cuda::AttentionSpec;
using cuda::GemmSpec;
using cuda::LaunchSpec;
using cuda::TaskAlone;

using Numbers = std::vector<std::int64_t>;

void add(const cuda::HeadTensor& tensor, Numbers& numbers) {
  numbers.insert(numbers.end(), {static_cast<std::int64_t>(tensor.address), tensor.strides.batch,
                                 tensor.strides.row, tensor.strides.head});
}

// The addresses and strides that a GEMM reads and stores.
Numbers numbers_of(const GemmSpec& spec) {
  Numbers numbers = {static_cast<std::int64_t>(spec.b), spec.b_stride, spec.k};
  for (const cuda::GemmPanelSpec& panel : spec.panels) {
    numbers.insert(numbers.end(), {static_cast<std::int64_t>(panel.c), panel.c_stride});
    for (const cuda::GemmKChunkSpec& k_chunk : panel.k_chunks) {
      numbers.insert(numbers.end(), {static_cast<std::int64_t>(k_chunk.a), k_chunk.stride});
    }
    for (const cuda::GemmAddendSpec& addend : panel.addends) {
      numbers.insert(numbers.end(), {static_cast<std::int64_t>(addend.address), addend.stride});
    }
    for (const cuda::GemmMapOperandSpec& operand : panel.map_operands) {
      numbers.insert(numbers.end(), {static_cast<std::int64_t>(operand.address), operand.stride});
    }
  }
  for (const device::CopyJob& job : spec.copies) {
    numbers.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(job.from)));
    numbers.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(job.to)));
  }
  return numbers;
}

Numbers numbers_of(const AttentionSpec& spec) {
  Numbers numbers = {spec.parts, spec.shares, spec.keys_are_fixed ? 1 : 0};
  if (spec.tables) {
    const cuda::KeyTables& tables = *spec.tables;
    numbers.insert(numbers.end(),
                   {static_cast<std::int64_t>(tables.lengths), tables.length_stride,
                    static_cast<std::int64_t>(tables.pages), tables.page_stride,
                    tables.batch_stride, tables.page_count, tables.page, tables.first_key});
  }
  for (const cuda::AttentionPanelSpec& panel : spec.panels) {
    for (const auto* const tensor :
         {&panel.queries, &panel.output, &panel.lse, &panel.carried_output}) {
      add(*tensor, numbers);
    }
    numbers.push_back(panel.position);
  }
  for (const cuda::AttentionResultSpec& result : spec.results) {
    numbers.push_back(result.first_head);
    add(result.output, numbers);
    add(result.lse, numbers);
    for (const cuda::AttentionAddendSpec& addend : result.addends) {
      add(addend.output, numbers);
      add(addend.lse, numbers);
    }
  }
  for (const cuda::AttentionChunkSpec& chunk : spec.chunks) {
    add(chunk.keys, numbers);
    add(chunk.values, numbers);
    numbers.push_back(chunk.position);
  }
  return numbers;
}

Numbers numbers_of(const LaunchSpec& spec) {
  const auto* const gemm = spec.find<GemmSpec>();
  return gemm != nullptr ? numbers_of(*gemm) : numbers_of(spec.get<AttentionSpec>());
}

// A plan at made-up addresses, with the launches of each task by itself.
class Bound {
 public:
  explicit Bound(Described described)
      : described_(std::move(described)),
        likeness_(described_.plan, blocks_, source_.layouts, described_.launches.partials16) {
    std::map<cuda::TaskLikeness::Key, TaskId> known;
    for (std::size_t i = 0; i < described_.plan.tasks.size(); ++i) {
      const TaskId id(static_cast<std::int64_t>(i));
      cuda::TaskSpecs specs = cuda::specs_of(source_, id, cuda::kNowhere).value();
      own_.push_back(cuda::describe_alone(source_, id, std::move(specs.launches)));
      alike_.push_back(own_.back());
      const auto key = likeness_.key_of(id, own_.back().refs);
      if (!key) continue;
      const auto [like, is_new] = known.try_emplace(*key, id);
      if (is_new) continue;
      const TaskAlone& prepared = own_[like->second.index()];
      alike_.back() = {.specs = {}, .kernels = {}, .refs = own_.back().refs, .like = like->second};
      TaskAlone& alike = alike_.back();
      alike.kernels = cuda::kernels_like(alike.refs, prepared, prepared.kernels);
      EXPECT_EQ(alike.kernels, own_.back().kernels);
      alike.leads = likeness_.leads_of(described_.plan.tasks[i], alike.kernels, prepared.kernels);
      ++alike_count_;
    }
  }

  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  [[nodiscard]] const launch::LaunchPlan& launches() const { return described_.launches; }
  [[nodiscard]] int alike_count() const { return alike_count_; }
  [[nodiscard]] Numbers by_themselves(const launch::Launch& launch, const launch::Kernel& kernel) {
    return numbers_of(bind(own_, launch, kernel));
  }
  [[nodiscard]] LaunchSpec spec_of(const launch::Launch& launch, const launch::Kernel& kernel) {
    return bind(own_, launch, kernel);
  }
  [[nodiscard]] Numbers by_like_tasks(const launch::Launch& launch, const launch::Kernel& kernel) {
    return numbers_of(bind(alike_, launch, kernel));
  }

 private:
  LaunchSpec bind(const std::vector<TaskAlone>& alone, const launch::Launch& launch,
                  const launch::Kernel& kernel) {
    const cuda::SignalCells cells{
        .awaited = [](launch::SignalId) { return device::FlagWait{}; },
        .raised = [](const launch::Raise&) { return std::optional<device::RaiseTarget>(); },
        .is_in_data = [](launch::SignalId) { return false; }};
    const auto spec =
        cuda::bind_kernel({.memory = source_, .alone = alone, .cells = cells}, launch, kernel);
    HP_CHECK(spec.ok(), render(spec.error()));
    return *spec;
  }

  Described described_;
  Blocks blocks_ =
      Blocks::make(described_.plan.program, described_.plan.mesh, described_.plan.form).value();
  cuda::MadeUpMemory memory_{described_.plan, blocks_};
  cuda::CollectiveChoice no_choice_;
  cuda::NarrowStates narrow_ =
      cuda::NarrowStates::of(described_.plan, memory_.bases(), described_.launches.partials16);
  cuda::SpecSource source_ = memory_.source(narrow_, no_choice_, 132);
  cuda::TaskLikeness likeness_;
  std::vector<TaskAlone> own_;
  std::vector<TaskAlone> alike_;
  int alike_count_ = 0;
};

void expect_one_binding(Bound bound, std::size_t least) {
  std::size_t kernels = 0;
  for (const launch::Launch& launch : bound.launches().launches) {
    for (const launch::Kernel& kernel : launch.kernels) {
      if (kernel.panels.empty()) continue;
      ++kernels;
      EXPECT_EQ(bound.by_like_tasks(launch, kernel), bound.by_themselves(launch, kernel));
    }
  }
  EXPECT_GE(kernels, least);
  EXPECT_GT(bound.alike_count(), 0);
}

// Four ranks have 64 heads, which share `kv_heads` key heads.
void expect_heads_where_wanted(const std::string& kv_heads) {
  Bound bound(describe("decode", {"heads=64", kv_heads, "head_dim=128"}, "tp=4", "bulk"));
  int kernels = 0;
  for (const launch::Launch& launch : bound.launches().launches) {
    for (const launch::Kernel& kernel : launch.kernels) {
      if (kernel.panels.empty()) continue;
      ++kernels;
      const auto spec = bound.spec_of(launch, kernel).get<AttentionSpec>();
      ASSERT_EQ(spec.results.size(), 4U);
      for (std::int64_t rank = 0; rank < 4; ++rank) {
        const cuda::AttentionResultSpec& result = spec.results[static_cast<std::size_t>(rank)];
        EXPECT_EQ(result.first_head, 16 * rank) << kv_heads;
        EXPECT_EQ(result.addends.size(), RankId(rank) == launch.rank ? 3U : 0U);
      }
      EXPECT_FALSE(spec.to_state) << "the own heads are rounded, once all are combined";
    }
  }
  EXPECT_EQ(kernels, 4) << kv_heads;
}

// A rank has the heads of several key heads, those of one, or some of those of one.
TEST(Binding, sends_heads_of_few_queries_to_the_ranks_that_want_them) {
  for (const char* const kv_heads : {"kv_heads=8", "kv_heads=4", "kv_heads=1"}) {
    expect_heads_where_wanted(kv_heads);
  }
}

const std::vector<std::string> kShape = {"m=1024", "n=512", "k=1024"};

TEST(Binding, is_the_same_by_tasks_that_are_like_the_launches) {
  for (const char* const schedule : {"push", "push_k", "fetch", "fused", "ring"}) {
    expect_one_binding(Bound(describe("ag_gemm", kShape, "tp=4", schedule)), 4);
    expect_one_binding(Bound(describe("ag_gemm", kShape, "tp=3", schedule)), 3);
  }
  expect_one_binding(Bound(describe("gemm_rs", kShape, "tp=4", "push")), 4);
  expect_one_binding(Bound(describe("gemm_rs", kShape, "tp=4", "ring")), 4);
  expect_one_binding(Bound(describe("gemm_ar", kShape, "tp=4", "push")), 4);
  expect_one_binding(Bound(describe("gemm_ar", kShape, "tp=4", "push_n")), 4);
  for (const char* const schedule : {"ring", "push", "zigzag_ring", "zigzag_push"}) {
    expect_one_binding(Bound(describe("attention", {"causal=true"}, "cp=4", schedule)), 4);
    expect_one_binding(Bound(describe("attention", {"causal=true"}, "cp=8", schedule)), 8);
    expect_one_binding(
        Bound(describe("attention", {"causal=true", "window=700"}, "cp=8", schedule)), 8);
  }
  expect_one_binding(Bound(describe("decode", {}, "tp=4", "push")), 4);
  expect_one_binding(Bound(describe("decode", {}, "tp=4", "bulk")), 4);
  for (const char* const schedule : {"push", "bulk"}) {
    const std::vector<std::string> cache = {"ragged=true", "page=16"};
    expect_one_binding(Bound(describe("decode", cache, "tp=2", schedule)), 2);
    const std::vector<std::string> cut = {"heads=64", "kv_heads=1", "ragged=true", "page=16"};
    expect_one_binding(Bound(describe("decode", cut, "tp=2", schedule)), 2);
  }
  for (const char* const schedule : {"push", "fused"}) {
    const Linear linear{.op = "ag_gemm", .schedule = schedule, .m = 1024, .n = 512, .k = 1024};
    expect_one_binding(Bound(describe(ask(linear, "tp=4"))), 4);
  }
}

TEST(Binding, of_groups_is_offered_in_the_order_of_their_operands) {
  const Described moe = describe("moe", {"tokens=256", "experts=4"}, "ep=2", "push");
  const Blocks blocks = Blocks::make(moe.plan.program, moe.plan.mesh, moe.plan.form).value();
  const launch::Exchanges exchanges =
      launch::exchanges_of(moe.plan, blocks, cuda::LaunchTarget({}));
  cuda::SpecOffers offers(moe.plan, blocks, exchanges, moe.launches.partials16, 132);
  int groups = 0;
  for (const launch::Launch& launch : moe.launches.launches) {
    if (launch.kernels.empty() || launch.kernels.front().name != "grouped_gemm") continue;
    for (const TaskId task : launch.does) ASSERT_TRUE(offers.kernels_of(task).ok());
    launch::Kernel kernel = launch.kernels.front();
    EXPECT_EQ(offers.choose(launch, kernel), kernel.variant);
    std::ranges::reverse(kernel.panels);
    EXPECT_EQ(offers.choose(launch, kernel), std::nullopt);
    ++groups;
  }
  EXPECT_GT(groups, 0);
}

// The refusal of the first launch whose kernel `change` applies to.
template <class Change>
std::string refusal(const Described& described, const Change& change) {
  const Blocks blocks =
      Blocks::make(described.plan.program, described.plan.mesh, described.plan.form).value();
  const auto binding =
      cuda::MadeUpBinding::make(described.plan, blocks, described.launches, {}).value();
  for (launch::Launch launch : described.launches.launches) {
    if (launch.kernels.empty() || !change(launch.kernels.front())) continue;
    const auto bound = binding->bind(launch);
    return bound.ok() ? "bound" : render(bound.error());
  }
  return "no such kernel";
}

TEST(Binding, refuses_a_copy_that_no_task_makes) {
  const auto shorter = [](launch::Kernel& kernel) {
    if (kernel.fused_copies.empty()) return false;
    --kernel.fused_copies.back().from.span.front().end;
    return true;
  };
  const std::string text = refusal(describe("ag_gemm", kShape, "tp=4", "fused"), shorter);
  EXPECT_NE(text.find("none of them makes a copy that it makes"), std::string::npos) << text;
}

TEST(Binding, refuses_copies_by_attention) {
  const auto copying = [](launch::Kernel& kernel) {
    if (kernel.panels.empty()) return false;
    kernel.fused_copies.emplace_back();
    return true;
  };
  const std::string text = refusal(describe("attention", {}, "cp=4", "ring"), copying);
  EXPECT_NE(text.find("attention makes no copies"), std::string::npos) << text;
}

TEST(Binding, refuses_results_that_are_not_stored) {
  const auto forgetful = [](launch::Kernel& kernel) {
    if (kernel.panels.empty() || kernel.panels.front().stores.size() < 2) return false;
    kernel.panels.front().stores.pop_back();
    return true;
  };
  const std::string text = refusal(describe("attention", {}, "cp=4", "ring"), forgetful);
  EXPECT_NE(text.find("lse have no place"), std::string::npos) << text;
}

}  // namespace
}  // namespace harpe::test
