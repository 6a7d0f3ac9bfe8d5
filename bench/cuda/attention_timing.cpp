#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/attention_problem.h"
#include "bench/cuda/courier.h"
#include "bench/cuda/must.h"
#include "bench/cuda/signals.h"
#include "exec/cuda/attention_variants.h"
#include "exec/cuda/prepared_attention.h"

namespace harpe::bench {
namespace {

constexpr const char* kAttention = "attention";
constexpr const char* kWait = "wait attention";
constexpr const char* kArrival = "arrival attention";
constexpr int kSets = 2;            // of inputs, in rotation
constexpr int kTryRounds = 5;       // of what is only to be ranked
constexpr std::int64_t kRows = 32;  // checked of each head
constexpr std::int64_t kChunks = 8;
constexpr std::uint64_t kLimitNs = 200'000'000;

using device::AttentionConfig;

AttentionCase shape(std::int64_t rows, std::int64_t kv_heads, std::int64_t dim, bool causal) {
  AttentionCase made;
  made.rows = rows;
  made.keys = rows;
  made.heads = 32;
  made.kv_heads = kv_heads;
  made.query_dim = dim;
  made.value_dim = dim;
  made.causal = causal;
  made.packed = true;
  leave_whole(made);
  made.name = fmt::format("S {} d {} 32/{} {}", rows, dim, kv_heads, causal ? "causal" : "full");
  return made;
}

std::vector<AttentionCase> shapes() {
  std::vector<AttentionCase> all;
  for (const std::int64_t dim : {128, 64}) {
    for (const std::int64_t kv_heads : {8, 32}) {
      for (const bool causal : {false, true}) {
        for (const std::int64_t rows : {2048, 8192, 16384}) {
          all.push_back(shape(rows, kv_heads, dim, causal));
        }
      }
    }
  }
  return all;
}

double flops_of(const AttentionCase& what) {
  const double all = 4.0 * static_cast<double>(what.heads) * static_cast<double>(what.rows) *
                     static_cast<double>(what.keys) * static_cast<double>(what.query_dim);
  return what.causal ? all / 2 : all;
}

// Configurations for a case: the one that is chosen, or all that fit.
std::vector<AttentionConfig> configs_for(const Bench& bench, const cuda::AttentionSpec& spec) {
  const AttentionConfig chosen = cuda::choose_attention(spec);
  std::vector<AttentionConfig> configs = {chosen};
  if (!bench.options().all_variants) return configs;
  for (const AttentionConfig& config : cuda::attention_configs()) {
    if (config.query_dim == spec.query_dim && config.value_dim == spec.value_dim &&
        config.element == spec.element && config.output == chosen.output &&
        config.carried == spec.carried && !(config == chosen)) {
      configs.push_back(config);
    }
  }
  return configs;
}

// One shape with its inputs, ours and the library's ways to compute it.
class AttentionMatch {
 public:
  AttentionMatch(Bench& bench, const AttentionCase& what) : bench_(&bench), what_(what) {
    for (int set = 0; set < kSets; ++set) {
      problems_.push_back(std::make_unique<AttentionProblem>(
          bench.gpu(), bench.gpu(), what, bench.options().seed + static_cast<unsigned>(set) * 10U,
          bench.stream()));
      problems_.back()->sample_rows(kRows);
    }
  }

  [[nodiscard]] cuda::AttentionSpec spec() const { return problems_.front()->spec(); }

  [[nodiscard]] Contender of_ours(const AttentionConfig& config) {
    auto& runs = runs_.emplace_back();
    cuda::KernelLibrary& library = bench_->gpu().library();
    for (const auto& problem : problems_) {
      runs.push_back(must(cuda::PreparedAttention::make(library, problem->spec(), config)));
    }
    return {.name = cuda::attention_variant(config).name,
            .call = [&runs](int set, CUstream stream) {
              must(runs[static_cast<std::size_t>(set)].launch(stream));
            }};
  }

  // cuDNN with and without lse, or none.
  void add_library(std::vector<Contender>& contenders) {
    const auto& cudnn = bench_->cudnn();
    if (!cudnn.ok()) return;
    for (const bool statistics : {true, false}) {
      auto made = cudnn->prepare({.batch = what_.batch,
                                  .rows = what_.rows,
                                  .keys = what_.keys,
                                  .heads = what_.heads,
                                  .kv_heads = what_.kv_heads,
                                  .columns = what_.query_dim,
                                  .v_columns = what_.value_dim,
                                  .causal = what_.causal,
                                  .in = what_.in},
                                 statistics);
      if (!made.ok()) {
        bench_->report().note(made.error().reason);
        continue;
      }
      libraries_.push_back(std::move(made).value());
      const LibraryAttention& library = *libraries_.back();
      const std::int64_t bytes = std::max<std::int64_t>(library.workspace_bytes(), 16);
      const Address workspace = workspaces_.emplace_back(bench_->gpu().memory(bytes)).address();
      contenders.push_back({.name = statistics ? "cuDNN with lse" : "cuDNN",
                            .call = [this, &library, workspace](int set, CUstream stream) {
                              HP_CHECK(library.launch(addresses(set), workspace, stream),
                                       "cuDNN refused a graph it had built");
                            }});
    }
  }

  // The results of one call, looked at.
  [[nodiscard]] std::string wrong_in(const Contender& contender, VerdictBox& verdict) {
    CUstream const stream = bench_->stream();
    problems_.front()->reset(stream);
    verdict.clear(stream);
    contender.call(0, stream);
    problems_.front()->check(verdict.device(), stream);
    return describe(verdict.read(stream), what_.heads * what_.value_dim);
  }

 private:
  [[nodiscard]] AttentionAddresses addresses(int set) const {
    const AttentionProblem& problem = *problems_[static_cast<std::size_t>(set)];
    return {.q = problem.q().address(),
            .k = problem.k().address(),
            .v = problem.v().address(),
            .o = problem.o().address(),
            .lse = problem.lse().address()};
  }

  Bench* bench_;
  AttentionCase what_;
  std::vector<std::unique_ptr<AttentionProblem>> problems_;
  std::deque<std::vector<cuda::PreparedAttention>> runs_;
  std::vector<std::unique_ptr<LibraryAttention>> libraries_;
  std::vector<cuda::DeviceMemory> workspaces_;
};

void report_variants(Bench& bench, const AttentionCase& what,
                     const std::vector<Contender>& contenders, const std::vector<Timing>& timings,
                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    bench.report().add({.experiment = "attention variants",
                        .name = what.name,
                        .cells = {{"variant", contenders[i].name},
                                  {"us", timings[i].median_us},
                                  {"TFLOP/s", flops_of(what) / timings[i].median_us * 1e-6}}});
  }
}

void time_shape(Bench& bench, const AttentionCase& what) {
  AttentionMatch match(bench, what);
  std::vector<Contender> contenders;
  for (const AttentionConfig& config : configs_for(bench, match.spec())) {
    contenders.push_back(match.of_ours(config));
  }
  const std::size_t ours = contenders.size();
  match.add_library(contenders);
  const int rounds =
      ours > 1 ? std::max(kTryRounds, bench.options().rounds / 2) : bench.options().rounds;
  const auto timings = bench.stopwatch().time(contenders, rounds, kSets);
  if (ours > 1) report_variants(bench, what, contenders, timings, ours);
  VerdictBox verdict(bench.gpu());
  const double own_us = timings.front().median_us;
  Row row = {.experiment = kAttention, .name = what.name, .cells = {}};
  row.cells = {{"variant", contenders.front().name},
               {"us", own_us},
               {"TFLOP/s", flops_of(what) / own_us * 1e-6},
               {"spread", timings.front().spread}};
  double best = 0;
  for (std::size_t i = ours; i < contenders.size(); ++i) {
    row.cells.emplace_back(contenders[i].name + " us", timings[i].median_us);
    if (best == 0 || timings[i].median_us < best) best = timings[i].median_us;
  }
  if (best > 0) {
    row.cells.emplace_back("ratio", best / own_us);
    row.cells.emplace_back("cuDNN wrong", match.wrong_in(contenders[ours], verdict));
  }
  bench.report().add_check(kAttention, what.name, match.wrong_in(contenders.front(), verdict),
                           std::move(row.cells));
}

void cut_evenly(AttentionCase& what) {
  what.chunks.clear();
  for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
    const std::int64_t begin = what.keys * chunk / kChunks;
    what.chunks.push_back({.begin = begin, .rows = what.keys * (chunk + 1) / kChunks - begin});
  }
}

// Chunks with flags that were raised long ago, chunks without flags, and one chunk.
void time_wait(Bench& bench, AttentionCase what) {
  cut_evenly(what);
  Gpu& gpu = bench.gpu();
  AttentionProblem problem(gpu, gpu, what, bench.options().seed, bench.stream());
  Signals signals(gpu, static_cast<int>(kChunks), kLimitNs);
  signals.begin_epoch(bench.stream());
  signals.raise_all(1, bench.stream());
  const cuda::AttentionSpec bare = problem.spec();
  cuda::AttentionSpec flagged = bare;
  flagged.wait = signals.context();
  for (std::size_t i = 0; i < flagged.chunks.size(); ++i) {
    flagged.chunks[i].ready = signals.wait(static_cast<int>(i), 1);
  }
  cuda::AttentionSpec whole = bare;
  whole.chunks.resize(1);
  whole.chunks.front().rows = what.keys;
  std::vector<cuda::PreparedAttention> runs;
  for (const cuda::AttentionSpec& spec : {flagged, bare, whole}) {
    runs.push_back(
        must(cuda::PreparedAttention::make(gpu.library(), spec, cuda::choose_attention(spec))));
  }
  std::vector<Contender> contenders;
  for (const cuda::PreparedAttention& run : runs) {
    contenders.push_back(
        {.name = "", .call = [&run](int, CUstream stream) { must(run.launch(stream)); }});
  }
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, 1);
  bench.report().add({.experiment = kWait,
                      .name = what.name,
                      .cells = {{"flags us", timings[0].median_us},
                                {"chunks us", timings[1].median_us},
                                {"one chunk us", timings[2].median_us},
                                {"flags / chunks", timings[0].median_us / timings[1].median_us},
                                {"flags / one", timings[0].median_us / timings[2].median_us},
                                {"fault", signals.fault()}}});
}

// Keys and values that come from the host's memory chunk by chunk while the kernel runs; the
// queries and the first chunk are there before.
class ArrivingAttention {
 public:
  ArrivingAttention(Bench& bench, const AttentionCase& what)
      : gpu_(&bench.gpu()),
        problem_(*gpu_, *gpu_, what, bench.options().seed, bench.stream()),
        signals_(*gpu_, static_cast<int>(what.chunks.size() + what.panels.size()), kLimitNs),
        spec_(problem_.arriving_spec(signals_, 1)),
        run_(must(
            cuda::PreparedAttention::make(gpu_->library(), spec_, cuda::choose_attention(spec_)))),
        courier_(*gpu_, signals_, 1),
        delivered_(gpu_->new_event()),
        draw_(bench.options().seed) {
    for (const Parcel& parcel : problem_.parcels()) {
      const bool is_late = parcel.flag > 0 && parcel.flag < static_cast<int>(what.chunks.size());
      (is_late ? late_ : early_).push_back(parcel.flag);
    }
  }

  [[nodiscard]] Contender alone() {
    return {.name = "compute",
            .call = [this](int, CUstream stream) { must(run_.launch(stream)); },
            .prepare =
                [this](CUstream stream) {
                  begin_epoch(stream);
                  deliver(late_, stream);
                  wait_for_parcels(stream);
                }};
  }
  [[nodiscard]] Contender copies() {
    return {.name = "arrival",
            .call =
                [this](int, CUstream stream) {
                  deliver(late_, stream);
                  wait_for_parcels(stream);
                },
            .prepare = [this](CUstream stream) { begin_epoch(stream); }};
  }
  [[nodiscard]] Contender both() {
    return {.name = "both",
            .call =
                [this](int, CUstream stream) {
                  deliver(late_, stream);
                  must(run_.launch(stream));
                  wait_for_parcels(stream);
                },
            .prepare = [this](CUstream stream) { begin_epoch(stream); }};
  }
  [[nodiscard]] std::string fault() const { return signals_.fault(); }

 private:
  void begin_epoch(CUstream stream) {
    signals_.begin_epoch(stream);
    deliver(early_, stream);
    wait_for_parcels(stream);
  }
  void deliver(const std::vector<int>& order, CUstream stream) {
    courier_.follow(stream);
    courier_.deliver(problem_.parcels(), order, draw_, 0);
    gpu_->record(delivered_, courier_.stream());
  }
  void wait_for_parcels(CUstream stream) { gpu_->wait_for(stream, delivered_); }

  Gpu* gpu_;
  AttentionProblem problem_;
  Signals signals_;
  cuda::AttentionSpec spec_;
  cuda::PreparedAttention run_;
  Courier courier_;
  CUevent delivered_;
  Draw draw_;
  std::vector<int> early_;
  std::vector<int> late_;
};

void time_arrival(Bench& bench, AttentionCase what) {
  cut_evenly(what);
  ArrivingAttention arriving(bench, what);
  const auto timings = bench.stopwatch().time(
      {arriving.alone(), arriving.copies(), arriving.both()}, bench.options().rounds, 1);
  const double bound = std::max(timings[0].median_us, timings[1].median_us);
  bench.report().add({.experiment = kArrival,
                      .name = what.name,
                      .cells = {{"from", "host"},
                                {"chunks", kChunks},
                                {"compute us", timings[0].median_us},
                                {"arrival us", timings[1].median_us},
                                {"both us", timings[2].median_us},
                                {"both / max", timings[2].median_us / bound},
                                {"fault", arriving.fault()}}});
}

}  // namespace

void time_attention(Bench& bench) {
  for (const AttentionCase& what : shapes()) {
    if (bench.report().begins(kAttention, what.name)) time_shape(bench, what);
  }
}

void time_attention_wait(Bench& bench) {
  for (const AttentionCase& what : shapes()) {
    if (what.rows >= 8192 && bench.report().begins(kWait, what.name)) time_wait(bench, what);
  }
}

void time_attention_arrival(Bench& bench) {
  for (const AttentionCase& what : shapes()) {
    if (bench.report().begins(kArrival, what.name)) time_arrival(bench, what);
  }
}

}  // namespace harpe::bench
