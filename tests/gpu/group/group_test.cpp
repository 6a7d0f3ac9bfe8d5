#include <algorithm>
#include <barrier>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "tests/gpu/group/rank_memory.h"

namespace harpe::ranks_on_gpus {
namespace {

class GpuGroup : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = missing_for_gpus()) GTEST_SKIP() << "skipped: " << *missing;
  }
};

Question small(const std::string& op, std::map<std::string, Value> sizes, const std::string& mesh) {
  return {.op = op, .parameters = std::move(sizes), .mesh = mesh};
}

std::vector<Question> questions(const std::string& tp, const std::string& cp) {
  return {small("ag_gemm", {{"m", 512}, {"n", 256}, {"k", 256}}, tp),
          small("ag_gemm", {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", "f32"}}, tp),
          small("gemm_rs", {{"m", 512}, {"n", 256}, {"k", 256}}, tp),
          small("gemm_ar", {{"m", 256}, {"n", 256}, {"k", 512}}, tp),
          small("attention", {{"seq", 512}, {"heads", 4}, {"head_dim", 64}, {"causal", true}}, cp),
          small("decode", {{"kv", 1024}, {"heads", 4}, {"head_dim", 64}, {"batch", 2}}, tp)};
}

// If ranks share a GPU, one rank's host copy may queue behind another rank's, which waits for the
// first rank. So ranks copy only while no rank executes. A rank with a failed assertion leaves the
// barrier.
class Meeting {
 public:
  explicit Meeting(std::barrier<>& ranks) : ranks_(ranks) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() { ranks_.arrive_and_drop(); }
  void wait() { ranks_.arrive_and_wait(); }

 private:
  std::barrier<>& ranks_;
};

// Plans whose tensors are all bound, including those in the heap.
const std::set<std::string> kCopyNothing = {"ag_gemm pull", "ag_gemm push", "gemm_rs push"};

// All plans of an operator share a group and alternate; every round has new inputs. `is_in_heap`
// puts tensors that peers access into the group's heap.
void expect_right_in_turn(const Question& question, bool is_in_heap = false) {
  constexpr int kRounds = 3;
  const std::vector<Plan> plans = plans_of(question);
  ASSERT_FALSE(plans.empty()) << question.op;
  std::vector<std::vector<Tensors>> inputs(kRounds), wanted(kRounds);
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (const Plan& plan : plans) {
      inputs[round].push_back(draw_inputs(plan, 5 + round).value());
      wanted[round].push_back(run_whole(plan, inputs[round].back()));
    }
  }
  const auto ranks = static_cast<int>(plans.front().facts().ranks);
  std::barrier all_ranks(ranks);
  run_ranks(ranks, [&](const Group& group, const CallerStream& stream) {
    Meeting meeting(all_ranks);
    std::vector<Executable> executables;
    std::vector<RankTensors> own;
    for (const Plan& plan : plans) {
      Checked<Executable> made = Executable::make(group, plan);
      ASSERT_TRUE(made.ok()) << plan.facts().schedule << ": " << made.error().text;
      executables.push_back(*std::move(made));
      own.emplace_back(plan, executables.back(), group.rank(), stream.handle(),
                       is_in_heap ? &group : nullptr);
    }
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < plans.size(); ++i) own[i].give(inputs[round][i]);
      stream.synchronize();
      meeting.wait();
      for (std::size_t i = 0; i < plans.size(); ++i) {
        const auto done = executables[i].launch(stream.handle(), own[i].arguments());
        ASSERT_TRUE(done.ok()) << plans[i].facts().schedule << ": " << done.error().text;
      }
      stream.synchronize();
      meeting.wait();
      for (std::size_t i = 0; i < plans.size(); ++i) {
        expect_part(plans[i], group.rank(), own[i], wanted[round][i]);
      }
    }
    ASSERT_TRUE(group.check().ok()) << group.check().error().text;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::int64_t copied = executables[i].status().copied_bytes / kRounds;
      const std::string name = plans[i].facts().op + " " + plans[i].facts().schedule;
      if (group.rank() == 0) std::cout << name << ": " << copied << " bytes copied a launch\n";
      if (is_in_heap && kCopyNothing.contains(name)) {
        EXPECT_EQ(copied, 0) << name;
      }
    }
  });
}

TEST_F(GpuGroup, has_right_results_for_every_schedule) {
  for (const Question& question : questions("tp=2", "cp=2")) expect_right_in_turn(question);
}

TEST_F(GpuGroup, uses_tensors_in_its_memory_where_they_are) {
  for (const Question& question : questions("tp=2", "cp=2")) expect_right_in_turn(question, true);
}

TEST_F(GpuGroup, may_have_one_rank) {
  for (const Question& question : questions("tp=1", "cp=1")) {
    if (!plan(question).ok()) continue;  // an operator that needs several ranks
    expect_right_in_turn(question);
  }
}

// Resources of the process that could leak.
struct Holdings {
  std::size_t free_bytes = 0;
  std::int64_t threads = 0;
  std::int64_t descriptors = 0;
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

Holdings count_holdings() {
  Holdings held;
  std::size_t total = 0;
  must(gpu().driver().cuMemGetInfo(&held.free_bytes, &total));
  const auto count = [](const char* folder) {
    const std::filesystem::directory_iterator entries(folder);
    return std::distance(begin(entries), end(entries));
  };
  held.threads = count("/proc/self/task");
  held.descriptors = count("/proc/self/fd");
  return held;
}

class Alternation : public GpuGroup {
 protected:
  static constexpr std::size_t kSets = 16;
  static constexpr int kLaunches = 10'000;

  const Plan gather_ = plan({.op = "ag_gemm",
                             .parameters = {{"m", 256}, {"n", 256}, {"k", 256}},
                             .mesh = "tp=2",
                             .schedule = "push"})
                           .value();
  const Plan scatter_ = plan({.op = "gemm_rs",
                              .parameters = {{"m", 256}, {"n", 256}, {"k", 256}},
                              .mesh = "tp=2",
                              .schedule = "push"})
                            .value();
};

TEST_F(Alternation, of_two_plans_with_many_sets_stays_right_and_takes_nothing_more) {
  const std::vector<const Plan*> plans = {&gather_, &scatter_};
  std::vector<std::vector<Tensors>> inputs(2), wanted(2);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t set = 0; set < kSets; ++set) {
      inputs[i].push_back(draw_inputs(*plans[i], set).value());
      wanted[i].push_back(run_whole(*plans[i], inputs[i].back()));
    }
  }
  Holdings warm, after;
  run_ranks(2, [&](const Group& group, const CallerStream& stream) {
    std::vector<Executable> executables;
    std::vector<std::vector<RankTensors>> own(2);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      executables.push_back(Executable::make(group, *plans[i]).value());
      for (std::size_t set = 0; set < kSets; ++set) {
        own[i].emplace_back(*plans[i], executables[i], group.rank(), stream.handle());
        own[i].back().give(inputs[i][set]);
      }
    }
    const auto run_some = [&](int launches) {
      for (int at = 0; at < launches; ++at) {
        const auto plan = static_cast<std::size_t>(at) % 2;
        const auto set = static_cast<std::size_t>(at) / 2 % kSets;
        const auto done = executables[plan].launch(stream.handle(), own[plan][set].arguments());
        ASSERT_TRUE(done.ok()) << done.error().text;
        if (at % 256 == 255) stream.synchronize();
      }
      stream.synchronize();
    };
    run_some(100);
    if (group.rank() == 0) warm = count_holdings();
    run_some(kLaunches);
    if (group.rank() == 0) after = count_holdings();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (std::size_t set = 0; set < kSets; ++set) {
        expect_part(*plans[i], group.rank(), own[i][set], wanted[i][set]);
      }
    }
  });
  EXPECT_EQ(warm.free_bytes, after.free_bytes);
  EXPECT_LE(after.threads, warm.threads);
  EXPECT_EQ(warm.descriptors, after.descriptors);
}

// Memsets in another stream delay the ranks' kernels.
TEST_F(Alternation, is_right_beside_other_work_of_the_gpu) {
  const Tensors inputs = draw_inputs(gather_, 77).value();
  const Tensors wanted = run_whole(gather_, inputs);
  run_ranks(2, [&](const Group& group, const CallerStream& stream) {
    const Executable executable = Executable::make(group, gather_).value();
    RankTensors own(gather_, executable, group.rank(), stream.handle());
    const CallerStream busy;
    const GpuTensor large(std::size_t{256} << 20);
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 20; ++i) large.fill(static_cast<unsigned char>(i), busy.handle());
      own.give(inputs);
      ASSERT_TRUE(executable.launch(stream.handle(), own.arguments()).ok());
      expect_part(gather_, group.rank(), own, wanted);
    }
    busy.synchronize();
  });
}

// A caller's graph with executions of two plans, beside eager launches and a second graph. Every
// rank captures and runs them in the same order.
TEST_F(Alternation, runs_from_graphs_that_callers_capture) {
  const std::vector<const Plan*> plans = {&gather_, &scatter_};
  std::vector<Tensors> inputs, wanted;
  for (const Plan* const plan : plans) {
    inputs.push_back(draw_inputs(*plan, 31).value());
    wanted.push_back(run_whole(*plan, inputs.back()));
  }
  std::barrier all_ranks(2);
  run_ranks(2, [&](const Group& group, const CallerStream& stream) {
    Meeting meeting(all_ranks);
    std::vector<Executable> executables;
    std::vector<RankTensors> own;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      executables.push_back(Executable::make(group, *plans[i]).value());
      own.emplace_back(*plans[i], executables[i], group.rank(), stream.handle());
    }
    const auto launch = [&](std::size_t plan) {
      const auto done = executables[plan].launch(stream.handle(), own[plan].arguments());
      ASSERT_TRUE(done.ok()) << done.error().text;
    };
    const CallerGraph both(stream, [&] {
      launch(0);
      launch(1);
    });
    const CallerGraph last(stream, [&] { launch(1); });
    EXPECT_EQ(executables[0].status().launches, 0) << "captures are none";
    for (int round = 0; round < 5; ++round) {
      for (std::size_t i = 0; i < plans.size(); ++i) own[i].give(inputs[i]);
      stream.synchronize();
      meeting.wait();
      both.launch(stream);
      launch(0);
      last.launch(stream);
      stream.synchronize();
      meeting.wait();
      for (std::size_t i = 0; i < plans.size(); ++i) {
        expect_part(*plans[i], group.rank(), own[i], wanted[i]);
      }
    }
    ASSERT_TRUE(group.check().ok()) << group.check().error().text;
  });
}

// One rank only: several ranks of a process in its one default stream would wait for each other.
TEST_F(GpuGroup, launches_in_the_default_stream_too) {
  const Plan alone =
      plan({.op = "ag_gemm", .parameters = {{"m", 256}, {"n", 256}, {"k", 256}}, .mesh = "tp=1"})
          .value();
  const Tensors inputs = draw_inputs(alone, 4).value();
  const Tensors wanted = run_whole(alone, inputs);
  run_ranks(1, [&](const Group& group, const CallerStream& stream) {
    const Executable executable = Executable::make(group, alone).value();
    RankTensors own(alone, executable, group.rank(), nullptr);
    for (CUstream const each : {CUstream{nullptr}, stream.handle(), CUstream{nullptr}}) {
      own.give(inputs);
      const auto done = executable.launch(each, own.arguments());
      ASSERT_TRUE(done.ok()) << done.error().text;
      must(gpu().driver().cuStreamSynchronize(each));
      expect_part(alone, group.rank(), own, wanted);
    }
  });
}

// Rank 1 is late for longer than the limit. Rank 0's fault then fails rank 1's own launches.
TEST_F(Alternation, ends_with_a_fault_that_names_who_is_late_until_it_is_reset) {
  const Tensors inputs = draw_inputs(gather_, 3).value();
  const Tensors wanted = run_whole(gather_, inputs);
  run_ranks(
      2,
      [&](const Group& group, const CallerStream& stream) {
        const Executable executable = Executable::make(group, gather_).value();
        RankTensors own(gather_, executable, group.rank(), stream.handle());
        own.give(inputs);
        ASSERT_TRUE(executable.launch(stream.handle(), own.arguments()).ok());
        stream.synchronize();
        EXPECT_TRUE(group.check().ok());
        if (group.rank() == 0) {
          EXPECT_TRUE(executable.launch(stream.handle(), own.arguments()).ok());
          stream.synchronize();
          const Checked<Done> done = executable.launch(stream.handle(), own.arguments());
          ASSERT_FALSE(done.ok());
          EXPECT_EQ(done.error().kind, ErrorKind::Fault);
          EXPECT_NE(done.error().text.find("rank 0 waited"), std::string::npos)
              << done.error().text;
          EXPECT_NE(done.error().text.find("of rank 1"), std::string::npos) << done.error().text;
          EXPECT_EQ(group.check().error().text, done.error().text);
          std::cout << done.error().text << "\n";
        }
        ASSERT_TRUE(group.reset().ok());
        EXPECT_TRUE(group.check().ok());
        for (int round = 0; round < 3; ++round) {
          own.give(inputs);
          const auto done = executable.launch(stream.handle(), own.arguments());
          ASSERT_TRUE(done.ok()) << done.error().text;
          expect_part(gather_, group.rank(), own, wanted);
        }
      },
      std::chrono::milliseconds(500));
}

// Rank 1 detects the difference at its launch, rank 0 at its next call; neither waits for it.
TEST_F(Alternation, names_both_plans_where_ranks_launch_different_ones) {
  std::barrier all_ranks(2);
  const std::vector<const Plan*> plans = {&gather_, &scatter_};
  std::vector<Tensors> inputs, wanted;
  for (const Plan* const plan : plans) {
    inputs.push_back(draw_inputs(*plan, 13).value());
    wanted.push_back(run_whole(*plan, inputs.back()));
  }
  run_ranks(2, [&](const Group& group, const CallerStream& stream) {
    Meeting meeting(all_ranks);
    std::vector<Executable> executables;
    std::vector<RankTensors> own;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      executables.push_back(Executable::make(group, *plans[i]).value());
      own.emplace_back(*plans[i], executables[i], group.rank(), stream.handle());
    }
    const auto launch = [&](std::size_t plan) {
      return executables[plan].launch(stream.handle(), own[plan].arguments());
    };
    ASSERT_TRUE(launch(0).ok());
    stream.synchronize();
    meeting.wait();
    const auto begin = std::chrono::steady_clock::now();
    if (group.rank() == 0) {
      EXPECT_TRUE(launch(0).ok());
    }
    meeting.wait();
    if (group.rank() == 1) {
      const Checked<Done> refused = launch(1);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().text,
                "error[I311]: `execution 2 of the group` must be of the same plan on all ranks, "
                "but is executable 1 (`gemm_rs`) on rank 1 and executable 0 (`ag_gemm`) on rank 0");
    }
    meeting.wait();
    const Checked<Done> found = group.check();
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, "I311");
    EXPECT_FALSE(launch(0).ok());
    ASSERT_TRUE(group.reset().ok());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    for (std::size_t i = 0; i < plans.size(); ++i) {
      own[i].give(inputs[i]);
      stream.synchronize();
      meeting.wait();
      ASSERT_TRUE(launch(i).ok());
      stream.synchronize();
      meeting.wait();
      expect_part(*plans[i], group.rank(), own[i], wanted[i]);
    }
  });
}

}  // namespace
}  // namespace harpe::ranks_on_gpus
