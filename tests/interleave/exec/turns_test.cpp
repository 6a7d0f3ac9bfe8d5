#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "exec/cpu/rank_executable.h"
#include "ir/tensor.h"
#include "tests/unit/exec/plans.h"
#include "transport/local_exchange.h"

// Executions of two plans in turn, on shared arenas: every interleaving of the ranks' steps. A rank
// begins its next execution as soon as its last one ends.
namespace harpe::test {
namespace {

using cpu::CpuRankExecutable;
using cpu::GroupState;

constexpr int kRanks = 2;
using Bits = std::vector<std::byte>;

// A rank with an executable per plan, and tensors per launch.
struct Rank {
  std::shared_ptr<GroupState> group;
  std::vector<std::unique_ptr<CpuRankExecutable>> executables;
  struct Launch {
    std::size_t executable;
    std::vector<Bits> data;  // by home
    std::vector<TensorView> tensors;
  };
  std::vector<Launch> launches;
  std::size_t next = 0;  // launch
  bool is_under_way = false;

  [[nodiscard]] CpuRankExecutable& current() { return *executables[launches[next].executable]; }
};

void add_launch(Rank& rank, std::size_t executable) {
  Rank::Launch& launch = rank.launches.emplace_back();
  launch.executable = executable;
  for (const LocalHome& home : rank.executables[executable]->homes()) {
    // Distinct numbers for every launch, rank and home.
    const std::string name = home.buffer + std::to_string(rank.launches.size());
    const HostTensor drawn =
        random_tensor(home.dtype, home.shape, static_cast<std::uint64_t>(rank.group->rank()), name);
    launch.data.push_back(drawn.data);
  }
  for (std::size_t i = 0; i < launch.data.size(); ++i) {
    const LocalHome& home = rank.executables[executable]->homes()[i];
    TensorView view{.data = launch.data[i].data(), .dtype = home.dtype, .axes = home.shape.size()};
    std::int64_t stride = 1;
    for (std::size_t axis = home.shape.size(); axis-- > 0;) {
      view.shape[axis] = home.shape[axis];
      view.strides[axis] = stride;
      stride *= home.shape[axis];
    }
    launch.tensors.push_back(view);
  }
}

class Turns {
 public:
  Turns(const std::vector<Plan>& plans, const std::vector<std::size_t>& order) {
    std::vector<std::jthread> threads;
    for (auto& exchange : transport::make_local_exchanges(kRanks, std::chrono::seconds(20))) {
      threads.emplace_back([&, exchange] {
        Rank& rank = ranks_[static_cast<std::size_t>(exchange->rank())];
        rank.group = std::make_shared<GroupState>(GroupRequest{.exchange = exchange},
                                                  GroupBoard::make(*exchange).value());
        std::int64_t bytes = 0;
        for (const Plan& plan : plans) bytes = std::max(bytes, arena_bytes(plan));
        HP_CHECK(cpu::grow(*rank.group, bytes).ok(), "small arenas");
        for (const Plan& plan : plans) {
          rank.executables.push_back(CpuRankExecutable::make(plan, rank.group).value());
        }
        for (const std::size_t each : order) add_launch(rank, each);
      });
    }
  }

  // Repeats these steps from the start; each number selects one of the possible steps.
  void replay(const std::vector<std::size_t>& choices) {
    start();
    collect_steps();
    for (const std::size_t choice : choices) {
      take(steps_[choice]);
      collect_steps();
    }
  }
  // The number of possible steps.
  [[nodiscard]] std::size_t width() const { return steps_.size(); }

  // The progress of every queue and the contents of memory.
  [[nodiscard]] Bits state() {
    Bits bits;
    const auto add = [&](std::int64_t number) {
      const auto bytes = std::as_bytes(std::span(&number, 1));
      bits.insert(bits.end(), bytes.begin(), bytes.end());
    };
    for (Rank& rank : ranks_) {
      add(static_cast<std::int64_t>(2 * rank.next + (rank.is_under_way ? 1 : 0)));
      if (rank.is_under_way) {
        cpu::Marking& marking = rank.current().marking();
        for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
          if (marking.is_finished(queue)) continue;
          add(marking.head(queue).value);
          add(marking.has_begun(queue) ? 1 : 0);
        }
      }
      const std::span<std::byte> arena = rank.group->arenas->of(rank.group->rank());
      bits.insert(bits.end(), arena.begin(), arena.end());
    }
    const Bits outputs = results();
    bits.insert(bits.end(), outputs.begin(), outputs.end());
    return bits;
  }

  [[nodiscard]] bool is_over() const {
    return std::ranges::all_of(ranks_,
                               [](const Rank& rank) { return rank.next == rank.launches.size(); });
  }

  [[nodiscard]] Bits results() const {
    Bits bits;
    for (const Rank& rank : ranks_) {
      for (const Rank::Launch& launch : rank.launches) {
        const auto& homes = rank.executables[launch.executable]->homes();
        for (std::size_t i = 0; i < homes.size(); ++i) {
          if (homes[i].role != Role::Out) continue;
          bits.insert(bits.end(), launch.data[i].begin(), launch.data[i].end());
        }
      }
    }
    return bits;
  }

 private:
  struct Step {
    std::size_t rank;
    std::int32_t queue;  // -1: the next launch
  };

  void start() {
    for (Rank& rank : ranks_) {
      rank.next = 0;
      rank.is_under_way = false;
      for (const auto& executable : rank.executables) executable->clear();
      const std::span<std::byte> arena = rank.group->arenas->of(rank.group->rank());
      std::memset(arena.data(), 0xff, arena.size());
      for (Rank::Launch& launch : rank.launches) {
        const auto& homes = rank.executables[launch.executable]->homes();
        for (std::size_t i = 0; i < homes.size(); ++i) {
          if (homes[i].role == Role::Out) launch.data[i].assign(launch.data[i].size(), {});
        }
      }
    }
  }

  void collect_steps() {
    steps_.clear();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      if (rank.next == rank.launches.size()) continue;
      if (!rank.is_under_way) {
        steps_.push_back({.rank = i, .queue = -1});
        continue;
      }
      cpu::Marking& marking = rank.current().marking();
      for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
        if (!marking.is_finished(queue) && marking.is_ready(queue)) steps_.push_back({i, queue});
      }
    }
  }

  void take(const Step& step) {
    Rank& rank = ranks_[step.rank];
    Rank::Launch& launch = rank.launches[rank.next];
    cpu::Marking& marking = rank.current().marking();
    if (step.queue < 0) {
      rank.current().begin(launch.tensors);
      rank.is_under_way = true;
      return;
    }
    marking.step(step.queue, [](std::int32_t) {});
    for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
      if (!marking.is_finished(queue)) return;
    }
    rank.current().end(launch.tensors);
    rank.is_under_way = false;
    ++rank.next;
  }

  std::array<Rank, kRanks> ranks_;
  std::vector<Step> steps_;
};

struct Explored {
  std::set<Bits> results;  // of all orders
  std::int64_t states = 0;
  bool is_stuck = false;  // some order deadlocks
};

// Visits every state that some order of steps reaches.
Explored explore(Turns& turns) {
  Explored explored;
  std::set<Bits> seen;
  std::vector<std::vector<std::size_t>> left = {{}};
  while (!left.empty()) {
    const std::vector<std::size_t> choices = std::move(left.back());
    left.pop_back();
    turns.replay(choices);
    if (!seen.insert(turns.state()).second) continue;
    ++explored.states;
    if (turns.is_over()) explored.results.insert(turns.results());
    if (turns.width() == 0 && !turns.is_over()) explored.is_stuck = true;
    for (std::size_t choice = 0; choice < turns.width(); ++choice) {
      left.push_back(choices);
      left.back().push_back(choice);
    }
  }
  return explored;
}

TEST(Turns, leave_one_result_in_every_interleaving_of_two_plans) {
  const Plan gather = gather_gemm(2, 2, 1, 2, "f32");
  const Plan scatter = scatter_gemm(2, 2, 1, 2, "f32", false);
  const std::vector<std::vector<Plan>> pairs = {
      {gather, scatter}, {gather, exchange(2, 2, true)}, {exchange(2, 2, false), scatter}};
  for (const std::vector<Plan>& plans : pairs) {
    Turns turns(plans, {0, 1, 0});
    const Explored explored = explore(turns);
    EXPECT_EQ(explored.results.size(), 1U);
    EXPECT_FALSE(explored.is_stuck);
    EXPECT_GT(explored.states, 100);
  }
}

// If a plan's ranks do not wait for each other's Entries, a peer may write to a slot that the other
// plan still uses.
TEST(Turns, find_the_interleaving_in_which_a_rank_has_not_begun) {
  Plan careless = scatter_gemm(2, 2, 1, 2, "f32", false);
  std::erase_if(careless.syncs, [&](const Sync& sync) {
    return careless.tasks[sync.from.index()].kind == TaskKind::Entry;
  });
  std::erase_if(careless.barriers, [&](const Barrier& barrier) {
    return careless.tasks[barrier.from.front().index()].kind == TaskKind::Entry;
  });
  Turns turns({gather_gemm(2, 2, 1, 2, "f32"), careless}, {0, 1, 0});
  EXPECT_GT(explore(turns).results.size(), 1U);
}

}  // namespace
}  // namespace harpe::test
