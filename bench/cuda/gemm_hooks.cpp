// The cost of a GEMM's hooks: waits for present data, waits for arriving data, stores to a peer.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/gemm_problem.h"
#include "bench/cuda/gemm_runner.h"
#include "bench/cuda/gemm_shapes.h"

namespace harpe::bench {
namespace {

constexpr std::int64_t kChunks = 8;
constexpr std::uint64_t kLimitNs = 200'000'000;

std::vector<PanelCut> chunks(std::int64_t m, std::int64_t k, std::int64_t count = kChunks) {
  std::vector<PanelCut> panels;
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const std::int64_t begin = m * chunk / count;
    panels.push_back({.row_begin = begin,
                      .rows = m * (chunk + 1) / count - begin,
                      .k_chunks = {{.k_begin = 0, .k_count = k}}});
  }
  return panels;
}

// Column chunks of A, as in the gradients of weights.
std::vector<PanelCut> deep_chunks(std::int64_t m, std::int64_t k) {
  std::vector<PanelCut> panels = uncut(m, k);
  panels.front().k_chunks.clear();
  for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
    panels.front().k_chunks.push_back({.k_begin = k / kChunks * chunk, .k_count = k / kChunks});
  }
  return panels;
}

cuda::GemmChoice choice_of(Bench& bench, const cuda::GemmSpec& spec) {
  return cuda::choose_gemm(spec, bench.gpu().processors());
}

Contender runs(std::string name, const GemmRunner& runner) {
  return {.name = std::move(name),
          .call = [&runner](int, CUstream stream) { runner.launch(stream); }};
}

// Chunks with flags raised long ago, chunks without flags, and one panel.
void time_wait(Bench& bench, GemmCase what) {
  what.panels = what.m_major ? deep_chunks(what.m, what.k) : chunks(what.m, what.k);
  GemmProblem problem(bench.gpu(), bench.gpu(), what, bench.options().seed, bench.stream());
  Signals signals(bench.gpu(), static_cast<int>(kChunks), kLimitNs);
  signals.begin_epoch(bench.stream());
  signals.raise_all(1, bench.stream());
  const cuda::GemmSpec bare = problem.spec();
  cuda::GemmSpec flagged = bare;
  flagged.wait = signals.context();
  int flag = 0;
  for (cuda::GemmPanelSpec& panel : flagged.panels) {
    for (cuda::GemmKChunkSpec& k_chunk : panel.k_chunks) k_chunk.ready = signals.wait(flag++, 1);
  }
  cuda::GemmSpec whole = bare;
  whole.panels.resize(1);
  whole.panels.front().rows = what.m;
  whole.panels.front().k_chunks.resize(1);
  whole.panels.front().k_chunks.front().k_count = what.k;
  const cuda::GemmChoice choice = choice_of(bench, flagged);
  const GemmRunner waits(bench.gpu(), flagged, choice);
  const GemmRunner does_not(bench.gpu(), bare, choice);
  const GemmRunner one(bench.gpu(), whole, choice_of(bench, whole));
  const auto timings = bench.stopwatch().time(
      {runs("flags", waits), runs("chunks", does_not), runs("one panel", one)},
      bench.options().rounds, 1);
  bench.report().add({.experiment = "wait gemm",
                      .name = what.name,
                      .cells = {{"flags us", timings[0].median_us},
                                {"chunks us", timings[1].median_us},
                                {"one panel us", timings[2].median_us},
                                {"flags / chunks", timings[0].median_us / timings[1].median_us},
                                {"flags / one", timings[0].median_us / timings[2].median_us},
                                {"fault", signals.fault()}}});
}

// Chunks of A that arrive: the first is in place, the others follow one by one.
class ArrivingGemm {
 public:
  ArrivingGemm(Bench& bench, const GemmCase& what, Gpu& from)
      : gpu_(&bench.gpu()),
        problem_(bench.gpu(), bench.gpu(), what, bench.options().seed, bench.stream()),
        signals_(bench.gpu(), static_cast<int>(what.panels.size()), kLimitNs),
        begun_(bench.gpu().new_event()),
        ended_(bench.gpu().new_event()),
        stream_(bench.gpu().new_stream()),
        source_(bench.options().source == "host" ? nullptr : &from) {
    const std::int64_t bytes = problem_.a().count() * problem_.a().stride_bytes();
    landing_ = gpu_->memory(bytes);
    if (source_ == nullptr) {
      host_ = gpu_->host_memory(bytes);
      from_ = host_->address();
    } else {
      remote_ = source_->memory(bytes);
      from_ = remote_->address();
    }
    for (const Address to : {from_, landing_->address()}) {
      gpu_->copy(to, problem_.a().address(), bytes, bench.stream());
    }
    gpu_->synchronise(bench.stream());
    gpu_->enter();
  }

  [[nodiscard]] cuda::GemmSpec spec() const {
    cuda::GemmSpec spec = problem_.spec();
    spec.wait = signals_.context();
    for (std::size_t i = 0; i < spec.panels.size(); ++i) {
      cuda::GemmKChunkSpec& k_chunk = spec.panels[i].k_chunks.front();
      k_chunk.a = landing_->address() + offset(i);
      if (i >= local()) k_chunk.ready = signals_.wait(static_cast<int>(i), 1);
    }
    return spec;
  }

  void begin_epoch(CUstream stream) { signals_.begin_epoch(stream); }
  void raise_all(CUstream stream) {
    signals_.begin_epoch(stream);
    signals_.raise_all(1, stream);
  }
  // Enqueues copies and flags after what `stream` holds.
  void send(CUstream stream) const {
    gpu_->record(begun_, stream);
    gpu_->wait_for(stream_, begun_);
    for (std::size_t i = local(); i < problem_.what().panels.size(); ++i) {
      const std::int64_t bytes = problem_.what().panels[i].rows * problem_.a().stride_bytes();
      gpu_->copy(landing_->address() + offset(i), from_ + offset(i), bytes, stream_);
      gpu_->write_word(signals_.address(static_cast<int>(i)), signals_.epoch(), stream_);
    }
    gpu_->record(ended_, stream_);
  }
  void wait_for_all(CUstream stream) const { gpu_->wait_for(stream, ended_); }
  [[nodiscard]] std::string fault() const { return signals_.fault(); }

 private:
  // The chunks already in place: the share of one of eight ranks.
  [[nodiscard]] std::size_t local() const { return problem_.what().panels.size() / 8; }
  [[nodiscard]] Address offset(std::size_t panel) const {
    return static_cast<Address>(problem_.what().panels[panel].row_begin *
                                problem_.a().stride_bytes());
  }

  Gpu* gpu_;
  GemmProblem problem_;
  Signals signals_;
  CUevent begun_;
  CUevent ended_;
  CUstream stream_;
  Gpu* source_;
  Address from_ = 0;
  std::optional<cuda::DeviceMemory> landing_;
  std::optional<cuda::DeviceMemory> remote_;
  std::optional<cuda::MappedMemory> host_;
};

// What arrives last is computed last, so chunks are as small as tiles allow, but at least eight.
void time_arrival(Bench& bench, GemmCase what, Gpu& from) {
  what.panels = chunks(what.m, what.k, std::clamp<std::int64_t>(what.m / 256, kChunks, 32));
  ArrivingGemm arriving(bench, what, from);
  const cuda::GemmSpec spec = arriving.spec();
  const GemmRunner runner(bench.gpu(), spec, choice_of(bench, spec));
  const Contender alone = {.name = "compute",
                           .call = [&](int, CUstream stream) { runner.launch(stream); },
                           .prepare = [&](CUstream stream) { arriving.raise_all(stream); }};
  const Contender copies = {.name = "arrival",
                            .call =
                                [&](int, CUstream stream) {
                                  arriving.send(stream);
                                  arriving.wait_for_all(stream);
                                },
                            .prepare = [&](CUstream stream) { arriving.begin_epoch(stream); }};
  const Contender both = {.name = "both",
                          .call =
                              [&](int, CUstream stream) {
                                arriving.send(stream);
                                runner.launch(stream);
                                arriving.wait_for_all(stream);
                              },
                          .prepare = [&](CUstream stream) { arriving.begin_epoch(stream); }};
  const auto timings = bench.stopwatch().time({alone, copies, both}, bench.options().rounds, 1);
  const double bound = std::max(timings[0].median_us, timings[1].median_us);
  bench.report().add({.experiment = "arrival gemm",
                      .name = what.name,
                      .cells = {{"from", bench.options().source},
                                {"chunks", static_cast<std::int64_t>(what.panels.size())},
                                {"compute us", timings[0].median_us},
                                {"arrival us", timings[1].median_us},
                                {"both us", timings[2].median_us},
                                {"both / max", timings[2].median_us / bound},
                                {"fault", arriving.fault()}}});
}

void time_fused_store(Bench& bench, GemmCase what) {
  what.panels = chunks(what.m, what.k);
  Gpu& gpu = bench.gpu();
  Gpu& peer = *bench.peer();
  GemmProblem local(gpu, gpu, what, bench.options().seed, bench.stream());
  GemmProblem remote(gpu, peer, what, bench.options().seed, bench.stream());
  Signals counters(peer, static_cast<int>(kChunks), kLimitNs);
  cuda::GemmSpec counted = remote.spec();
  remote.count_into(counters, counted);
  gpu.enter();
  const cuda::GemmChoice choice = choice_of(bench, counted);
  const GemmRunner here(gpu, local.spec(), choice);
  const GemmRunner there(gpu, counted, choice);
  const std::int64_t bytes = what.m * local.c().stride_bytes();
  const Contender link = {.name = "copy", .call = [&](int, CUstream stream) {
                            gpu.copy(remote.c().address(), local.c().address(), bytes, stream);
                          }};
  const auto timings = bench.stopwatch().time({runs("local", here), runs("remote", there), link},
                                              bench.options().rounds, 1);
  bench.report().add({.experiment = "departure gemm",
                      .name = what.name,
                      .cells = {{"local us", timings[0].median_us},
                                {"remote us", timings[1].median_us},
                                {"copy of C us", timings[2].median_us},
                                {"remote / local", timings[1].median_us / timings[0].median_us}}});
}

}  // namespace

void time_gemm_wait(Bench& bench) {
  for (const GemmCase& what : gemm_shapes()) {
    if (what.m >= 1024 && bench.report().begins("wait gemm", what.name)) time_wait(bench, what);
  }
}

void time_gemm_arrival(Bench& bench) {
  // A copy within one GPU needs SMs, which the kernel holds.
  Gpu* const from = bench.options().source == "peer" ? bench.peer() : &bench.gpu();
  if (from == nullptr) {
    bench.report().skip("arrival gemm", "from a peer", "one GPU");
    return;
  }
  for (const GemmCase& what : gemm_shapes()) {
    if (what.m < 1024 || what.name.starts_with("gemm_rs")) continue;
    if (bench.report().begins("arrival gemm", what.name)) time_arrival(bench, what, *from);
  }
}

void time_gemm_fused_store(Bench& bench) {
  if (bench.peer() == nullptr) {
    bench.report().skip("departure gemm", "to a peer", "one GPU");
    return;
  }
  for (const GemmCase& what : gemm_shapes()) {
    if (what.m < 1024 || what.name.starts_with("ag_gemm")) continue;
    if (bench.report().begins("departure gemm", what.name)) time_fused_store(bench, what);
  }
}

}  // namespace harpe::bench
