// The cost of attention's hooks: waits for present data, waits for arriving data, stores to a peer.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/attention_problem.h"
#include "bench/cuda/attention_shapes.h"
#include "bench/cuda/courier.h"
#include "bench/cuda/must.h"
#include "bench/cuda/signals.h"
#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/attention/prepared_attention.h"

namespace harpe::bench {
namespace {

constexpr const char* kWait = "wait attention";
constexpr const char* kArrival = "arrival attention";
constexpr const char* kFusedStore = "departure attention";
constexpr std::int64_t kManyRows = 8192;
constexpr std::uint64_t kLimitNs = 200'000'000;

cuda::PreparedAttention prepare(Gpu& gpu, const cuda::AttentionSpec& spec) {
  return must(cuda::PreparedAttention::make(gpu.library(), spec, cuda::choose_attention(spec)));
}

Contender runs(std::string name, const cuda::PreparedAttention& attention) {
  return {.name = std::move(name),
          .call = [&attention](int, CUstream stream) { must(attention.launch(stream)); }};
}

// Chunks with flags raised long ago, chunks without flags, and one chunk.
void time_wait(Bench& bench, AttentionCase what) {
  cut_keys(what);
  Gpu& gpu = bench.gpu();
  AttentionProblem problem(gpu, gpu, what, bench.options().seed, bench.stream());
  Signals signals(gpu, static_cast<int>(what.chunks.size()), kLimitNs);
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
  const cuda::PreparedAttention waits = prepare(gpu, flagged);
  const cuda::PreparedAttention does_not = prepare(gpu, bare);
  const cuda::PreparedAttention one = prepare(gpu, whole);
  const auto timings = bench.stopwatch().time(
      {runs("flags", waits), runs("chunks", does_not), runs("one chunk", one)},
      bench.options().rounds, 1);
  bench.report().add({.experiment = kWait,
                      .name = what.name,
                      .cells = {{"flags us", timings[0].median_us},
                                {"chunks us", timings[1].median_us},
                                {"one chunk us", timings[2].median_us},
                                {"flags / chunks", timings[0].median_us / timings[1].median_us},
                                {"flags / one", timings[0].median_us / timings[2].median_us},
                                {"fault", signals.fault()}}});
}

// Keys and values arrive chunk by chunk while the kernel runs; the queries and the first chunk are
// in place at the start.
class ArrivingAttention {
 public:
  // Data arrive from `source`'s memory; null: the host's.
  ArrivingAttention(Bench& bench, const AttentionCase& what, const Gpu* source)
      : gpu_(&bench.gpu()),
        problem_(*gpu_, *gpu_, what, bench.options().seed, bench.stream()),
        signals_(*gpu_, static_cast<int>(what.flags()), kLimitNs),
        spec_(problem_.arriving_spec(signals_, 1, source)),
        run_(prepare(*gpu_, spec_)),
        courier_(*gpu_, signals_, 1),
        delivered_(gpu_->new_event()),
        draw_(bench.options().seed) {
    for (const Parcel& parcel : problem_.parcels()) {
      const bool is_late = parcel.flag > 0 && parcel.flag < static_cast<int>(what.chunks.size());
      (is_late ? late_ : early_).push_back(parcel.flag);
    }
    gpu_->enter();
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
  [[nodiscard]] std::string variant() const { return cuda::attention_variant(run_.config()).name; }
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

void time_arrival(Bench& bench, AttentionCase what, const Gpu* source) {
  if (what.chunks.size() == 1) cut_keys(what);
  ArrivingAttention arriving(bench, what, source);
  const auto timings = bench.stopwatch().time(
      {arriving.alone(), arriving.copies(), arriving.both()}, bench.options().rounds, 1);
  const double bound = std::max(timings[0].median_us, timings[1].median_us);
  bench.report().add({.experiment = kArrival,
                      .name = what.name,
                      .cells = {{"variant", arriving.variant()},
                                {"from", bench.options().source},
                                {"chunks", static_cast<std::int64_t>(what.chunks.size())},
                                {"compute us", timings[0].median_us},
                                {"arrival us", timings[1].median_us},
                                {"both us", timings[2].median_us},
                                {"both / max", timings[2].median_us / bound},
                                {"fault", arriving.fault()}}});
}

// Stores only o, because other ranks do not need lse.
cuda::AttentionSpec without_lse(cuda::AttentionSpec spec) {
  for (cuda::AttentionPanelSpec& panel : spec.panels) panel.lse = {};
  return spec;
}

void time_fused_store(Bench& bench, AttentionCase what) {
  cut_queries(what);
  Gpu& gpu = bench.gpu();
  Gpu& peer = *bench.peer();
  AttentionProblem local(gpu, gpu, what, bench.options().seed, bench.stream());
  AttentionProblem remote(gpu, peer, what, bench.options().seed, bench.stream());
  Signals counters(peer, static_cast<int>(what.panels.size()), kLimitNs);
  cuda::AttentionSpec counted = without_lse(remote.spec());
  for (std::size_t i = 0; i < counted.panels.size(); ++i) {
    counted.panels[i].done = counters.address(static_cast<int>(i));
  }
  gpu.enter();
  const cuda::PreparedAttention here = prepare(gpu, without_lse(local.spec()));
  const cuda::PreparedAttention there = prepare(gpu, counted);
  const std::int64_t bytes = local.o().count() * local.o().stride_bytes();
  const Contender link = {.name = "copy", .call = [&](int, CUstream stream) {
                            gpu.copy(remote.o().address(), local.o().address(), bytes, stream);
                          }};
  const auto timings = bench.stopwatch().time({runs("local", here), runs("remote", there), link},
                                              bench.options().rounds, 1);
  bench.report().add({.experiment = kFusedStore,
                      .name = what.name,
                      .cells = {{"variant", cuda::attention_variant(here.config()).name},
                                {"local us", timings[0].median_us},
                                {"remote us", timings[1].median_us},
                                {"copy of o us", timings[2].median_us},
                                {"remote / local", timings[1].median_us / timings[0].median_us}}});
}

}  // namespace

void time_attention_wait(Bench& bench) {
  for (const AttentionCase& what : attention_shapes()) {
    if (what.rows >= kManyRows && bench.report().begins(kWait, what.name)) time_wait(bench, what);
  }
}

void time_attention_arrival(Bench& bench) {
  const bool from_peer = bench.options().source == "peer";
  if (from_peer && bench.peer() == nullptr) {
    bench.report().skip(kArrival, "from a peer", "one GPU");
    return;
  }
  std::vector<AttentionCase> shapes = attention_shares();
  for (AttentionCase& what : attention_shapes()) shapes.push_back(std::move(what));
  for (const AttentionCase& what : shapes) {
    if (!bench.report().begins(kArrival, what.name)) continue;
    time_arrival(bench, what, from_peer ? bench.peer() : nullptr);
  }
}

void time_attention_fused_store(Bench& bench) {
  if (bench.peer() == nullptr) {
    bench.report().skip(kFusedStore, "to a peer", "one GPU");
    return;
  }
  for (const AttentionCase& what : attention_shapes()) {
    if (what.rows < kManyRows) continue;
    if (bench.report().begins(kFusedStore, what.name)) time_fused_store(bench, what);
  }
}

}  // namespace harpe::bench
