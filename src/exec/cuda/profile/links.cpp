#include <algorithm>

#include "exec/cuda/profile/measure.h"
#include "exec/cuda/profile/orders.h"
#include "support/check.h"

namespace harpe::cuda::profile {
namespace {

constexpr std::int64_t kLargest = std::int64_t{128} << 20;  // larger than the cache
constexpr double kGuess = 300e9;                            // bytes per second, for repetitions
constexpr double kGuessLinkStart = 5e-6;
constexpr std::int64_t kMostLinkTimes = 256;

// One copy that a GPU enqueues.
struct Route {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
};
using Routes = std::vector<Route>;  // in parallel, each in its own queue
using Ordered = std::function<Routes(int rank)>;

struct Means {
  Way way = Way::Engine;
  std::int64_t blocks = 0;
};

// Targets are divided by sources, so that routes do not overlap.
DeviceAddress target_of(const Crew& crew, const Route& route) {
  const std::int64_t part = kTargetBytes / crew.size() / 128 * 128;
  HP_CHECK(route.bytes <= part, "targets of all GPUs lie side by side");
  return crew.member(route.to).target + static_cast<DeviceAddress>(part * route.from);
}

Checked<Order> order_of(const Crew& crew, const Member& member, const Routes& routes,
                        const Means& means, std::int64_t times) {
  if (routes.empty()) return Order();
  std::vector<SharedLaunches> copies;
  for (const Route& route : routes) {
    HP_TRY(const LaunchSpec spec,
           copy_spec(member, means.way, target_of(crew, route), crew.member(route.from).source,
                     route.bytes, means.blocks));
    HP_TRY(SharedLaunches copy, make_ready(member, {spec}));
    copies.push_back(std::move(copy));
  }
  return Order([copies, times](const Member& at) -> Checked<Ok> {
    HP_REQUIRE_OK(fork(at, copies.size()));
    for (std::size_t queue = 0; queue < copies.size(); ++queue) {
      HP_REQUIRE_OK(enqueue(at, copies[queue], times, queue));
    }
    return join(at, copies.size());
  });
}

std::int64_t times_for(double bytes) {
  return std::max<std::int64_t>(2, times_of(kGuessLinkStart + bytes / kGuess, kMostLinkTimes));
}

// `bytes` through the busiest port, to choose repetitions.
Checked<Trial> trial_of(const Crew& crew, const Ordered& ordered, const Means& means,
                        std::int64_t bytes) {
  const std::int64_t times = times_for(static_cast<double>(bytes));
  return crew.capture(static_cast<double>(times), [&](const Member& member) {
    return order_of(crew, member, ordered(member.rank), means, times);
  });
}

// The copies that a GPU enqueues, by pattern; `bytes` each.
Ordered pair_push(std::int64_t bytes) {
  return [=](int rank) { return rank == 0 ? Routes{{0, 1, bytes}} : Routes{}; };
}
Ordered pair_pull(std::int64_t bytes) {
  return [=](int rank) { return rank == 0 ? Routes{{1, 0, bytes}} : Routes{}; };
}
Ordered ring_push(int size, std::int64_t bytes) {
  return [=](int rank) { return Routes{{rank, (rank + 1) % size, bytes}}; };
}
Ordered ring_pull(int size, std::int64_t bytes) {
  return [=](int rank) { return Routes{{(rank + 1) % size, rank, bytes}}; };
}
Ordered all_to_all(int size, std::int64_t bytes) {
  return [=](int rank) {
    Routes routes;
    for (int step = 1; step < size; ++step) routes.push_back({rank, (rank + step) % size, bytes});
    return routes;
  };
}
Ordered incast(std::int64_t bytes) {
  return [=](int rank) { return rank == 0 ? Routes{} : Routes{{rank, 0, bytes}}; };
}

// Trials of one kind at several sizes, and the receivers of their times.
class LinkTrials {
 public:
  explicit LinkTrials(Crew& crew) : crew_(crew) {}

  [[nodiscard]] Checked<Ok> add(const Ordered& ordered, const Means& means, std::int64_t bytes,
                                std::function<void(double seconds)> take) {
    HP_TRY(Trial trial, trial_of(crew_, ordered, means, bytes));
    trials_.push_back(std::move(trial));
    takers_.push_back(std::move(take));
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> add_sizes(const std::function<Ordered(std::int64_t)>& pattern,
                                      const Means& means, const std::vector<std::int64_t>& sizes,
                                      std::vector<TimedBytes>& to) {
    for (const std::int64_t bytes : sizes) {
      HP_REQUIRE_OK(add(pattern(bytes), means, bytes, [&to, bytes](double seconds) {
        to.push_back({static_cast<double>(bytes), seconds});
      }));
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> run() {
    HP_TRY(const std::vector<double> seconds, crew_.time(trials_));
    for (std::size_t i = 0; i < seconds.size(); ++i) takers_[i](seconds[i]);
    return Ok{};
  }

 private:
  Crew& crew_;
  std::vector<Trial> trials_;
  std::vector<std::function<void(double)>> takers_;
};

std::function<void(double)> rate_to(double& rate, std::int64_t bytes) {
  return [&rate, bytes](double seconds) { rate = static_cast<double>(bytes) / seconds; };
}

// The rate of a port where many copies meet.
Checked<Ok> add_crowds(LinkTrials& trials, int size, LinkFigures& figures) {
  const std::int64_t all = kLargest;
  const std::int64_t part = all / (size - 1) / 128 * 128;
  const std::int64_t carried = part * (size - 1);
  HP_REQUIRE_OK(
      trials.add(all_to_all(size, part), {}, carried, rate_to(figures.engine_all_to_all, carried)));
  return trials.add(incast(part), {}, carried, rate_to(figures.engine_incast, carried));
}

// With various numbers of blocks, up to the number that plans launch.
Checked<Ok> add_blocks(LinkTrials& trials, int size, bool quick, LinkFigures& figures) {
  const std::vector<std::int64_t> counts =
      quick ? std::vector<std::int64_t>{8, 132, 1056}
            : std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 132, 264, 1056};
  constexpr std::int64_t kBytes = kLargest / 2;
  for (const std::int64_t blocks : counts) {
    HP_REQUIRE_OK(trials.add(ring_push(size, kBytes), {Way::Kernel, blocks}, kBytes,
                             [&figures, blocks](double seconds) {
                               figures.push_blocks.push_back({blocks, kBytes / seconds});
                             }));
  }
  return Ok{};
}

}  // namespace

Checked<LinkFigures> measure_links(Crew& crew, bool quick) {
  const int size = crew.size();
  const std::vector<std::int64_t> sizes =
      quick ? std::vector<std::int64_t>{64 << 10, 16 << 20}
            : std::vector<std::int64_t>{64 << 10, 512 << 10, 4 << 20, 32 << 20, kLargest};
  const auto pushes = [&](std::int64_t bytes) { return ring_push(size, bytes); };
  const auto pulls = [&](std::int64_t bytes) { return ring_pull(size, bytes); };
  constexpr Means kEngine{};
  constexpr Means kKernel{.way = Way::Kernel};
  LinkFigures figures;
  LinkTrials trials(crew);
  HP_REQUIRE_OK(trials.add_sizes(pair_push, kEngine, sizes, figures.engine_pair));
  HP_REQUIRE_OK(trials.add_sizes(pushes, kEngine, sizes, figures.engine_ring));
  HP_REQUIRE_OK(trials.add_sizes(pushes, kKernel, sizes, figures.push_ring));
  HP_REQUIRE_OK(trials.add_sizes(pulls, kKernel, sizes, figures.pull_ring));
  HP_REQUIRE_OK(
      trials.add(pair_pull(kLargest), kEngine, kLargest, rate_to(figures.engine_pull, kLargest)));
  HP_REQUIRE_OK(add_crowds(trials, size, figures));
  HP_REQUIRE_OK(add_blocks(trials, size, quick, figures));
  HP_REQUIRE_OK(trials.run());
  return figures;
}

}  // namespace harpe::cuda::profile
