#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/attention_shapes.h"
#include "bench/cuda/backward_experiments.h"
#include "bench/cuda/backward_problem.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/backward/prepared_backward.h"
#include "support/check.h"

namespace harpe::bench {
namespace {

constexpr const char* kBackward = "backward";
constexpr int kSets = 2;               // input sets, in rotation
constexpr std::int64_t kSamples = 64;  // rows compared per gradient

// Five GEMMs over all pairs or half of them; recomputation in the kernel does not count.
double flops_of(const AttentionCase& what) {
  const double all = 10.0 * static_cast<double>(what.heads) * static_cast<double>(what.rows) *
                     static_cast<double>(what.keys) * static_cast<double>(what.query_dim);
  return what.causal ? all / 2 : all;
}

class BackwardMatch {
 public:
  BackwardMatch(Bench& bench, const AttentionCase& what) : bench_(&bench) {
    for (int set = 0; set < kSets; ++set) {
      const auto& problem = problems_.emplace_back(std::make_unique<BackwardProblem>(
          bench.gpu(), what, bench.options().seed + static_cast<unsigned>(set) * 10U,
          bench.stream()));
      runs_.push_back(must(cuda::PreparedBackward::make(bench.gpu().library(), problem->spec())));
    }
  }

  [[nodiscard]] Contender of_ours() {
    return {.name = "gradient", .call = [this](int set, CUstream stream) {
              must(runs_[static_cast<std::size_t>(set)].launch(stream));
            }};
  }

  // cuDNN's, deterministic and not, or none. Its gradients have the inputs' type, and it cannot add
  // to values.
  void add_library(const AttentionCase& what, std::vector<Contender>& contenders) {
    const auto& cudnn = bench_->cudnn();
    if (!cudnn.ok() || what.carried) return;
    for (const bool deterministic : {true, false}) {
      auto made = cudnn->prepare_backward({.batch = what.batch,
                                           .rows = what.rows,
                                           .keys = what.keys,
                                           .heads = what.heads,
                                           .kv_heads = what.kv_heads,
                                           .columns = what.query_dim,
                                           .v_columns = what.value_dim,
                                           .causal = what.causal,
                                           .in = what.in},
                                          deterministic);
      if (!made.ok()) {
        bench_->report().note(made.error().reason);
        continue;
      }
      libraries_.push_back(std::move(made).value());
      const library::LibraryBackward& library = *libraries_.back();
      const std::int64_t bytes = std::max<std::int64_t>(library.workspace_bytes(), 16);
      const Address workspace = workspaces_.emplace_back(bench_->gpu().memory(bytes)).address();
      contenders.push_back({.name = deterministic ? "cuDNN deterministic" : "cuDNN",
                            .call = [this, &library, workspace](int set, CUstream stream) {
                              const BackwardProblem& problem =
                                  *problems_[static_cast<std::size_t>(set)];
                              HP_CHECK(library.launch(problem.addresses(), workspace, stream),
                                       "cuDNN refused a graph it had built");
                            }});
    }
  }

  [[nodiscard]] BackwardProblem::Comparison compare() const {
    CUstream const stream = bench_->stream();
    const BackwardProblem& problem = *problems_.front();
    problem.reset(stream);
    must(runs_.front().launch(stream));
    return problem.compare(problem.read_results(stream), kSamples, stream);
  }

 private:
  Bench* bench_;
  std::vector<std::unique_ptr<BackwardProblem>> problems_;
  std::vector<cuda::PreparedBackward> runs_;
  std::vector<std::unique_ptr<library::LibraryBackward>> libraries_;
  std::vector<cuda::DeviceMemory> workspaces_;
};

void time_shape(Bench& bench, const AttentionCase& what) {
  BackwardMatch match(bench, what);
  std::vector<Contender> contenders = {match.of_ours()};
  match.add_library(what, contenders);
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, kSets);
  const double own_us = timings.front().median_us;
  const BackwardProblem::Comparison comparison = match.compare();
  std::vector<std::pair<std::string, Cell>> cells = {{"us", own_us},
                                                     {"TFLOP/s", flops_of(what) / own_us * 1e-6},
                                                     {"spread", timings.front().spread},
                                                     {"worst / bound", comparison.worst}};
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    cells.emplace_back(contenders[i].name + " us", timings[i].median_us);
    cells.emplace_back(contenders[i].name + " ratio", timings[i].median_us / own_us);
  }
  bench.report().add_check(kBackward, what.name, comparison.wrong, std::move(cells));
}

// The work of a rank at a time, added to earlier results: in a ring, or with a part of the heads.
std::vector<AttentionCase> block_pairs() {
  struct Size {
    std::int64_t rows, heads, kv_heads;
  };
  std::vector<AttentionCase> pairs;
  for (const Size& size : {Size{1024, 32, 8}, {4096, 32, 8}, {1024, 4, 1}, {4096, 4, 1}}) {
    AttentionCase pair;
    pair.rows = pair.keys = size.rows;
    pair.heads = size.heads;
    pair.kv_heads = size.kv_heads;
    pair.carried = pair.packed = true;
    pair.name =
        fmt::format("pair {} d 128 {}/{} full, carried", size.rows, size.heads, size.kv_heads);
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace

void time_backward(Bench& bench) {
  std::vector<AttentionCase> shapes = attention_shapes();
  for (AttentionCase& pair : block_pairs()) shapes.push_back(std::move(pair));
  for (const AttentionCase& what : shapes) {
    if (bench.report().begins(kBackward, what.name)) time_shape(bench, what);
  }
}

}  // namespace harpe::bench
