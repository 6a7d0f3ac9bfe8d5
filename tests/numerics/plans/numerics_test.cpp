// Every operator under every schedule, on meshes and shapes that divide evenly and that do not, in
// every type. Results are within the bound that commir.md section 9 derives for the plan
// (run/bound.h: a failure prints its terms), and have the same bits under other timings. The plan's
// H200 launches, with a GPU per rank and shared, are executed too: with the same bits if they add
// in the plan's order, else within the same bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "compile/session.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cuda/target/launch_target.h"
#include "launch/make_launches.h"
#include "run/check.h"
#include "run/run.h"
#include "schedule/named/registry.h"
#include "support/rng.h"
#include "verify/verify.h"
#include "verify/verify_launches.h"

namespace harpe {
namespace {

struct Shape {
  const char* note;
  std::vector<std::string> parameters;
};

const std::vector<Shape> kProducts = {
    {"divides", {"m=64", "n=48", "k=96"}},
    {"odd", {"m=37", "n=53", "k=29"}},
    {"smaller than the mesh", {"m=5", "n=3", "k=7"}},
};
const std::vector<Shape> kAttentions = {
    {"full", {"seq=96", "heads=8", "kv_heads=8", "head_dim=16"}},
    {"causal, grouped, odd, two in a batch",
     {"batch=2", "seq=61", "heads=12", "kv_heads=4", "head_dim=24", "causal=true"}},
    {"more keys than queries, five heads, narrow values",
     {"seq=37", "kv_seq=70", "heads=5", "kv_heads=5", "head_dim=16", "v_head_dim=8",
      "causal=true"}},
    {"fewer keys than queries: rows that see nothing",
     {"seq=40", "kv_seq=9", "heads=8", "kv_heads=2", "head_dim=8", "causal=true"}},
    {"shorter than the mesh", {"seq=3", "heads=8", "kv_heads=8", "head_dim=8"}},
    {"a sliding window",
     {"seq=67", "heads=8", "kv_heads=4", "head_dim=8", "causal=true", "window=13"}},
    {"a window of more keys than queries, behind a prefix",
     {"seq=30", "kv_seq=52", "heads=8", "kv_heads=8", "head_dim=8", "window=6", "prefix=11"}},
};
const std::vector<Shape> kDecodes = {
    {"divides", {"batch=2", "kv=96", "heads=8", "kv_heads=8", "head_dim=16"}},
    {"grouped, odd, narrow values",
     {"batch=3", "kv=61", "heads=12", "kv_heads=4", "head_dim=24", "v_head_dim=10"}},
    {"fewer keys than ranks, one head", {"batch=5", "kv=3", "heads=1", "head_dim=8"}},
};
// Multi-head latent attention: keys wider than values, expanded and absorbed.
const std::vector<Shape> kLatent = {
    {"192/128 per head", {"seq=24", "heads=4", "head_dim=192", "v_head_dim=128", "causal=true"}},
    {"576/512, one latent head for all",
     {"seq=11", "heads=8", "kv_heads=1", "head_dim=576", "v_head_dim=512", "causal=true"}},
};
const std::vector<Shape> kExperts = {
    {"divides", {"tokens=64", "experts=16", "topk=2", "hidden=16", "inter=24"}},
    {"odd, three choices", {"tokens=37", "experts=13", "topk=3", "hidden=11", "inter=7"}},
    {"fewer tokens than ranks, every expert chosen",
     {"tokens=3", "experts=8", "topk=8", "hidden=4", "inter=5"}},
    {"a skewed load", {"tokens=50", "experts=9", "topk=2", "hidden=8", "inter=8", "skew=3"}},
};
const std::vector<Shape> kCapped = {
    {"a hot expert overflows",
     {"tokens=50", "experts=9", "topk=2", "hidden=8", "inter=8", "skew=3", "capacity=12"}},
    {"one token per expert, the others drop",
     {"tokens=29", "experts=8", "topk=3", "hidden=5", "inter=4", "capacity=1"}},
};
// Tables shorter and longer than the pool; randomly drawn tables let sequences share pages.
const std::vector<Shape> kPools = {
    {"pool", {"pages=12", "table=3", "page=16", "kv_heads=2"}},
    {"pool, ragged, pages across blocks",
     {"batch=5", "pages=7", "table=5", "page=5", "heads=6", "kv_heads=2", "ragged=true"}},
    {"a table of more than there is, narrow values",
     {"pages=4", "table=6", "page=8", "v_head_dim=6", "ragged=true"}},
    {"pages of one key, fewer than ranks", {"batch=4", "pages=3", "table=2", "page=1"}},
};
// Keys that hold their values.
const std::vector<Shape> kLatentCaches = {
    {"one latent head for all", {}},
    {"576/512, odd", {"batch=2", "kv=37", "heads=5", "head_dim=576", "v_head_dim=512"}},
    {"two latent heads, ragged", {"kv=61", "kv_heads=2", "head_dim=24", "ragged=true"}},
    {"paged and ragged", {"kv=60", "page=4", "v_head_dim=12", "ragged=true"}},
};
// Mask inputs are drawn: documents of one position up to all, lengths from none to all.
const std::vector<Shape> kPacked = {
    {"packed", {"seq=96", "heads=8", "kv_heads=8", "head_dim=16", "packed=true"}},
    {"packed, causal, grouped, odd, three in a batch",
     {"batch=3", "seq=61", "heads=12", "kv_heads=4", "head_dim=24", "causal=true", "packed=true"}},
    {"packed behind a window and a prefix, narrow values",
     {"batch=2", "seq=67", "heads=5", "kv_heads=5", "head_dim=16", "v_head_dim=8", "window=13",
      "prefix=9", "packed=true"}},
    {"packed, shorter than the mesh",
     {"batch=2", "seq=3", "heads=8", "kv_heads=8", "head_dim=8", "packed=true"}},
};
const std::vector<Shape> kCaches = {
    {"ragged", {"batch=5", "kv=96", "heads=8", "kv_heads=8", "head_dim=16", "ragged=true"}},
    {"ragged, grouped, odd, narrow values",
     {"batch=4", "kv=61", "heads=12", "kv_heads=4", "head_dim=24", "v_head_dim=10", "ragged=true"}},
    {"paged", {"batch=2", "kv=60", "heads=8", "kv_heads=4", "head_dim=8", "page=4"}},
    {"paged and ragged, pages across blocks",
     {"batch=4", "kv=105", "heads=6", "kv_heads=2", "head_dim=8", "page=7", "ragged=true"}},
    {"pages of one key, fewer than ranks",
     {"batch=5", "kv=3", "heads=1", "head_dim=8", "page=1", "ragged=true"}},
    {"one page", {"batch=3", "kv=40", "heads=2", "head_dim=8", "page=40", "ragged=true"}},
};
const std::vector<std::string> kMeshes = {"x=1",     "x=2",     "x=3",     "x=4",
                                          "x=5",     "x=6",     "x=8",     "y=2,x=2",
                                          "y=2,x=3", "y=2,x=4", "y=3,x=2", "z=2,y=2,x=2"};

using Outputs = std::map<std::string, HostTensor>;

Outputs execute(Checked<std::unique_ptr<Executor>> executor, const Plan& plan,
                const TensorMap& inputs) {
  if (!executor.ok()) {
    ADD_FAILURE() << render(executor.error());
    return {};
  }
  for (const auto& [name, tensor] : inputs) (void)(*executor)->set_input(name, tensor).value();
  const Result<RunStats, FaultReport> stats = (*executor)->run({.iterations = 2});
  if (!stats.ok()) {
    ADD_FAILURE() << render(stats.error());
    return {};
  }
  Outputs outputs;
  for (const Buffer* buffer : buffers_of(plan.program)) {
    if (buffer->role == Role::Out)
      outputs[buffer->name] = (*executor)->output(buffer->name).value();
  }
  return outputs;
}

Outputs execute(const Plan& plan, const TensorMap& inputs, const CpuOptions& options) {
  return execute(make_cpu_executor(plan, options), plan, inputs);
}

bool any_panel(const launch::LaunchPlan& launches, bool (*test)(const launch::Panel& panel)) {
  return std::ranges::any_of(launches.launches, [&](const launch::Launch& launch) {
    return std::ranges::any_of(launch.kernels, [&](const launch::Kernel& kernel) {
      return std::ranges::any_of(kernel.panels, test);
    });
  });
}

// True if a kernel adds in another order than the plan: its own sum first, then other ranks' sums.
bool reorders(const launch::LaunchPlan& launches) {
  return any_panel(launches, [](const launch::Panel& panel) { return panel.addends.size() > 1; });
}

// True if a kernel of few queries has heads that share keys in several panels. CPUs multiply fewer
// rows at a time then, and round differently.
bool parts_groups(const launch::LaunchPlan& launches) {
  constexpr std::size_t kGroup = 2;  // q[B, (Hkv, G), D]
  const auto are_parts = [](const launch::Kernel& kernel) {
    return kernel.variant.starts_with("keys in") &&
           std::ranges::any_of(kernel.panels, [&](const launch::Panel& panel) {
             return panel.reads.front().span[kGroup] !=
                    kernel.panels.front().reads.front().span[kGroup];
           });
  };
  return std::ranges::any_of(launches.launches, [&](const launch::Launch& launch) {
    return std::ranges::any_of(launch.kernels, are_parts);
  });
}

// True if an attention kernel combines its states with those of other ranks.
bool combines(const launch::LaunchPlan& launches) {
  return any_panel(launches, [](const launch::Panel& panel) {
    return !panel.addends.empty() && panel.addends.front().reads.size() > 1;
  });
}

bool has_panels(const launch::LaunchPlan& launches) {
  return any_panel(launches, [](const launch::Panel&) { return true; });
}

// True if a plain kernel computes the operands that the tensor-core kernel cannot read.
bool leaves_rest(const launch::LaunchPlan& launches) {
  return std::ranges::any_of(launches.launches, [](const launch::Launch& launch) {
    const auto names = [&](std::string_view name) {
      return std::ranges::count(launch.kernels, name, &launch::Kernel::name) > 0;
    };
    return names("gemm") && names("gemm_sm90");
  });
}

class Tally {
 public:
  int plans = 0;
  int launched = 0;  // launch plans of H200s
  int panels = 0;    // of those, with kernels that have panels
  int rests = 0;     // of those, with plain kernels for part of a task
  int combined = 0;  // of those, with kernels that combine ranks' states
  int refused = 0;
  int timings = 0;
  double worst = 0;  // error over bound

  void run(const std::string& op, const std::vector<Shape>& shapes, const std::string& dtype,
           const std::vector<std::string>& meshes = kMeshes) {
    run(op, op, shapes, dtype, meshes);
  }
  // Runs a program from a file under the schedules of `op`.
  void run(const std::string& target, const std::string& op, const std::vector<Shape>& shapes,
           const std::string& dtype, const std::vector<std::string>& meshes) {
    for (const NamedSchedule& schedule : schedules_of(op)) {
      for (const std::string& mesh : meshes) {
        for (const Shape& shape : shapes) {
          std::vector<std::string> parameters = shape.parameters;
          parameters.push_back("dtype=" + dtype);
          check({.target = target,
                 .parameters = std::move(parameters),
                 .mesh = mesh,
                 .schedule = std::string(schedule.name)},
                target + " " + std::string(schedule.name) + " on " + mesh + ", " + shape.note +
                    ", " + dtype);
        }
      }
    }
  }

 private:
  void check(const Request& request, const std::string& what) {
    SCOPED_TRACE(what);
    Session session(true);
    const Checked<Scheduled> scheduled = session.schedule(request);
    if (!scheduled.ok()) {  // only the registry's own refusals, which have their own tests
      ++refused;
      EXPECT_TRUE(render(scheduled.error()).starts_with("error[S6")) << render(scheduled.error());
      return;
    }
    const Checked<Plan> plan = session.lower(*scheduled);
    if (!plan.ok()) {
      ADD_FAILURE() << render(plan.error());
      return;
    }
    const Checked<Certificate> certificate = verify(*plan);
    if (!certificate.ok()) {
      ADD_FAILURE() << render(certificate.error());
      return;
    }
    ++plans;
    RunRequest draw;
    draw.seed = static_cast<std::uint64_t>(plans);
    const Checked<TensorMap> inputs = prepare_run(*plan, draw);
    ASSERT_TRUE(inputs.ok()) << render(inputs.error());
    const Outputs outputs = execute(*plan, *inputs, {});
    const Checked<CheckReport> report = check_outputs(*plan, *inputs, outputs, draw.seed, 1);
    ASSERT_TRUE(report.ok()) << render(report.error());
    for (const Comparison& one : report->outputs) worst = std::max(worst, one.error / one.bound);
    if (!report->passed()) ADD_FAILURE() << render(failure_of(*report));
    compare_timings(*plan, *inputs, outputs);
    compare_launches(*plan, *inputs, outputs);
  }

  // Executes the plan's GPU launches: with a GPU per rank, and also shared or with NCCL collectives
  // if those launches differ.
  void compare_launches(const Plan& plan, const TensorMap& inputs, const Outputs& expected) {
    static constexpr cuda::DescribedTarget kTargets[] = {
        {}, {.shares_gpus = true}, {.collectives = CollectiveEngine::Nccl}};
    const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
    std::optional<launch::LaunchPlan> own;
    for (const cuda::DescribedTarget& target : kTargets) {
      auto launches = launch::make_launches(plan, blocks, cuda::LaunchTarget(target));
      if (!launches.ok()) {
        EXPECT_TRUE(render(launches.error()).starts_with("error[G")) << render(launches.error());
        return;
      }
      if (own && own->launches == launches->launches) continue;
      compare_with(*launches, plan, inputs, expected);
      if (!own) own = std::move(launches).value();
    }
  }

  void compare_with(const launch::LaunchPlan& launches, const Plan& plan, const TensorMap& inputs,
                    const Outputs& expected) {
    const auto proved = verify_launches(plan, launches);
    ASSERT_TRUE(proved.ok()) << render(proved.error());
    ++launched;
    panels += has_panels(launches) ? 1 : 0;
    rests += leaves_rest(launches) ? 1 : 0;
    combined += combines(launches) ? 1 : 0;
    const Outputs outputs = execute(make_cpu_executor(plan, launches, {}), plan, inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    if (reorders(launches) || parts_groups(launches)) {
      const auto report = check_outputs(plan, inputs, outputs, 1, 1);
      ASSERT_TRUE(report.ok()) << render(report.error());
      if (!report->passed()) ADD_FAILURE() << render(failure_of(*report));
      return;
    }
    for (const auto& [name, tensor] : expected) {
      EXPECT_EQ(outputs.at(name).data, tensor.data) << name << " depends on the launches";
    }
  }

  // Executes another interleaving of the plan, or sometimes real threads with random delays.
  void compare_timings(const Plan& plan, const TensorMap& inputs, const Outputs& expected) {
    auto state = static_cast<std::uint64_t>(plans);
    CpuOptions options{.runner = QueueRunner::Stepper};
    options.choose = [&state](std::size_t ready) {
      state = mix_bits(state + 0x9e3779b97f4a7c15ULL);
      return static_cast<std::size_t>(state % ready);
    };
    if (plans % 23 == 0) options = {.runner = QueueRunner::Threads, .delay_seed = state};
    const Outputs again = execute(plan, inputs, options);
    ASSERT_EQ(again.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      EXPECT_EQ(again.at(name).data, tensor.data) << name << " depends on timing";
    }
    ++timings;
  }
};

class Numerics : public testing::TestWithParam<std::string> {
 protected:
  static void report(const Tally& tally, int least) {
    std::printf(
        "%d plans checked, %d other timings, %d refused by construction; errors up to %.2f of "
        "their bounds; %d launch plans of GPUs, %d with panels, %d with rests\n",
        tally.plans, tally.timings, tally.refused, tally.worst, tally.launched, tally.panels,
        tally.rests);
    EXPECT_GE(tally.plans, least);
  }
};

TEST_P(Numerics, products_are_right_under_every_schedule) {
  Tally tally;
  for (const char* op : {"gemm", "ag_gemm", "gemm_rs", "gemm_ar", "gemm_ar_norm"}) {
    tally.run(op, kProducts, GetParam());
  }
  report(tally, 400);
  const bool is_half = GetParam() == "bf16" || GetParam() == "f16";
  EXPECT_TRUE(!is_half || tally.rests > 20);
}

TEST_P(Numerics, attention_is_right_under_every_schedule) {
  Tally tally;
  tally.run("attention", kAttentions, GetParam());
  report(tally, 300);
}

TEST_P(Numerics, gradients_of_attention_are_right_under_every_schedule) {
  // f16 and f64 share the meshes, because they add only other kernels.
  std::vector<std::string> meshes = kMeshes;
  if (GetParam() == "f16" || GetParam() == "f64") {
    std::size_t place = GetParam() == "f16" ? 0 : 1;
    std::erase_if(meshes, [&](const std::string&) { return place++ % 2 != 0; });
  }
  Tally tally;
  tally.run("attention_bwd", kAttentions, GetParam(), meshes);
  report(tally, meshes.size() == kMeshes.size() ? 400 : 200);
}

TEST_P(Numerics, decoding_is_right_under_every_schedule) {
  Tally tally;
  tally.run("decode", kDecodes, GetParam(), kMeshes);
  report(tally, 200);
}

// Shapes for which GPUs use kernels with panels, by every rule that joins and moves panels.
TEST(GpuShapes, are_right_under_every_schedule) {
  Tally tally;
  for (const char* op : {"ag_gemm", "gemm_rs", "gemm_ar", "gemm_ar_norm"}) {
    tally.run(op, {{"whole tiles", {"m=96", "n=96", "k=96"}}}, "bf16");
  }
  for (const char* op : {"gemm_rs", "gemm_ar", "gemm_ar_norm"}) {
    tally.run(op, {{"two bands", {"m=2048", "n=2048", "k=128"}}}, "bf16", {"x=2"});
  }
  const std::vector<std::string> meshes = {"x=2", "x=4", "y=2,x=2"};
  const Shape heads = {"whole heads", {"seq=128", "heads=8", "kv_heads=8", "head_dim=64"}};
  Shape masked = {"grouped, causal", {"seq=128", "heads=8", "kv_heads=4", "head_dim=64"}};
  masked.parameters.emplace_back("causal=true");
  tally.run("attention", {heads, masked}, "bf16", meshes);
  tally.run("attention_bwd", {masked}, "bf16", {"x=2"});
  const Shape cache = {"whole heads",
                       {"batch=2", "kv=128", "heads=8", "kv_heads=8", "head_dim=64"}};
  Shape pages = {"grouped, in pages",
                 {"batch=3", "kv=512", "heads=16", "kv_heads=8", "head_dim=64"}};
  for (const char* const given : {"ragged=true", "page=16"}) pages.parameters.emplace_back(given);
  tally.run("decode", {cache, pages}, "bf16", meshes);
  std::printf("%d plans, %d launch plans of GPUs, %d with panels, %d with rests\n", tally.plans,
              tally.launched, tally.panels, tally.rests);
  EXPECT_GT(tally.panels, 100);
  EXPECT_GT(tally.combined, 5);
}

// The types share the meshes, because mask inputs do not depend on the type.
std::vector<std::string> some_meshes(const std::string& dtype) {
  if (dtype == "f32") return {"x=1", "x=3", "x=8", "y=2,x=2"};
  if (dtype == "bf16") return {"x=2", "x=5", "z=2,y=2,x=2"};
  return {dtype == "f16" ? "x=4" : "y=3,x=2"};
}

TEST_P(Numerics, latent_attention_is_right_under_every_schedule) {
  Tally tally;
  tally.run("attention", kLatent, GetParam(), some_meshes(GetParam()));
  tally.run("attention_bwd", kLatent, GetParam(), some_meshes(GetParam()));
  report(tally, 10);
}

TEST_P(Numerics, experts_are_right_under_every_schedule) {
  Tally tally;
  tally.run("moe", kExperts, GetParam());
  tally.run("moe_capped", kCapped, GetParam());
  report(tally, 400);
}

TEST_P(Numerics, packed_documents_are_right_under_every_schedule) {
  Tally tally;
  tally.run("attention", kPacked, GetParam(), some_meshes(GetParam()));
  tally.run("attention_bwd", kPacked, GetParam(), some_meshes(GetParam()));
  report(tally, 30);
}

TEST_P(Numerics, ragged_and_paged_caches_are_right_under_every_schedule) {
  Tally tally;
  tally.run("decode", kCaches, GetParam(), some_meshes(GetParam()));
  report(tally, 20);
}

TEST_P(Numerics, pools_of_pages_are_right_under_every_schedule) {
  Tally tally;
  tally.run(HARPE_SOURCE_DIR "/tests/numerics/plans/decode_pool.op", "decode", kPools, GetParam(),
            some_meshes(GetParam()));
  report(tally, 12);
}

TEST_P(Numerics, caches_whose_keys_hold_the_values_are_right_under_every_schedule) {
  Tally tally;
  tally.run(HARPE_SOURCE_DIR "/tests/numerics/plans/decode_latent.op", "decode", kLatentCaches,
            GetParam(), some_meshes(GetParam()));
  report(tally, 12);
}

INSTANTIATE_TEST_SUITE_P(Types, Numerics, testing::Values("f32", "bf16", "f16", "f64"),
                         [](const auto& dtype) { return dtype.param; });

}  // namespace
}  // namespace harpe
