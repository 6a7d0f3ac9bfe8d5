#include "harpe/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/library/questions.h"
#include "tests/unit/library/rank_tensors.h"

namespace harpe {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The work of one rank, in its own thread.
using RankBody = std::function<void(const Group& group)>;

void run_ranks(int ranks, const RankBody& body, milliseconds wait_limit = milliseconds(20'000)) {
  std::vector<std::jthread> threads;
  for (auto& exchange : local_exchanges(ranks)) {
    threads.emplace_back([&body, exchange, wait_limit] {
      const Checked<Group> group = Group::join({.exchange = exchange, .wait_limit = wait_limit});
      ASSERT_TRUE(group.ok()) << group.error().text;
      body(*group);
    });
  }
}

// Compares a rank's outputs with those of run().
void expect_part(const Plan& plan, int rank, const RankTensors& own, const Tensors& outputs) {
  for (const auto& [name, whole] : outputs) {
    const Tensor wanted = shard(plan, name, rank, whole.view()).value();
    const Tensor& found = own.tensors.at(name);
    EXPECT_EQ(found.shape, wanted.shape) << name;
    EXPECT_TRUE(found.data == wanted.data)
        << name << " on rank " << rank << ", " << plan.facts().op << " " << plan.facts().schedule;
  }
}

// The plans of all named schedules that apply.
std::vector<Plan> plans_of(Question question) {
  std::vector<Plan> plans;
  for (const ScheduleInfo& schedule : schedules(question).value()) {
    if (schedule.refusal) continue;
    question.schedule = schedule.name;
    Checked<Plan> made = plan(question);
    if (made.ok()) plans.push_back(*std::move(made));
  }
  return plans;
}

std::vector<Question> questions() {
  const auto small = [](const std::string& op, std::map<std::string, Value> sizes,
                        const std::string& mesh) {
    return Question{.op = op, .parameters = std::move(sizes), .mesh = mesh};
  };
  return {
      small("ag_gemm", {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", "f32"}}, "tp=3"),
      small("gemm_rs", {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", "bf16"}}, "tp=4"),
      small("gemm_ar", {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", "f32"}}, "tp=2"),
      small("attention", {{"seq", 64}, {"heads", 4}, {"head_dim", 8}, {"causal", true}}, "cp=4"),
      small("decode", {{"kv", 64}, {"heads", 4}, {"head_dim", 8}, {"batch", 2}}, "tp=2"),
      small("moe", {{"tokens", 16}, {"experts", 4}, {"topk", 2}, {"hidden", 8}, {"inter", 16}},
            "ep=2")};
}

TEST(Executable, has_the_bits_of_run_for_every_schedule) {
  std::size_t count = 0;
  for (const Question& question : questions()) {
    const std::vector<Plan> plans = plans_of(question);
    ASSERT_FALSE(plans.empty()) << question.op;
    count += plans.size();
    std::vector<Tensors> inputs, wanted;
    for (const Plan& plan : plans) {
      inputs.push_back(draw_inputs(plan, 5).value());
      wanted.push_back(run_whole(plan, inputs.back()));
    }
    // All plans of an operator share a group and alternate.
    run_ranks(static_cast<int>(plans.front().facts().ranks), [&](const Group& group) {
      std::vector<Executable> executables;
      for (const Plan& plan : plans) {
        Checked<Executable> made = Executable::make(group, plan);
        ASSERT_TRUE(made.ok()) << made.error().text;
        executables.push_back(*std::move(made));
      }
      for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < plans.size(); ++i) {
          RankTensors own(plans[i], executables[i], group.rank(), inputs[i]);
          const Checked<Done> done = executables[i].launch(nullptr, own.arguments());
          ASSERT_TRUE(done.ok()) << done.error().text;
          expect_part(plans[i], group.rank(), own, wanted[i]);
        }
      }
    });
  }
  EXPECT_GT(count, 30U);
}

class GroupOfTwo : public testing::Test {
 protected:
  Plan plan_ = plan({.op = "gemm_ar",
                     .parameters = {{"m", 8}, {"n", 8}, {"k", 16}, {"dtype", "f32"}},
                     .mesh = "tp=2",
                     .schedule = "push"})
                   .value();
  Plan other_ = plan({.op = "ag_gemm",
                      .parameters = {{"m", 8}, {"n", 8}, {"k", 16}, {"dtype", "f32"}},
                      .mesh = "tp=2",
                      .schedule = "push"})
                    .value();
  Tensors inputs_ = draw_inputs(plan_, 3).value();
};

TEST_F(GroupOfTwo, copies_what_peers_touch_and_what_is_not_dense) {
  const Tensors wanted = run_whole(plan_, inputs_);
  run_ranks(2, [&](const Group& group) {
    const Executable executable = Executable::make(group, plan_).value();
    RankTensors own(plan_, executable, group.rank(), inputs_);
    ASSERT_TRUE(executable.launch(nullptr, own.arguments()).ok());
    std::int64_t copied = 0;
    for (const LocalTensor& each : executable.tensors()) {
      if (each.place == LocalTensor::Place::Heap) copied += std::ssize(own.tensors[each.name].data);
    }
    EXPECT_GT(copied, 0);
    EXPECT_EQ(executable.status().copied_bytes, copied);
    // A transposed `b` with other strides; the launch copies it.
    const Tensor& b = own.tensors["b"];
    const std::int64_t rows = b.shape[0], columns = b.shape[1];
    std::vector<float> values(b.data.size() / sizeof(float)), turned(values.size());
    std::memcpy(values.data(), b.data.data(), b.data.size());
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      turned[static_cast<std::size_t>(i % columns * rows + i / columns)] =
          values[static_cast<std::size_t>(i)];
    }
    View view = b.view().data == nullptr ? View{} : dense(turned.data(), DType::F32, b.shape);
    view.strides[0] = 1;
    view.strides[1] = rows;
    std::vector<Argument> arguments = own.arguments();
    for (Argument& each : arguments) {
      if (each.name == "b") each.view = view;
    }
    ASSERT_TRUE(executable.launch(nullptr, arguments).ok());
    EXPECT_EQ(executable.status().copied_bytes, 2 * copied + std::ssize(b.data));
    expect_part(plan_, group.rank(), own, wanted);
  });
}

TEST_F(GroupOfTwo, takes_results_that_peers_write_from_its_memory) {
  const Tensors wanted = run_whole(plan_, inputs_);
  std::vector<std::jthread> threads;
  for (auto& exchange : local_exchanges(2)) {
    threads.emplace_back([&, exchange] {
      constexpr std::int64_t kResult = 8 * 8 * 4;
      const Group group = Group::join({.exchange = exchange, .tensor_bytes = 2 * kResult}).value();
      const Executable executable = Executable::make(group, plan_).value();
      std::vector<std::vector<std::shared_ptr<std::byte>>> held;
      for (int round = 0; round < 3; ++round) {
        RankTensors own(plan_, executable, group.rank(), inputs_);
        std::vector<Argument> arguments = own.arguments();
        held.push_back(executable.take_results(nullptr).value());
        ASSERT_EQ(held.back().size(), executable.tensors().size());
        std::byte* const c = held.back().back().get();
        EXPECT_EQ(c == nullptr, round == 2) << "there is room for two";
        for (Argument& each : arguments) {
          if (each.name == "c" && c != nullptr) each.view.data = c;
        }
        ASSERT_TRUE(executable.launch(nullptr, arguments).ok());
        EXPECT_EQ(executable.status().copied_bytes, round == 2 ? kResult : 0);
        if (c != nullptr) std::memcpy(own.tensors["c"].data.data(), c, kResult);
        expect_part(plan_, group.rank(), own, wanted);
      }
      EXPECT_EQ(group.status().tensor_bytes, 2 * kResult);
      held.clear();
      EXPECT_EQ(group.status().tensor_bytes, 0);
    });
  }
}

TEST_F(GroupOfTwo, refuses_tensors_by_name) {
  run_ranks(2, [&](const Group& group) {
    const Executable executable = Executable::make(group, plan_).value();
    RankTensors own(plan_, executable, group.rank(), inputs_);
    const auto refusal = [&](const std::function<void(std::vector<Argument>&)>& change) {
      std::vector<Argument> arguments = own.arguments();
      change(arguments);
      return executable.launch(nullptr, arguments).error().text;
    };
    EXPECT_THAT(refusal([](auto& all) { all.pop_back(); }),
                HasSubstr("error[I310]: `gemm_ar` is given no tensor for input `c`"));
    EXPECT_THAT(
        refusal([](auto& all) { all[0].view.shape[0] = 3; }),
        HasSubstr("error[I311]: `a` must be f32 of shape [8, 8], but is f32 of shape [3, 8]"));
    EXPECT_THAT(refusal([](auto& all) { all[0].view.dtype = DType::F64; }),
                HasSubstr("`a` must be f32 of shape [8, 8], but is f64 of shape [8, 8]"));
    EXPECT_THAT(refusal([](auto& all) { all[0].view.data = nullptr; }),
                HasSubstr("`a` must be the address of its first element, but is null"));
    EXPECT_THAT(refusal([](auto& all) { all[0].name = "x"; }),
                HasSubstr("`x` must be one of a, b, c, but is no tensor of the plan"));
    EXPECT_THAT(refusal([](auto& all) { all.push_back(all[0]); }),
                HasSubstr("`a` must be given once, but is given twice"));
    EXPECT_THAT(refusal([](auto& all) { all[2].view.data = all[0].view.data; }),
                HasSubstr("`c` must be apart from `a` in memory, but is in part the same"));
    EXPECT_THAT(refusal([](auto& all) { all[2].view.strides = {0, 1}; }),
                HasSubstr("memory in which every element has a place of its own"));
    // None of these calls launched anything.
    EXPECT_EQ(executable.status().launches, 0);
    EXPECT_TRUE(executable.launch(nullptr, own.arguments()).ok());
  });
}

TEST_F(GroupOfTwo, refuses_plans_that_are_not_the_same) {
  run_ranks(2, [&](const Group& group) {
    const Plan& plan = group.rank() == 0 ? plan_ : other_;
    EXPECT_THAT(Executable::make(group, plan).error().text, HasSubstr("error[N015]"));
    const Plan four = harpe::plan(gemm_question()).value();
    EXPECT_THAT(Executable::make(group, four).error().text,
                HasSubstr("`plan` must be for the group's 2 ranks, but is for 4"));
    // The group stays usable.
    EXPECT_TRUE(Executable::make(group, plan_).ok());
  });
}

TEST_F(GroupOfTwo, names_both_plans_where_ranks_launch_different_ones_and_recovers) {
  const Tensors inputs = draw_inputs(other_, 3).value();
  const Tensors wanted = run_whole(plan_, inputs_);
  run_ranks(2, [&](const Group& group) {
    const Executable one = Executable::make(group, plan_).value();
    const Executable other = Executable::make(group, other_).value();
    RankTensors own_one(plan_, one, group.rank(), inputs_);
    RankTensors own_other(other_, other, group.rank(), inputs);
    ASSERT_TRUE(one.launch(nullptr, own_one.arguments()).ok());
    const Checked<Done> done = group.rank() == 0 ? one.launch(nullptr, own_one.arguments())
                                                 : other.launch(nullptr, own_other.arguments());
    ASSERT_FALSE(done.ok());
    EXPECT_THAT(done.error().text,
                HasSubstr("`execution 2 of the group` must be of the same plan on all ranks"));
    EXPECT_THAT(done.error().text, HasSubstr("executable 0 (`gemm_ar`) on rank"));
    EXPECT_THAT(done.error().text, HasSubstr("executable 1 (`ag_gemm`) on rank"));
    EXPECT_EQ(group.check().error().text, done.error().text);
    EXPECT_FALSE(one.launch(nullptr, own_one.arguments()).ok());
    ASSERT_TRUE(group.reset().ok());
    EXPECT_TRUE(group.check().ok());
    ASSERT_TRUE(other.launch(nullptr, own_other.arguments()).ok());
    own_one.tensors["c"].data.assign(own_one.tensors["c"].data.size(), std::byte{0xff});
    ASSERT_TRUE(one.launch(nullptr, own_one.arguments()).ok());
    expect_part(plan_, group.rank(), own_one, wanted);
  });
}

TEST_F(GroupOfTwo, says_who_waits_for_a_rank_that_never_launches) {
  run_ranks(
      2,
      [&](const Group& group) {
        const Executable executable = Executable::make(group, plan_).value();
        RankTensors own(plan_, executable, group.rank(), inputs_);
        if (group.rank() == 1) return;
        const Checked<Done> done = executable.launch(nullptr, own.arguments());
        ASSERT_FALSE(done.ok());
        EXPECT_EQ(done.error().kind, ErrorKind::Fault);
        EXPECT_THAT(done.error().text, HasSubstr("rank 0 waited"));
        EXPECT_THAT(done.error().text, HasSubstr("of rank 1"));
      },
      milliseconds(300));
}

TEST_F(GroupOfTwo, gives_up_a_launch_that_waits_when_asked) {
  std::vector<std::jthread> threads;
  for (auto& exchange : local_exchanges(2)) {
    threads.emplace_back([&, exchange] {
      int asked = 0;
      const Group group =
          Group::join({.exchange = exchange, .waiting = [&] { return ++asked < 3; }}).value();
      const Executable executable = Executable::make(group, plan_).value();
      RankTensors own(plan_, executable, group.rank(), inputs_);
      if (group.rank() == 1) return;
      const Checked<Done> done = executable.launch(nullptr, own.arguments());
      EXPECT_EQ(asked, 3);
      EXPECT_EQ(done.error().kind, ErrorKind::Fault);
      EXPECT_THAT(done.error().text, HasSubstr("rank 0 waited"));
    });
  }
}

TEST(Executable, refuses_pages_that_are_not_there) {
  const Plan plan =
      harpe::plan({.op = "decode",
                   .parameters = {{"kv", 64}, {"heads", 4}, {"head_dim", 8}, {"page", 8}},
                   .mesh = "tp=2"})
          .value();
  const Tensors inputs = draw_inputs(plan, 3).value();
  run_ranks(2, [&](const Group& group) {
    const Executable executable = Executable::make(group, plan).value();
    RankTensors own(plan, executable, group.rank(), inputs);
    int read = 0;
    for (auto& [name, tensor] : own.tensors) {
      if (tensor.dtype != DType::I32 || tensor.data.empty()) continue;
      const std::vector<std::byte> right = tensor.data;
      const std::int32_t far = 1'000'000;
      std::memcpy(tensor.data.data(), &far, sizeof(far));
      EXPECT_THAT(executable.launch(nullptr, own.arguments()).error().text,
                  HasSubstr("error[P220]: `" + name + "` holds 1000000 at ["));
      tensor.data = right;
      ++read;
    }
    EXPECT_EQ(read, 1);  // pages; there are no lengths
    EXPECT_TRUE(executable.launch(nullptr, own.arguments()).ok());
  });
}

TEST(Groups, do_not_know_each_other) {
  const Plan plan = harpe::plan(gemm_question("push")).value();
  const Tensors inputs = draw_inputs(plan, 1).value();
  const Tensors wanted = run_whole(plan, inputs);
  std::vector<std::jthread> groups;
  for (int i = 0; i < 4; ++i) {
    groups.emplace_back([&] {
      run_ranks(4, [&](const Group& group) {
        const Executable executable = Executable::make(group, plan).value();
        RankTensors own(plan, executable, group.rank(), inputs);
        for (int round = 0; round < 10; ++round) {
          ASSERT_TRUE(executable.launch(nullptr, own.arguments()).ok());
        }
        expect_part(plan, group.rank(), own, wanted);
      });
    });
  }
}

TEST(Groups, share_arenas_between_plans) {
  const Plan plan = harpe::plan(gemm_question("push")).value();
  const Plan other = harpe::plan(gemm_question("ring")).value();
  run_ranks(4, [&](const Group& group) {
    const Executable one = Executable::make(group, plan).value();
    const std::int64_t alone = group.status().heap_bytes;
    const Executable two = Executable::make(group, plan).value();
    const Executable three = Executable::make(group, other).value();
    EXPECT_EQ(group.status().executables, 3);
    // Each plan has its own signals, and `ring` may need a larger arena.
    const std::int64_t most = std::max(plan.facts().memory_bytes, other.facts().memory_bytes);
    EXPECT_LT(group.status().heap_bytes, 2 * alone);
    EXPECT_GE(group.status().heap_bytes, most);
  });
}

TEST(Groups, take_the_heap_that_is_asked_for_at_once) {
  constexpr std::int64_t kHeap = std::int64_t{1} << 24;
  const Group group =
      Group::join({.exchange = local_exchanges(1).front(), .heap_bytes = kHeap}).value();
  EXPECT_EQ(group.status().heap_bytes, kHeap);
  Question question = gemm_question();
  question.mesh = "tp=1";
  const Plan alone = plan(question).value();
  ASSERT_LT(alone.facts().memory_bytes, kHeap);
  const Executable executable = Executable::make(group, alone).value();
  // The plan's signals lie outside the heap that was requested.
  EXPECT_LT(group.status().heap_bytes - kHeap, alone.facts().memory_bytes);
}

TEST(Groups, refuse_options_by_name) {
  const auto refusal = [](const GroupOptions& options) {
    return Group::join(options).error().text;
  };
  EXPECT_THAT(refusal({}), HasSubstr("`exchange` must be how ranks meet"));
  const auto alone = local_exchanges(1).front();
  EXPECT_THAT(refusal({.exchange = alone, .heap_bytes = -1}),
              HasSubstr("`heap_bytes` must be at least 0, but is -1"));
  EXPECT_THAT(refusal({.exchange = alone, .result_bytes = -1}),
              HasSubstr("`result_bytes` must be at least 0, but is -1"));
  for (const milliseconds wait : {milliseconds(0), milliseconds::max()}) {
    EXPECT_THAT(refusal({.exchange = alone, .wait_limit = wait}),
                HasSubstr("`wait_limit` must be from 1 ms to 365 days, but is " +
                          std::to_string(wait.count()) + " ms"));
  }
  const auto late = local_exchanges(2, milliseconds(50)).front();
  EXPECT_THAT(refusal({.exchange = late}), HasSubstr("1 of 2 came within 50 ms"));
}

TEST(Meetings, refuse_ranks_that_there_are_not) {
  const auto refusal = [](int rank, int ranks) {
    return meet({.address = "localhost:1", .rank = rank, .ranks = ranks}).error().text;
  };
  EXPECT_EQ(refusal(5, 2), "error[I311]: `rank` must be from 0 to 1, but is 5");
  EXPECT_EQ(refusal(-1, 2), "error[I311]: `rank` must be from 0 to 1, but is -1");
  EXPECT_EQ(refusal(0, 0), "error[I311]: `ranks` must be at least 1, but is 0");
}

TEST(Shard, gives_back_what_it_took) {
  const Plan plan = harpe::plan(attention_question("zigzag_ring")).value();
  const Tensors inputs = draw_inputs(plan, 9).value();
  const Tensor& q = inputs.at("q");
  Tensor back = q;
  back.data.assign(q.data.size(), std::byte{0});
  for (int rank = 0; rank < 4; ++rank) {
    const Tensor part = shard(plan, "q", rank, q.view()).value();
    ASSERT_TRUE(unshard(plan, "q", rank, part.view(), back.view()).ok());
  }
  EXPECT_TRUE(back.data == q.data);
  EXPECT_THAT(shard(plan, "q", 4, q.view()).error().text,
              HasSubstr("`rank` must be one of the plan's 4, but is 4"));
  EXPECT_THAT(shard(plan, "x", 0, q.view()).error().text, HasSubstr("error[I301]"));
}

}  // namespace
}  // namespace harpe
