// GEMMs of few rows, as in decoding, compared with cuBLASLt. Weights are read from memory each
// time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/gemm_problem.h"
#include "bench/cuda/gemm_runner.h"
#include "bench/cuda/gemm_shapes.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/few_rows.h"
#include "exec/cuda/runtime/graph.h"

namespace harpe::bench {
namespace {

constexpr const char* kFewRows = "few_rows";
constexpr std::int64_t kColdBytes = std::int64_t{256} << 20;  // four times the L2 cache
constexpr int kMostCopies = 16;
constexpr int kRounds = 9;                     // for candidates that are only ranked
constexpr std::int64_t kLeastRowsOfBoth = 32;  // from here on, either kernel may be faster

// The median of a list, with the 95 % interval of the true median.
struct Middle {
  double value = 0;
  double low = 0;
  double high = 0;
};

Middle middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const double reach = 0.98 * std::sqrt(count);
  const auto at = [&](double place) {
    return values[static_cast<std::size_t>(std::clamp(place, 0.0, count - 1))];
  };
  return {.value = at(count / 2), .low = at(count / 2 - reach), .high = at(count / 2 + reach)};
}

// One way to compute a shape: a graph with one call per copy of its operands.
struct Way {
  std::string name;
  std::unique_ptr<cuda::Graph> pass;
  std::vector<double> us;  // of a call, in each round
};

class FewRowsMatch {
 public:
  FewRowsMatch(Bench& bench, const GemmCase& what)
      : bench_(&bench), what_(what), stream_(must(cuda::Stream::create(bench.gpu().device()))) {
    const std::int64_t bytes = what.n * what.k * 2;
    const std::int64_t copies =
        std::clamp<std::int64_t>((kColdBytes + bytes - 1) / bytes, 2, kMostCopies);
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      problems_.push_back(std::make_unique<GemmProblem>(
          bench.gpu(), bench.gpu(), what, bench.options().seed + 10U * copy, bench.stream()));
    }
    bench.gpu().synchronise(bench.stream());
    const auto& cublaslt = bench.cublaslt();
    if (cublaslt.ok()) {
      auto gemm = cublaslt->prepare({.m = what.m,
                                     .n = what.n,
                                     .k = what.k,
                                     .in = what.in,
                                     .out = what.out,
                                     .layout = what.layout,
                                     .a_stride = problems_[0]->a().stride(),
                                     .b_stride = problems_[0]->b().stride(),
                                     .c_stride = problems_[0]->c().stride()});
      if (gemm.ok()) gemm_ = std::move(gemm).value();
    }
  }

  [[nodiscard]] cuda::GemmSpec spec() const { return problems_.front()->spec(); }

  // With `ahead` the weights are constant and are loaded before the previous call ends.
  [[nodiscard]] Way ours(const cuda::GemmChoice& choice, bool ahead = false) {
    auto& runners = runners_.emplace_back();
    for (const auto& problem : problems_) {
      cuda::GemmSpec spec = problem->spec();
      spec.b_is_fixed = ahead;
      runners.emplace_back(bench_->gpu(), spec, choice);
    }
    return capture(
        fmt::format("{} {} by {}", describe(choice.config), choice.parts, choice.stream_blocks),
        [&](std::size_t copy) { runners[copy].launch(stream_.handle()); });
  }

  [[nodiscard]] std::vector<Way> library() {
    std::vector<Way> ways;
    for (int i = 0; gemm_ != nullptr && i < gemm_->algorithms(); ++i) {
      ways.push_back(capture(fmt::format("cuBLASLt {}", i), [&](std::size_t copy) {
        const GemmProblem& problem = *problems_[copy];
        HP_CHECK(gemm_->launch(i, problem.a().address(), problem.b().address(),
                               problem.c().address(), stream_.handle()),
                 "cuBLASLt refused an algorithm of its own");
      }));
    }
    return ways;
  }

  // Times all ways alternately, each round starting with another one.
  void time(std::vector<Way*> ways, int rounds) {
    Gpu& gpu = bench_->gpu();
    std::vector<std::vector<std::pair<CUevent, CUevent>>> laps(ways.size());
    if (events_.empty()) {
      for (int i = 0; i < 4096; ++i) events_.push_back(gpu.new_event());
    }
    std::size_t next = 0;
    for (Way* way : ways) way->us.clear();
    for (int round = -2; round < rounds; ++round) {
      for (std::size_t turn = 0; turn < ways.size(); ++turn) {
        const std::size_t who = (turn + static_cast<std::size_t>(round + 2)) % ways.size();
        const auto lap = std::pair(events_.at(next), events_.at(next + 1));
        gpu.record(lap.first, stream_.handle());
        must(ways[who]->pass->launch(stream_));
        gpu.record(lap.second, stream_.handle());
        if (round < 0) continue;
        next += 2;
        laps[who].push_back(lap);
      }
    }
    gpu.synchronise(stream_.handle());
    for (std::size_t who = 0; who < ways.size(); ++who) {
      for (const auto& [begin, end] : laps[who]) {
        ways[who]->us.push_back(gpu.elapsed_us(begin, end) / static_cast<double>(problems_.size()));
      }
    }
  }

  // Checks all outputs of one pass.
  [[nodiscard]] std::string wrong_in(const Way& way) {
    VerdictBox verdict(bench_->gpu());
    CUstream const stream = stream_.handle();
    for (const auto& problem : problems_) problem->reset(stream);
    verdict.clear(stream);
    must(way.pass->launch(stream_));
    for (std::size_t i = 0; i < std::min<std::size_t>(problems_.size(), 2); ++i) {
      problems_[i]->check(verdict.device(), stream);
    }
    return bench::describe(verdict.read(stream), what_.n);
  }

 private:
  template <class Call>
  [[nodiscard]] Way capture(std::string name, Call call) {
    cuda::GraphCapture capture = must(cuda::GraphCapture::begin(bench_->gpu().device(), stream_));
    for (std::size_t copy = 0; copy < problems_.size(); ++copy) call(copy);
    return {.name = std::move(name),
            .pass = std::make_unique<cuda::Graph>(must(capture.end())),
            .us = {}};
  }

  static inline std::vector<CUevent> events_;  // live as long as the GPU

  Bench* bench_;
  GemmCase what_;
  cuda::Stream stream_;
  std::vector<std::unique_ptr<GemmProblem>> problems_;
  std::deque<std::vector<GemmRunner>> runners_;
  std::unique_ptr<library::LibraryGemm> gemm_;
};

Way* fastest(std::vector<Way>& ways) {
  return &*std::ranges::min_element(ways, {},
                                    [](const Way& way) { return middle_of(way.us).value; });
}

// The most streams, a few fewer, and the most that cut no tile or all tiles equally.
std::vector<int> numbers_of_streams(int tiles, int most) {
  std::vector<int> numbers = {most, most - (most + 31) / 32, most - (most + 7) / 8};
  int even = most;
  while (tiles % even != 0 && even % tiles != 0) --even;
  if (even > most / 4 && even < most) numbers.push_back(even);
  return numbers;
}

// Kernels for few rows with several numbers of streams, and the best of the other kernels.
std::vector<cuda::GemmChoice> candidates(Bench& bench, const cuda::GemmSpec& spec) {
  const int processors = bench.gpu().processors();
  std::vector<cuda::GemmChoice> all;
  for (const device::GemmConfig& config : cuda::gemm_configs(spec)) {
    const cuda::GemmChoice choice = cuda::cut_gemm(spec, config, processors);
    all.push_back(choice);
    if (!config.few_rows) continue;
    const auto tiles = static_cast<int>((spec.n + config.tile_n - 1) / config.tile_n);
    for (int blocks = 1; blocks <= device::kMostStreamBlocks; ++blocks) {
      if (!cuda::can_share_streams(spec, config, blocks)) continue;
      const int most = std::min(cuda::clusters_of(processors, blocks * config.cluster),
                                cuda::most_streams(spec, config, blocks));
      for (const int streams : numbers_of_streams(tiles, most)) {
        if (streams < 1 || (streams == choice.parts && blocks == choice.stream_blocks)) continue;
        all.push_back(choice);
        all.back().parts = streams;
        all.back().stream_blocks = blocks;
      }
    }
  }
  return all;
}

// A way to compare with, with the names of its columns.
struct Rival {
  Way* way;
  std::string us;
  std::string ratio;
  std::string name;
};

// Adds the fastest of these ways, timed among themselves.
void add_fastest(FewRowsMatch& match, std::vector<Way>& ways, Rival rival,
                 std::vector<Rival>& rivals) {
  if (ways.empty()) return;
  std::vector<Way*> all;
  for (Way& way : ways) all.push_back(&way);
  match.time(all, kRounds);
  rival.way = fastest(ways);
  rivals.push_back(std::move(rival));
}

// The kernel that was not chosen: for few rows, or not.
std::vector<Way> of_the_other_kernel(Bench& bench, FewRowsMatch& match, bool few_rows) {
  std::vector<Way> ways;
  for (const cuda::GemmChoice& choice : candidates(bench, match.spec())) {
    if (choice.config.few_rows != few_rows) ways.push_back(match.ours(choice));
  }
  return ways;
}

void add_ratio(const Way& chosen, const Rival& rival, Row& row) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < chosen.us.size(); ++i) {
    ratios.push_back(chosen.us[i] / rival.way->us[i]);
  }
  const Middle ratio = middle_of(ratios);
  row.cells.insert(row.cells.end(), {{rival.us, middle_of(rival.way->us).value},
                                     {rival.ratio, ratio.value},
                                     {rival.ratio + " from", ratio.low},
                                     {rival.ratio + " to", ratio.high},
                                     {rival.name, rival.way->name}});
}

// Ranks each variant and number of streams, with weights loaded ahead as in launch plans.
void time_all(Bench& bench, FewRowsMatch& match, const GemmCase& what) {
  std::vector<Way> ways;
  for (const cuda::GemmChoice& choice : candidates(bench, match.spec())) {
    ways.push_back(match.ours(choice, true));
  }
  std::vector<Way*> all;
  for (Way& way : ways) all.push_back(&way);
  match.time(all, kRounds);
  for (const Way& way : ways) {
    bench.report().add({.experiment = "few_rows variants",
                        .name = what.name,
                        .cells = {{"variant", way.name}, {"us", middle_of(way.us).value}}});
  }
}

void time_few(Bench& bench, const GemmCase& what) {
  FewRowsMatch match(bench, what);
  const cuda::GemmChoice choice = cuda::choose_gemm(match.spec(), bench.gpu().processors());
  Way chosen = match.ours(choice);
  Way ahead = match.ours(choice, true);
  std::vector<Rival> rivals;
  std::vector<Way> library = match.library();
  add_fastest(match, library, {nullptr, "cuBLASLt us", "ours / theirs", "theirs"}, rivals);
  std::vector<Way> others;
  if (what.m > kLeastRowsOfBoth) {
    others = of_the_other_kernel(bench, match, choice.config.few_rows);
    add_fastest(match, others, {nullptr, "other us", "chosen / other", "other"}, rivals);
  }
  if (bench.options().all_variants) time_all(bench, match, what);
  std::vector<Way*> finals = {&chosen, &ahead};
  for (const Rival& rival : rivals) finals.push_back(rival.way);
  match.time(finals, bench.options().rounds);
  const Middle own = middle_of(chosen.us);
  Row row = {.experiment = kFewRows, .name = what.name, .cells = {}};
  row.cells = {
      {"m", what.m},     {"n", what.n},
      {"k", what.k},     {"variant", chosen.name},
      {"us", own.value}, {"TB/s", 2e-6 * static_cast<double>(what.n * what.k) / own.value}};
  for (const Rival& rival : rivals) add_ratio(chosen, rival, row);
  if (!rivals.empty()) {
    add_ratio(ahead, {rivals.front().way, "cuBLASLt again us", "ahead / theirs", "theirs again"},
              row);
  }
  std::string wrong = match.wrong_in(chosen);
  if (wrong.empty()) wrong = match.wrong_in(ahead);
  bench.report().add_check(kFewRows, what.name, wrong, std::move(row.cells));
}

}  // namespace

void time_few_rows(Bench& bench) {
  const int panels = bench.options().panels;
  for (GemmCase what : shapes_of(bench.options(), few_rows_shapes())) {
    if (panels > 1) {
      what.name += fmt::format(" in {} panels", panels);
      what.panels = equal_panels(what.m, what.k, panels);
    }
    if (bench.report().begins(kFewRows, what.name)) time_few(bench, what);
  }
}

}  // namespace harpe::bench
