#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/attention_problem.h"
#include "bench/cuda/attention_shapes.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/attention/prepared_attention.h"

namespace harpe::bench {
namespace {

constexpr const char* kAttention = "attention";
constexpr int kSets = 2;            // of inputs, in rotation
constexpr int kTryRounds = 5;       // for candidates that are only ranked
constexpr std::int64_t kRows = 32;  // rows checked per head

using device::AttentionConfig;

double flops_of(const AttentionCase& what) {
  const double all = 4.0 * static_cast<double>(what.heads) * static_cast<double>(what.rows) *
                     static_cast<double>(what.keys) * static_cast<double>(what.query_dim);
  return what.causal ? all / 2 : all;
}

// Configurations for a case: the chosen one, or all that fit.
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

// One shape with its inputs, Harpe's kernels and the library's.
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
      const library::LibraryAttention& library = *libraries_.back();
      const std::int64_t bytes = std::max<std::int64_t>(library.workspace_bytes(), 16);
      const Address workspace = workspaces_.emplace_back(bench_->gpu().memory(bytes)).address();
      contenders.push_back({.name = statistics ? "cuDNN with lse" : "cuDNN",
                            .call = [this, &library, workspace](int set, CUstream stream) {
                              HP_CHECK(library.launch(addresses(set), workspace, stream),
                                       "cuDNN refused a graph it had built");
                            }});
    }
  }

  // Checks the results of one call.
  [[nodiscard]] std::string wrong_in(const Contender& contender, VerdictBox& verdict) {
    CUstream const stream = bench_->stream();
    problems_.front()->reset(stream);
    verdict.clear(stream);
    contender.call(0, stream);
    problems_.front()->check(verdict.device(), stream);
    return describe(verdict.read(stream), what_.heads * what_.value_dim);
  }

 private:
  [[nodiscard]] library::AttentionAddresses addresses(int set) const {
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
  std::vector<std::unique_ptr<library::LibraryAttention>> libraries_;
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

}  // namespace

void time_attention(Bench& bench) {
  for (const AttentionCase& what : attention_shapes()) {
    if (bench.report().begins(kAttention, what.name)) time_shape(bench, what);
  }
}

}  // namespace harpe::bench
