// GEMMs in which all ranks store their sums to each other and add them. Several ranks
// share one GPU, each with its share of the SMs, so that all of them run at once.
#include <fmt/format.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/gemm_problem.h"
#include "bench/cuda/gemm_runner.h"
#include "bench/cuda/gemm_shapes.h"
#include "bench/cuda/ranks_beside.h"
#include "ir/rounding.h"

namespace harpe::bench {
namespace {

constexpr const char* kExchange = "exchange";
constexpr int kBackToBack = 40;  // executions
constexpr int kExchangeSets = 4;

// All ranks' parts of one sum. Each rank has A and B, memory for what each other rank sends, a flag
// for it or a signal in the data (`is_in_data`), and the result.
class SumOfRanks {
 public:
  SumOfRanks(Bench& bench, const GemmCase& what, int ranks, std::uint64_t seed,
             bool is_in_data = true)
      : bench_(&bench),
        what_(what),
        ranks_(ranks),
        is_in_data_(is_in_data),
        beside_(bench.gpu(), ranks) {
    Gpu& gpu = bench.gpu();
    for (int rank = 0; rank < ranks; ++rank) {
      problems_.push_back(
          std::make_unique<GemmProblem>(gpu, gpu, what, seed + 10U * rank, bench.stream()));
      inboxes_.push_back(gpu.memory(ranks * bytes()));
      results_.push_back(gpu.memory(bytes()));
      gpu.fill_bytes(inbox(rank, 0), 0xff, ranks * bytes(), bench.stream());
    }
    gpu.synchronise(bench.stream());
  }

  [[nodiscard]] cuda::GemmSpec plain(int rank) const { return of(problems_, rank)->spec(); }

  // Stores the sum at all ranks, the own rank last, then adds the total.
  [[nodiscard]] cuda::GemmSpec exchanging(int rank) const {
    cuda::GemmSpec spec = plain(rank);
    const cuda::GemmPanelSpec own = spec.panels.front();
    spec.panels.clear();
    spec.wait = beside_.signals(rank).context();
    const auto add = [&](Address to) -> cuda::GemmPanelSpec& {
      cuda::GemmPanelSpec panel = own;
      panel.c = to;
      panel.c_stride = what_.n;
      panel.rows_of = spec.panels.empty() ? -1 : 0;
      if (!spec.panels.empty()) panel.k_chunks.clear();
      return spec.panels.emplace_back(std::move(panel));
    };
    for (int step = 1; step <= ranks_; ++step) {
      const int peer = (rank + step) % ranks_;
      cuda::GemmPanelSpec& panel = add(inbox(peer, rank));
      if (peer == rank) continue;
      panel.fused_store = static_cast<int>(spec.fused_stores.size());
      panel.is_in_data = is_in_data_;
      spec.fused_stores.push_back({.word = at<std::uint32_t>(beside_.signals(peer).address(rank)),
                                   .peer_poison = beside_.signals(peer).context().poison,
                                   .added = 0});
    }
    cuda::GemmPanelSpec& total = add(of(results_, rank).address());
    for (int from = 0; from < ranks_; ++from) {
      total.addends.push_back({.address = inbox(rank, from), .stride = what_.n});
      if (from == rank) continue;
      total.addends.back().ready = beside_.signals(rank).wait(from, 1);
      total.addends.back().is_in_data = is_in_data_;
    }
    return spec;
  }

  // Prepares kernels of all ranks, for a variant with `blocks` SMs each. Tiles whose threads
  // exchange sums have no kernel that only multiplies; every whole tile makes the same sums.
  void prepare(const device::GemmConfig& config, int blocks) {
    plain_.clear();
    exchanging_.clear();
    for (int rank = 0; rank < ranks_; ++rank) {
      const cuda::GemmSpec spec = plain(rank);
      const cuda::GemmSpec sum = exchanging(rank);
      const cuda::GemmChoice alone = config.by_threads
                                         ? cuda::whole_gemm(spec, cuda::gemm_configs(spec).front())
                                         : cuda::cut_gemm(spec, config, blocks);
      plain_.emplace_back(bench_->gpu(), spec, alone, blocks);
      exchanging_.emplace_back(bench_->gpu(), sum,
                               config.by_threads ? cuda::whole_gemm(sum, config) : alone, blocks);
    }
  }

  // One execution of all ranks in the given order, after the stream's earlier work and before its
  // later work.
  void run(const std::deque<GemmRunner>& kernels, const std::vector<int>& order, CUstream stream) {
    beside_.run(order, stream, [&](int rank, CUstream own) { of(kernels, rank).launch(own); });
  }
  void run_plain(const std::vector<int>& order, CUstream stream) { run(plain_, order, stream); }
  // Requires: begin_epoch.
  void run_exchanging(const std::vector<int>& order, CUstream stream) {
    run(exchanging_, order, stream);
  }
  void begin_epoch(CUstream stream) { beside_.begin_epoch(stream); }

  // Only the first rank; the other ranks' sums must have been brought.
  void launch_plain(CUstream stream) const { plain_.front().launch(stream); }
  void launch_exchanging(CUstream stream) const { exchanging_.front().launch(stream); }
  void bring_all(CUstream stream) {
    bench_->gpu().fill_bytes(inbox(0, 0), 0, ranks_ * bytes(), stream);
    beside_.bring_all(stream);
  }

  void poison(CUstream stream) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      of(problems_, rank)->reset(stream);
      bench_->gpu().fill_bytes(inbox(rank, 0), 0xff, ranks_ * bytes(), stream);
      bench_->gpu().fill_bytes(of(results_, rank).address(), 0xff, bytes(), stream);
    }
  }

  // "" if each rank's GEMM is right, and each result is bitwise the sum of what the same kernels
  // store alone.
  [[nodiscard]] std::string find_fault(Draw& draw) {
    CUstream const stream = bench_->stream();
    VerdictBox verdict(bench_->gpu());
    verdict.clear(stream);
    poison(stream);
    run_plain(draw.order(static_cast<std::size_t>(ranks_)), stream);
    for (const auto& problem : problems_) problem->check(verdict.device(), stream);
    if (std::string wrong = describe(verdict.read(stream), what_.n); !wrong.empty()) return wrong;
    std::vector<float> sums(static_cast<std::size_t>(what_.m * what_.n));
    for (int rank = 0; rank < ranks_; ++rank) {
      const GuardedRows& c = of(problems_, rank)->c();
      const std::vector<std::uint16_t> part = read(c.address(), c.stride());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += widen_bf16(part[i]);
    }
    for (int execution = 0; execution < kBackToBack; ++execution) {
      if (execution % 8 == 0) poison(stream);
      begin_epoch(stream);
      run_exchanging(draw.order(static_cast<std::size_t>(ranks_)), stream);
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      if (std::string fault = beside_.signals(rank).fault(); !fault.empty()) return fault;
      const std::vector<std::uint16_t> found = read(of(results_, rank).address(), what_.n);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        if (found[i] == narrow_bf16(sums[i])) continue;
        return fmt::format("rank {} has {} at {}, and the sum of all is {}", rank,
                           widen_bf16(found[i]), i, sums[i]);
      }
    }
    return "";
  }

 private:
  [[nodiscard]] std::int64_t bytes() const { return what_.m * what_.n * 2; }
  // Where `rank` receives what `from` sends.
  [[nodiscard]] Address inbox(int rank, int from) const {
    return of(inboxes_, rank).address() + static_cast<Address>(from * bytes());
  }

  [[nodiscard]] std::vector<std::uint16_t> read(Address from, std::int64_t stride) const {
    Gpu& gpu = bench_->gpu();
    const cuda::MappedMemory copy = gpu.host_memory(bytes());
    gpu.copy_rows({.to = copy.address(),
                   .to_stride = what_.n * 2,
                   .from = from,
                   .from_stride = stride * 2,
                   .row_bytes = what_.n * 2,
                   .rows = what_.m},
                  bench_->stream());
    gpu.synchronise(bench_->stream());
    const auto* const values = at<const std::uint16_t>(copy.address());
    return {values, values + what_.m * what_.n};
  }

  Bench* bench_;
  GemmCase what_;
  int ranks_;
  bool is_in_data_;
  std::vector<std::unique_ptr<GemmProblem>> problems_;
  std::vector<cuda::DeviceMemory> inboxes_;  // per rank: [from][m][n]
  std::vector<cuda::DeviceMemory> results_;
  RanksBeside beside_;
  std::deque<GemmRunner> plain_;
  std::deque<GemmRunner> exchanging_;
};

GemmCase exchange_case(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmCase what;
  what.name = fmt::format("{}x{}x{}", m, n, k);
  what.m = m;
  what.n = n;
  what.k = k;
  what.panels = uncut(m, k);
  what.packed = true;
  return what;
}

std::vector<device::GemmConfig> variants_for(const SumOfRanks& sum) {
  return cuda::gemm_configs(sum.exchanging(0));
}

// Any shape of up to 600 rows, most of few, by any of its variants.
void check_exchange(Bench& bench, Draw& draw, int ranks) {
  const GemmCase what = exchange_case(draw.coin() ? draw.between(1, 256) : draw.between(1, 600),
                                      8 * draw.between(1, 320), 8 * draw.between(8, 260));
  const bool is_in_data = draw.coin();
  const std::string name =
      fmt::format("{} on {} ranks{}", what.name, ranks, is_in_data ? ", in data" : "");
  if (!bench.report().begins("exchange check", name)) return;
  SumOfRanks sum(bench, what, ranks, draw.bits(), is_in_data);
  const std::vector<device::GemmConfig> variants = variants_for(sum);
  if (variants.empty()) return;  // more than 256 rows of many ranks are more than a kernel awaits
  const device::GemmConfig config = draw.one_of(variants);
  sum.prepare(config, bench.gpu().processors() / ranks);
  bench.report().add_check("exchange check", name, sum.find_fault(draw),
                           {{"variant", describe(config)}});
}

// Times one rank's kernel alone, with all that other ranks send in place: the cost of storing and
// adding. Then all ranks together, with and without exchange. Weights are read from memory.
void time_exchange(Bench& bench, const GemmCase& what, int ranks) {
  const std::string name = fmt::format("{} on {} ranks", what.name, ranks);
  if (!bench.report().begins(kExchange, name)) return;
  const int processors = bench.gpu().processors();
  std::deque<SumOfRanks> beside;
  std::deque<SumOfRanks> alone;
  for (int set = 0; set < kExchangeSets; ++set) {
    const std::uint64_t seed = bench.options().seed + 100U * set;
    for (auto* const sums : {&beside, &alone}) {
      SumOfRanks& sum = sums->emplace_back(bench, what, ranks, seed);
      const int blocks = sums == &alone ? processors : processors / ranks;
      sum.prepare(cuda::choose_gemm(sum.exchanging(0), blocks).config, blocks);
    }
  }
  Draw draw(bench.options().seed);
  const std::string wrong = beside.front().find_fault(draw);
  const std::vector<int> order = draw.order(static_cast<std::size_t>(ranks));
  const std::vector<Contender> contenders = {
      {.name = "plain",
       .call = [&](int set, CUstream stream) { of(alone, set).launch_plain(stream); }},
      {.name = "alone",
       .call = [&](int set, CUstream stream) { of(alone, set).launch_exchanging(stream); },
       .prepare =
           [&](CUstream stream) {
             for (SumOfRanks& sum : alone) sum.bring_all(stream);
           }},
      {.name = "plain beside",
       .call = [&](int set, CUstream stream) { of(beside, set).run_plain(order, stream); }},
      {.name = "beside",
       .call = [&](int set, CUstream stream) { of(beside, set).run_exchanging(order, stream); },
       .prepare =
           [&](CUstream stream) {
             for (SumOfRanks& sum : beside) sum.begin_epoch(stream);
           }}};
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, kExchangeSets);
  bench.report().add_check(kExchange, name, wrong,
                           {{"plain us", timings[0].median_us},
                            {"alone us", timings[1].median_us},
                            {"more us", timings[1].median_us - timings[0].median_us},
                            {"plain beside us", timings[2].median_us},
                            {"beside us", timings[3].median_us}});
}

}  // namespace

void exchange_sums(Bench& bench) {
  Draw draw(bench.options().seed);
  for (int i = 0; i < bench.times(60); ++i) {
    check_exchange(bench, draw, static_cast<int>(draw.between(2, 8)));
  }
  for (const int ranks : {2, 4, 8}) {
    for (const std::int64_t m : {1, 8, 32, 64, 128, 192, 256}) {
      time_exchange(bench, exchange_case(m, 8192, 8192 / ranks), ranks);
    }
  }
}

}  // namespace harpe::bench
