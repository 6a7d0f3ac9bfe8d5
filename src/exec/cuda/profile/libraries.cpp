#include <algorithm>
#include <barrier>
#include <limits>
#include <utility>

#include "exec/cuda/library/step.h"
#include "exec/cuda/library/team.h"
#include "exec/cuda/profile/leaf_grid.h"
#include "exec/cuda/profile/measure.h"

// Times of NVIDIA's libraries for the leaves and collectives of plans, in graphs as ours.
namespace harpe::cuda::profile {
namespace {

constexpr std::size_t kLibraryRounds = 7;
constexpr std::int64_t kMostCalls = 256;
constexpr std::int64_t kTrials = 16;       // of each algorithm, to find the fastest
constexpr std::int64_t kElementBytes = 2;  // of a bf16

using library::Elements;
using library::LibraryGemm;
using library::Team;

// The i-th call of one rank; must allocate and connect nothing after a warm-up.
using Call = std::function<Checked<Ok>(library::Member&, std::int64_t i)>;

double middle_of(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// Runs calls of all ranks in parallel and times them.
class Timing {
 public:
  explicit Timing(Team& team) : team_(team) {}

  // Seconds per call of `times` calls in a graph, on the slowest rank: the median of rounds behind
  // a warm-up round.
  [[nodiscard]] Checked<double> time(const Call& call, std::int64_t times,
                                     std::size_t rounds = kLibraryRounds) {
    const auto ranks = static_cast<std::size_t>(team_.ranks());
    std::vector<std::vector<double>> seconds(ranks);
    std::barrier together(team_.ranks());
    HP_REQUIRE_OK(team_.for_all([&](library::Member& member) {
      const Checked<Ok> done = time_one(member, {call, times, rounds}, together,
                                        seconds[static_cast<std::size_t>(member.rank)]);
      if (!done.ok()) together.arrive_and_drop();
      return done;
    }));
    std::vector<double> slowest(rounds, 0);
    for (const std::vector<double>& own : seconds) {
      for (std::size_t round = 0; round < rounds; ++round) {
        slowest[round] = std::max(slowest[round], own[round]);
      }
    }
    return middle_of(std::move(slowest)) / static_cast<double>(times);
  }

 private:
  struct Series {
    const Call& call;
    std::int64_t times;
    std::size_t rounds;
  };

  // A library connects and loads kernels on its first call, which a capture must not contain.
  static Checked<Ok> time_one(library::Member& member, const Series& series,
                              std::barrier<>& together, std::vector<double>& seconds) {
    for (std::int64_t i = 0; i < 2; ++i) HP_REQUIRE_OK(series.call(member, i));
    HP_REQUIRE_OK(checked(member.stream.synchronize()));
    HP_TRY(GraphCapture kept, GraphCapture::begin(member.device, member.stream));
    for (std::int64_t i = 0; i < series.times; ++i) HP_REQUIRE_OK(series.call(member, i));
    HP_TRY(const Graph graph, kept.end());
    HP_REQUIRE_OK(graph.upload(member.stream));
    HP_TRY(const Event begin, Event::create(member.device));
    HP_TRY(const Event end, Event::create(member.device));
    for (std::size_t round = 0; round <= series.rounds; ++round) {
      together.arrive_and_wait();
      HP_REQUIRE_OK(checked(graph.launch(member.stream)));
      HP_REQUIRE_OK(checked(begin.record(member.stream)));
      HP_REQUIRE_OK(checked(graph.launch(member.stream)));
      HP_REQUIRE_OK(checked(end.record(member.stream)));
      HP_REQUIRE_OK(checked(member.stream.synchronize()));
      const Result<double, CudaError> took = end.milliseconds_since(begin);
      if (!took.ok()) return to_diag(took.error());
      if (round > 0) seconds.push_back(*took * 1e-3);
    }
    return Ok{};
  }

  Team& team_;
};

// One rank's part of a collective of `bytes`, from its source to its target.
Checked<Ok> call_nccl(const library::Member& member, const profile::Member& at, Pattern pattern,
                      std::int64_t bytes, int ranks) {
  const std::int64_t count = bytes / kElementBytes;
  CUstream const stream = member.stream.handle();
  const Elements all{.address = at.source, .count = count};
  switch (pattern) {
    case Pattern::AllGather:
      return member.nccl->all_gather(all, at.target, stream);
    case Pattern::ReduceScatter:
      return member.nccl->reduce_scatter(at.source, {.address = at.target, .count = count / ranks},
                                         stream);
    case Pattern::AllReduce:
      return member.nccl->all_reduce({.address = at.target, .count = count}, stream);
    case Pattern::AllToAll:
      return member.nccl->exchange({.address = at.source, .count = count / ranks}, at.target, ranks,
                                   stream);
  }
  return Ok{};
}

Checked<std::vector<TimedCollective>> time_collectives(const Crew& crew, Team& team, bool quick) {
  constexpr double kGuess = 250e9;
  std::vector<TimedCollective> figures;
  for (const Pattern pattern :
       {Pattern::AllGather, Pattern::AllToAll, Pattern::ReduceScatter, Pattern::AllReduce}) {
    for (const std::int64_t bytes : collective_sizes(quick)) {
      const bool gathers = pattern == Pattern::AllGather;
      if (gathers && bytes * crew.size() > kTargetBytes) continue;
      const Call call = [&](library::Member& member, std::int64_t) {
        return call_nccl(member, crew.member(member.rank), pattern, bytes, crew.size());
      };
      const double guess =
          15e-6 + static_cast<double>(bytes) * (gathers ? crew.size() : 1) / kGuess;
      HP_TRY(const double seconds, Timing(team).time(call, times_of(guess, kMostCalls)));
      figures.push_back({pattern, static_cast<double>(bytes), seconds});
    }
  }
  return figures;
}

// Operands in rotation, so that a GEMM finds no more in the cache than in a plan.
struct Places {
  DeviceAddress a = 0;
  DeviceAddress b = 0;
  DeviceAddress c = 0;
};
Places places_of(const profile::Member& at, const LeafCase& one, const GemmSize& s,
                 std::int64_t i) {
  constexpr std::int64_t kMostSets = 8;
  const std::int64_t fit = std::min(kSourceBytes / one.in_bytes, kTargetBytes / one.out_bytes);
  const std::int64_t cache = at.device->facts().cache_bytes;
  const std::int64_t sets = std::clamp<std::int64_t>(2 * cache / (one.in_bytes + one.out_bytes) + 1,
                                                     1, std::min(fit, kMostSets));
  constexpr std::int64_t kAligned = 1024;
  const auto set = [&](std::int64_t bytes) {
    return static_cast<DeviceAddress>(i % sets * (bytes / kAligned * kAligned));
  };
  const DeviceAddress a = at.source + set(one.in_bytes);
  return {.a = a,
          .b = a + static_cast<DeviceAddress>(s.m * s.k * kElementBytes),
          .c = at.target + set(one.out_bytes)};
}

// A GEMM prepared on every rank.
struct ReadyGemm {
  std::vector<std::shared_ptr<const LibraryGemm>> ranks;
  int algorithms = std::numeric_limits<int>::max();  // common to all ranks
};

Checked<ReadyGemm> prepare(Team& team, const GemmSize& s) {
  ReadyGemm ready;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    library::Member& member = team.member(rank);
    HP_REQUIRE_OK(checked(member.device.make_current()));
    auto made =
        (*member.products)
            ->prepare(
                {.m = s.m, .n = s.n, .k = s.k, .a_stride = s.k, .b_stride = s.n, .c_stride = s.n});
    if (!made.ok() || made.value()->algorithms() == 0) {
      return make_diag(DiagCode::G081, {{"what", "GEMMs"}, {"reason", "cuBLASLt has none"}});
    }
    ready.ranks.emplace_back(std::move(made).value());
    ready.algorithms = std::min(ready.algorithms, ready.ranks.back()->algorithms());
  }
  return ready;
}

// With the fastest of the algorithms that the heuristics return, as in a baseline.
Checked<LeafFigure> time_gemm(const Crew& crew, Team& team, const GemmSize& s, double launch) {
  const LeafCase one = gemm_case(s);
  HP_TRY(const ReadyGemm ready, prepare(team, s));
  const auto by = [&](int algorithm) -> Call {
    return [&, algorithm](library::Member& member, std::int64_t i) -> Checked<Ok> {
      const Places at = places_of(crew.member(member.rank), one, s, i);
      const auto& gemm = ready.ranks[static_cast<std::size_t>(member.rank)];
      if (gemm->launch(algorithm, at.a, at.b, at.c, member.stream.handle())) return Ok{};
      return library::refused("cublasLtMatmul", "cuBLASLt");
    };
  };
  int fastest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int algorithm = 0; algorithm < ready.algorithms; ++algorithm) {
    const Checked<double> seconds = Timing(team).time(by(algorithm), kTrials, 1);
    if (!seconds.ok() || *seconds >= least) continue;
    least = *seconds;
    fastest = algorithm;
  }
  LeafFigure figure = one.figure;
  HP_TRY(const double seconds, Timing(team).time(by(fastest), times_of(one.guess, kMostCalls)));
  figure.seconds = std::max(launch, seconds - launch);
  return figure;
}

}  // namespace

Checked<LibraryFigures> measure_libraries(const Crew& crew, const MeasureRequest& request,
                                          double launch) {
  HP_TRY(const std::shared_ptr<Team> team,
         Team::open({.ranks = crew.size(),
                     .kernel_cache = request.crew.kernel_cache,
                     .nvrtc = request.crew.nvrtc,
                     .cuda_folders = request.crew.cuda_folders,
                     .library_folders = request.library_folders}));
  LibraryFigures figures;
  const auto& products = *team->member(0).products;
  figures.versions = "NCCL " + team->nccl_version();
  if (products.ok()) figures.versions += ", cuBLASLt " + products->version();
  if (crew.size() > 1) {
    HP_TRY(figures.collectives, time_collectives(crew, *team, request.quick));
  }
  if (!products.ok()) return figures;
  for (const GemmSize& shape : short_gemms(cuts_of(crew), request.quick)) {
    HP_TRY(LeafFigure figure, time_gemm(crew, *team, shape, launch));
    figures.products.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace harpe::cuda::profile
