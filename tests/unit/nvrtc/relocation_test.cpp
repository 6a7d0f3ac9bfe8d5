#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <optional>
#include <sstream>

#include "plan/slots.h"
#include "support/round_up.h"
#include "tests/unit/nvrtc/recorded_ranks.h"

// Tensors in place of homes: those of this rank, and those of its peers in the group's heap.
namespace harpe::cuda {
namespace {

constexpr std::int64_t kOwnHomes = kHeap / 2;  // in an arena, behind all that a test's plan uses

// The plan with each rank's own homes moved behind everything else, and, if given, homes that peers
// access one behind another from `heap` on.
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

// The launches of each rank, with homes bound to tensors or as in the plan.
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

// Differing words of which at least one is an address in an arena or in the heap behind it. Other
// differences are compilers' padding, and signals behind arenas of other lengths.
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
  // Compares the graph of `plan` with tensors at `moved`'s homes with the graph of `moved` itself.
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

// Ranks whose tensors lie in the heap if peers access them, and elsewhere otherwise.
class InHeap : public OnRecordedGpus {
 protected:
  inline static const GroupRequest kRequest = {.heap_bytes = kHeap, .tensor_bytes = kTensorBytes};

  // Compares the graph of `plan` on such tensors with that of a plan that has its homes there.
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

// The result, whose address is in a table on one rank, cannot be bound.
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

// Ranks whose first launches differ.
class Differing : public InHeap {
 protected:
  using Launch = std::function<Result<Ok, LaunchFailure>(int rank)>;

  // Rank 0 launches first. Rank 1's first launch fails, and rank 0 sees this without a wait.
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

}  // namespace
}  // namespace harpe::cuda
