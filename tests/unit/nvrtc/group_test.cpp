#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "exec/cuda/group/join_group.h"
#include "exec/cuda/group/rank_executable.h"
#include "exec/cuda/jit/nvrtc.h"
#include "plan/slots.h"
#include "support/round_up.h"
#include "tests/support/recording_driver.h"
#include "tests/unit/exec/plans.h"
#include "transport/local_exchange.h"

// Groups of ranks on a driver without a GPU: kernels are compiled, graphs are kept, nothing runs.
namespace harpe::cuda {
namespace {

using std::chrono::milliseconds;
using testing_support::make_recording_driver;
using testing_support::RecordedNode;
using testing_support::Recording;
using testing_support::recording;
using Bindable = CudaRankExecutable::Bindable;
using Calls = std::vector<std::string>;

constexpr int kGroupRanks = 2;
constexpr std::int64_t kHeap = std::int64_t{64} << 20;
constexpr std::int64_t kTensorBytes = std::int64_t{8} << 20;
constexpr std::int64_t kOwnHomes = kHeap / 2;  // in an arena, where no plan of a test has anything

// Where tensors of a test lie: nobody follows the addresses.
constexpr std::uint64_t kTensors = std::uint64_t{1} << 44;
constexpr std::uint64_t kApart = std::uint64_t{1} << 32;

TensorView dense(const LocalHome& home, std::uint64_t address) {
  TensorView tensor{.data = reinterpret_cast<std::byte*>(address),
                    .dtype = home.dtype,
                    .axes = home.shape.size()};
  std::int64_t stride = 1;
  for (std::size_t axis = tensor.axes; axis-- > 0;) {
    tensor.shape[axis] = home.shape[axis];
    tensor.strides[axis] = stride;
    stride *= home.shape[axis];
  }
  return tensor;
}

// Where the rank's arena lies, whose memory is handed out in order.
std::uint64_t arena_of(int rank) { return std::uint64_t{1} << (40 + rank); }

// Of a set: every tensor apart from all others.
std::vector<TensorView> tensors_of(const RankExecutable& executable, std::uint64_t set) {
  std::vector<TensorView> tensors;
  for (const LocalHome& home : executable.homes()) {
    const std::uint64_t place = set * executable.homes().size() + tensors.size();
    tensors.push_back(dense(home, kTensors + place * kApart));
  }
  return tensors;
}

class OnRecordedGpus : public testing::Test {
 protected:
  using Body = std::function<void(RankGroup& group, int rank)>;

  void SetUp() override {
    const auto compiler = Nvrtc::open(std::nullopt, kFolders);
    if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
  }

  // Each rank in a thread of its own, all on one GPU.
  static void run_ranks(const Body& body, const GroupRequest& request = {.heap_bytes = kHeap}) {
    const auto driver = make_recording_driver();
    std::vector<std::jthread> threads;
    int next = 0;
    for (auto& exchange : transport::make_local_exchanges(kGroupRanks, milliseconds(60'000))) {
      threads.emplace_back([&body, given = request, driver, exchange, rank = next++]() mutable {
        recording() = {.memory = arena_of(rank)};
        given.exchange = exchange;
        auto group = join_group(
            given, {.kernel_cache = kernel_folder(), .cuda_folders = kFolders, .driver = driver});
        ASSERT_TRUE(group.ok()) << render(group.error());
        body(**group, rank);
      });
    }
  }

  static std::unique_ptr<RankExecutable> make(RankGroup& group, const Plan& plan) {
    auto made = group.make(plan);
    EXPECT_TRUE(made.ok()) << render(made.error());
    return std::move(made).value();
  }

  static void launch(RankExecutable& executable, std::span<const TensorView> tensors,
                     void* stream = nullptr) {
    const auto launched = executable.launch(tensors, stream);
    ASSERT_TRUE(launched.ok());
  }

  static const std::string& kernel_folder() {
    static const std::string kKernels = [] {
      std::string path = (std::filesystem::temp_directory_path() / "harpe-group-XXXXXX").string();
      return std::string(::mkdtemp(path.data()));
    }();
    return kKernels;
  }

  inline static const std::vector<std::string> kFolders = {"/usr/local/cuda/lib64"};
};
using Group = OnRecordedGpus;

const CudaRankExecutable& of_gpus(const RankExecutable& executable) {
  return dynamic_cast<const CudaRankExecutable&>(executable);
}

// Each rank's own homes behind all that the plan has, and those that peers touch one behind the
// other from `heap` on.
Plan with_moved_homes(Plan plan, std::optional<std::int64_t> heap = std::nullopt) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    std::int64_t end = kOwnHomes;
    std::optional<std::int64_t> in_heap = heap;
    for (const LocalHome& home : local_homes(plan, blocks, RankId(rank))) {
      if (!home.alloc.valid() || (!home.is_own && !heap)) continue;
      std::int64_t& place = home.is_own ? end : *in_heap;
      Alloc& alloc = plan.allocs[home.alloc.index()];
      alloc.offset = place;
      place += round_up(alloc.bytes, home.is_own ? kSlotAlignment : kTensorAlignment);
    }
  }
  return plan;
}

// What the rank launches where its own homes lie as in `bound` and the others as in `plan`.
using Launched = std::vector<std::vector<RecordedNode>>;  // by rank

std::vector<std::vector<std::uint64_t>> places_of(const Plan& plan) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  std::vector<std::vector<std::uint64_t>> places;
  for (int rank = 0; rank < kGroupRanks; ++rank) {
    std::vector<std::uint64_t>& own = places.emplace_back();
    for (const LocalHome& home : local_homes(plan, blocks, RankId(rank))) {
      const Alloc& alloc = plan.allocs[home.alloc.index()];
      own.push_back(arena_of(rank) + static_cast<std::uint64_t>(alloc.offset));
    }
  }
  return places;
}

// Words that differ and are an address in an arena, or in the heap behind it, on either side;
// others are what compilers leave in gaps, and signals behind arenas of other lengths.
std::string print_differences(const std::vector<std::byte>& found,
                              const std::vector<std::byte>& wanted) {
  if (found.size() != wanted.size()) return "they are of different kernels";
  const auto is_address = [](std::uint64_t word) {
    for (int rank = 0; rank < kGroupRanks; ++rank) {
      if (word - arena_of(rank) < kHeap + kTensorBytes) return true;
    }
    return false;
  };
  std::ostringstream text;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= found.size(); at += sizeof(at)) {
    std::uint64_t one = 0;
    std::uint64_t other = 0;
    std::memcpy(&one, &found[at], sizeof(one));
    std::memcpy(&other, &wanted[at], sizeof(other));
    if (one == other || (!is_address(one) && !is_address(other))) continue;
    text << "at " << at << ": " << std::hex << one << ", not " << other << std::dec << "; ";
  }
  return text.str();
}

void expect_equal(const std::vector<RecordedNode>& found, const std::vector<RecordedNode>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t node = 0; node < found.size(); ++node) {
    EXPECT_EQ(found[node].type, wanted[node].type);
    EXPECT_EQ(found[node].kernel.gridDimX, wanted[node].kernel.gridDimX);
    EXPECT_EQ(print_differences(found[node].parameter, wanted[node].parameter), "") << node;
    EXPECT_EQ(found[node].copy.srcDevice, wanted[node].copy.srcDevice) << "copy " << node;
    EXPECT_EQ(found[node].copy.dstDevice, wanted[node].copy.dstDevice) << "copy " << node;
  }
}

class Relocated : public OnRecordedGpus {
 protected:
  // The graph of `plan` on tensors that lie where `moved` has its homes, and the graph of `moved`.
  static void expect_as_from_scratch(const Plan& plan, int least_bound) {
    const Plan moved = with_moved_homes(plan);
    const auto places = places_of(moved);
    Launched found(kGroupRanks), wanted(kGroupRanks);
    std::vector<int> bound(kGroupRanks, 0);
    const auto run = [&](const Plan& made, Launched& launched) {
      run_ranks([&](RankGroup& group, int rank) {
        const auto executable = make(group, made);
        std::vector<TensorView> tensors;
        for (const LocalHome& home : executable->homes()) {
          const auto at = static_cast<std::size_t>(rank);
          bound[at] += of_gpus(*executable).bindable(tensors.size()) == Bindable::Anywhere ? 1 : 0;
          tensors.push_back(dense(home, places[at][tensors.size()]));
        }
        launch(*executable, tensors);
        launched[static_cast<std::size_t>(rank)] = recording().launched;
      });
    };
    run(plan, found);
    run(moved, wanted);
    for (std::size_t rank = 0; rank < kGroupRanks; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_GE(bound[rank], least_bound);
      expect_equal(found[rank], wanted[rank]);
    }
  }
};

TEST_F(Relocated, arguments_are_those_of_a_program_bound_there) {
  expect_as_from_scratch(test::exchange(kGroupRanks, 1000, false), 0);  // y is in a table
  expect_as_from_scratch(test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"), 1);
  expect_as_from_scratch(test::gather_gemm(kGroupRanks, 256, 256, 256, "bf16"), 1);
  expect_as_from_scratch(test::scatter_gemm(kGroupRanks, 256, 256, 256, "bf16", false), 1);
  expect_as_from_scratch(test::scatter_gemm(kGroupRanks, 50, 37, 43, "f32", true), 1);
  expect_as_from_scratch(test::split_keys(kGroupRanks, 20, 30, true, "f32"), 1);
}

// Of ranks whose tensors lie in the heap where peers touch them, and elsewhere where not.
class InHeap : public OnRecordedGpus {
 protected:
  inline static const GroupRequest kRequest = {.heap_bytes = kHeap, .tensor_bytes = kTensorBytes};

  // The graph of `plan` on such tensors, and the graph of a plan with its homes there.
  static void expect_as_from_scratch(const Plan& plan) {
    Launched found(kGroupRanks), wanted(kGroupRanks);
    std::atomic<std::int64_t> heap = 0;
    run_ranks(
        [&](RankGroup& group, int rank) {
          const auto executable = make(group, plan);
          const auto own = places_of(with_moved_homes(plan))[static_cast<std::size_t>(rank)];
          std::vector<TensorView> tensors;
          std::vector<std::shared_ptr<std::byte>> kept;
          for (const LocalHome& home : executable->homes()) {
            if (!home.is_own) kept.push_back(group.allocate(home.bytes()).value());
            const auto place =
                reinterpret_cast<std::uint64_t>(kept.empty() ? nullptr : kept.back().get());
            tensors.push_back(dense(home, home.is_own ? own[tensors.size()] : place));
          }
          ASSERT_FALSE(kept.empty());
          heap = static_cast<std::int64_t>(reinterpret_cast<std::uint64_t>(kept.front().get()) -
                                           arena_of(rank));
          launch(*executable, tensors);
          EXPECT_EQ(executable->counts().copied_bytes, 0);
          launched_by(found, rank) = recording().launched;
        },
        kRequest);
    const Plan moved = with_moved_homes(plan, heap.load());
    run_ranks(
        [&](RankGroup& group, int rank) {
          const auto executable = make(group, moved);
          const auto own = places_of(moved)[static_cast<std::size_t>(rank)];
          std::vector<TensorView> tensors;
          for (const LocalHome& home : executable->homes()) {
            tensors.push_back(dense(home, own[tensors.size()]));
          }
          launch(*executable, tensors);
          launched_by(wanted, rank) = recording().launched;
        },
        {.heap_bytes = 4 * kHeap});
    for (std::size_t rank = 0; rank < kGroupRanks; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      expect_equal(found[rank], wanted[rank]);
    }
  }

  static std::vector<RecordedNode>& launched_by(Launched& launched, int rank) {
    return launched[static_cast<std::size_t>(rank)];
  }
};

TEST_F(InHeap, arguments_are_those_of_a_program_bound_there_on_all_ranks) {
  expect_as_from_scratch(test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
  expect_as_from_scratch(test::gather_gemm(kGroupRanks, 256, 256, 256, "bf16"));
}

// Its result, in a table of addresses on one rank, stays.
TEST_F(InHeap, copies_what_a_rank_cannot_bind) {
  run_ranks(
      [](RankGroup& group, int) {
        const auto executable = make(group, test::exchange(kGroupRanks, 1000, false));
        std::vector<TensorView> tensors;
        std::vector<std::shared_ptr<std::byte>> kept;
        std::int64_t copied = 0;
        for (const LocalHome& home : executable->homes()) {
          kept.push_back(group.allocate(home.bytes()).value());
          const auto bindable = of_gpus(*executable).bindable(tensors.size());
          if (bindable == Bindable::None) copied += home.bytes();
          tensors.push_back(dense(home, reinterpret_cast<std::uint64_t>(kept.back().get())));
        }
        launch(*executable, tensors);
        EXPECT_EQ(executable->counts().copied_bytes, copied);
        EXPECT_GT(copied, 0);
      },
      kRequest);
}

TEST_F(InHeap, is_memory_that_is_taken_and_given_back) {
  run_ranks(
      [](RankGroup& group, int) {
        const std::int64_t joined = group.counts().heap_bytes;
        EXPECT_EQ(joined, kHeap + kTensorBytes);
        auto one = group.allocate(1000).value();
        const auto other = group.allocate(1000).value();
        EXPECT_EQ(other.get() - one.get(), 1024);
        EXPECT_EQ(group.counts().tensor_bytes, 2048);
        EXPECT_EQ(group.allocate(kTensorBytes).error().code, DiagCode::I311);
        one.reset();
        EXPECT_EQ(group.counts().tensor_bytes, 1024);
        EXPECT_EQ(group.counts().heap_bytes, joined);
      },
      kRequest);
}

// What one rank launched first, and the other finds to be different.
class Differing : public InHeap {
 protected:
  using Launch = std::function<Result<Ok, LaunchFailure>(int rank)>;

  // Rank 0 launches first. The first launch of rank 1 fails, which rank 0 sees without a wait.
  static void expect_found(RankGroup& group, int rank, std::barrier<>& ranks, const Launch& launch,
                           const std::string& wanted) {
    if (rank == 0) {
      EXPECT_TRUE(launch(rank).ok());
    }
    ranks.arrive_and_wait();
    if (rank == 1) {
      recording().calls.clear();
      EXPECT_EQ(print(launch(rank)), wanted);
      EXPECT_EQ(std::ranges::count(recording().calls, "cuGraphLaunch"), 0);
    }
    ranks.arrive_and_wait();
    const auto next = launch(rank);
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(std::get<Diag>(next.error()).code, DiagCode::I311);
    ASSERT_TRUE(group.check().has_value());
    ASSERT_TRUE(group.reset().ok());
    EXPECT_FALSE(group.check().has_value());
  }

  static std::string print(const Result<Ok, LaunchFailure>& launched) {
    return launched.ok() ? "" : render(std::get<Diag>(launched.error()));
  }
};

TEST_F(Differing, plans_are_named_at_once_and_a_reset_goes_on) {
  std::barrier ranks(kGroupRanks);
  run_ranks([&](RankGroup& group, int rank) {
    const auto one = make(group, test::exchange(kGroupRanks, 1000, false));
    const auto other = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    const auto launch_one = [&](RankExecutable& each) {
      return each.launch(tensors_of(each, 0), nullptr);
    };
    ASSERT_TRUE(launch_one(*other).ok());
    expect_found(
        group, rank, ranks, [&](int of) { return launch_one(of == 0 ? *one : *other); },
        "error[I311]: `execution 2 of the group` must be of the same plan on all ranks, but is "
        "executable 1 (`" +
            test::gather_gemm(kGroupRanks, 64, 32, 48, "f32").program.name +
            "`) on rank 1 and executable 0 (`" +
            test::exchange(kGroupRanks, 1000, false).program.name + "`) on rank 0");
    for (RankExecutable* const each : {one.get(), other.get()}) {
      EXPECT_TRUE(launch_one(*each).ok());
    }
  });
}

TEST_F(Differing, places_in_the_heap_are_refused_and_a_capture_counts_as_a_launch) {
  std::barrier ranks(kGroupRanks);
  run_ranks(
      [&](RankGroup& group, int rank) {
        const auto executable = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
        ASSERT_EQ(of_gpus(*executable).bindable(0), Bindable::InHeap);
        const auto a = group.allocate(executable->homes()[0].bytes()).value();
        std::vector<TensorView> tensors = tensors_of(*executable, 0);
        recording().is_captured = true;
        launch(*executable, tensors);
        recording().is_captured = false;
        if (rank == 0) tensors[0].data = a.get();
        expect_found(
            group, rank, ranks, [&](int) { return executable->launch(tensors, nullptr); },
            "error[I311]: `execution 2 of the group` must be of tensors that are, on all ranks or "
            "on none, at the same place of the group's memory for tensors, but is executable 0 "
            "(`" +
                test::gather_gemm(kGroupRanks, 64, 32, 48, "f32").program.name +
                "`) on rank 1 and otherwise on rank 0");
        tensors[0].data = a.get();
        launch(*executable, tensors);
      },
      kRequest);
}

TEST_F(Group, issues_one_graph_between_copies_of_what_peers_touch) {
  run_ranks([](RankGroup& group, int) {
    const auto executable = make(group, test::gather_gemm(kGroupRanks, 64, 32, 48, "f32"));
    const std::vector<TensorView> tensors = tensors_of(*executable, 0);
    launch(*executable, tensors);
    const int allocations = recording().allocations;
    recording().calls.clear();
    launch(*executable, tensors);
    // Of a, which peers pull.
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

// Sets of tensors that were seen cost their look-up; one more takes the graph of the set that was
// not used for longest.
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
