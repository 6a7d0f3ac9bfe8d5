#include <algorithm>

#include "tests/unit/nvrtc/recorded_ranks.h"

// Groups of ranks on a driver without a GPU: what launches enqueue, keep, copy and refuse.
namespace harpe::cuda {
namespace {

using Group = OnRecordedGpus;

TEST_F(Group, issues_one_graph_between_copies_of_what_peers_touch) {
  run_ranks([](RankGroup& group, int) {
    const auto executable = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    const std::vector<TensorView> tensors = tensors_of(*executable, 0);
    launch(*executable, tensors);
    const int allocations = recording().allocations;
    recording().calls.clear();
    launch(*executable, tensors);
    // Copies a, which peers pull.
    EXPECT_EQ(recording().calls, (Calls{"cuMemcpyAsync", "cuGraphLaunch", "cuEventRecord"}));
    EXPECT_EQ(recording().allocations, allocations);
    EXPECT_EQ(executable->counts().launches, 2);
    EXPECT_EQ(executable->counts().copied_bytes, 2 * executable->homes()[0].bytes());
  });
}

TEST_F(Group, orders_launches_in_other_streams_behind_the_last) {
  run_ranks([](RankGroup& group, int) {
    const auto one = make(group, test::exchange(kGroupRanks, 1000, false));
    const auto other = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    char streams[2];
    launch(*one, tensors_of(*one, 0), &streams[0]);
    launch(*other, tensors_of(*other, 0), &streams[0]);
    recording().calls.clear();
    launch(*one, tensors_of(*one, 0), &streams[0]);
    EXPECT_EQ(std::ranges::count(recording().calls, "cuStreamWaitEvent"), 0);
    launch(*other, tensors_of(*other, 0), &streams[1]);
    EXPECT_EQ(std::ranges::count(recording().calls, "cuStreamWaitEvent"), 1);
    launch(*one, tensors_of(*one, 0), nullptr);
    EXPECT_EQ(std::ranges::count(recording().calls, "cuStreamWaitEvent"), 2);
  });
}

// A known set of tensors costs only a look-up. A new set takes the graph of the least recently used
// one.
TEST_F(Group, keeps_a_graph_for_each_of_the_last_sets) {
  run_ranks([](RankGroup& group, int) {
    const auto executable = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    EXPECT_EQ(recording().graphs, static_cast<int>(Bindings::kMost)) << "made at once";
    constexpr int kMost = static_cast<int>(Bindings::kMost);
    const auto launch_set = [&](int set) {
      recording().calls.clear();
      launch(*executable, tensors_of(*executable, static_cast<std::uint64_t>(set)));
      const auto changes = std::ranges::count(recording().calls, "cuGraphExecKernelNodeSetParams");
      return static_cast<int>(changes);
    };
    for (int set = 0; set < kMost; ++set) EXPECT_GT(launch_set(set), 0);
    EXPECT_EQ(recording().graphs, kMost);
    for (int set = 0; set < kMost; ++set) EXPECT_EQ(launch_set(set), 0);
    EXPECT_GT(launch_set(kMost), 0) << "in place of set 0";
    EXPECT_EQ(std::ranges::count(recording().calls, "cuGraphInstantiateWithFlags"), 0);
    EXPECT_EQ(launch_set(1), 0);
    EXPECT_GT(launch_set(0), 0) << "in place of set 2";
    EXPECT_EQ(launch_set(3), 0);
    EXPECT_GT(launch_set(2), 0);
    EXPECT_EQ(recording().graphs, kMost);
  });
}

TEST_F(Group, becomes_a_node_of_a_graph_that_the_caller_captures) {
  run_ranks([](RankGroup& group, int) {
    const auto executable = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    const std::vector<TensorView> tensors = tensors_of(*executable, 3);
    launch(*executable, tensors);
    const std::vector<RecordedNode> launched = recording().launched;
    recording().is_captured = true;
    recording().calls.clear();
    launch(*executable, tensors);
    const auto count = [](const char* call) {
      return std::ranges::count(recording().calls, std::string(call));
    };
    EXPECT_EQ(count("cuGraphAddChildGraphNode"), 1);
    EXPECT_EQ(recording().calls.back(), "cuStreamUpdateCaptureDependencies");
    EXPECT_EQ(count("cuGraphLaunch") + count("cuStreamWaitEvent") + count("cuEventRecord"), 0);
    ASSERT_EQ(recording().launched.size(), launched.size());
    for (std::size_t node = 0; node < launched.size(); ++node) {
      EXPECT_TRUE(recording().launched[node].parameter == launched[node].parameter) << node;
      EXPECT_EQ(recording().launched[node].copy.srcDevice, launched[node].copy.srcDevice) << node;
      EXPECT_EQ(recording().launched[node].copy.dstDevice, launched[node].copy.dstDevice) << node;
    }
    EXPECT_EQ(executable->counts().launches, 1) << "a capture is none";
    recording().is_captured = false;
    launch(*executable, tensors);
    EXPECT_EQ(executable->counts().launches, 2);
  });
}

TEST_F(Group, copies_tensors_that_kernels_cannot_take_and_refuses_what_no_copy_takes) {
  run_ranks([](RankGroup& group, int) {
    const auto executable = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    const std::size_t b = 1;
    ASSERT_EQ(of_gpus(*executable).bindable(b), Bindable::Anywhere);
    std::vector<TensorView> tensors = tensors_of(*executable, 0);
    launch(*executable, tensors);
    const auto calls_with = [&](const TensorView& tensor) {
      std::vector<TensorView> changed = tensors;
      changed[b] = tensor;
      recording().calls.clear();
      launch(*executable, changed);
      return recording().calls;
    };
    TensorView tensor = tensors[b];
    tensor.data += 4;
    EXPECT_EQ(std::ranges::count(calls_with(tensor), "cuMemcpyAsync"), 2) << "a and b";
    tensor = tensors[b];
    tensor.strides[0] = 100;
    EXPECT_EQ(std::ranges::count(calls_with(tensor), "cuMemcpy3DAsync"), 1);
    std::swap(tensor.strides[0], tensor.strides[1]);
    tensor.strides[0] = 0;
    tensors[b] = tensor;
    const auto refused = executable->launch(tensors, nullptr);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(std::get<Diag>(refused.error()).code, DiagCode::I311);
    tensors = tensors_of(*executable, 0);
    tensors[2].data = tensors[b].data;
    EXPECT_FALSE(executable->launch(tensors, nullptr).ok()) << "a result over an operand";
    tensors.pop_back();
    EXPECT_FALSE(executable->launch(tensors, nullptr).ok());
  });
}

TEST_F(Group, leaves_the_callers_context_current) {
  char callers = 0;
  run_ranks([&](RankGroup& group, int) {
    EXPECT_EQ(recording().current, nullptr) << "after joining";
    recording().current = reinterpret_cast<CUcontext>(&callers);
    auto executable = make(group, test::exchange(kGroupRanks, 1000, false));
    EXPECT_EQ(recording().current, reinterpret_cast<CUcontext>(&callers));
    launch(*executable, tensors_of(*executable, 0));
    EXPECT_EQ(recording().current, reinterpret_cast<CUcontext>(&callers));
    EXPECT_TRUE(group.reset().ok());
    executable.reset();
    EXPECT_EQ(recording().current, reinterpret_cast<CUcontext>(&callers));
  });
}

TEST_F(Group, uses_the_arena_in_turn_and_takes_a_larger_one_when_a_plan_needs_it) {
  run_ranks([](RankGroup& group, int) {
    const std::int64_t joined = group.counts().heap_bytes;
    EXPECT_EQ(joined, kHeap);
    const auto one = make(group, test::exchange(kGroupRanks, 1000, false));
    const auto other = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    const std::int64_t pages = group.counts().heap_bytes - kHeap;
    EXPECT_GT(pages, 0);
    const auto large = make(group, test::exchange(kGroupRanks, kHeap / 4, false));
    EXPECT_GT(group.counts().heap_bytes, 2 * kHeap);
    EXPECT_EQ(group.counts().executables, 3);
  });
}

TEST_F(Group, refuses_other_plans_and_plans_of_others) {
  run_ranks([](RankGroup& group, int rank) {
    const auto different = group.make(test::exchange(kGroupRanks, 1000 + rank, false));
    ASSERT_FALSE(different.ok());
    EXPECT_EQ(different.error().code, DiagCode::N015);
    const auto larger = group.make(test::exchange(kGroupRanks + 1, 1000, false));
    ASSERT_FALSE(larger.ok());
    EXPECT_EQ(larger.error().code, DiagCode::I311);
    EXPECT_EQ(group.counts().executables, 0);
  });
}

}  // namespace
}  // namespace harpe::cuda
