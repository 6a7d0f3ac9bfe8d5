#include <fmt/format.h>

#include <deque>
#include <memory>
#include <vector>

#include "bench/cuda/attention_shapes.h"
#include "bench/cuda/gradient_experiments.h"
#include "bench/cuda/gradient_problem.h"
#include "bench/cuda/must.h"
#include "exec/cuda/prepared_gradient.h"

namespace harpe::bench {
namespace {

constexpr const char* kBackward = "backward";
constexpr int kSets = 2;               // of inputs, in rotation
constexpr std::int64_t kSamples = 64;  // rows of each gradient that are compared

// Five products, of all pairs or of half of them; what the kernel computes twice does not count.
double flops_of(const AttentionCase& what) {
  const double all = 10.0 * static_cast<double>(what.heads) * static_cast<double>(what.rows) *
                     static_cast<double>(what.keys) * static_cast<double>(what.query_dim);
  return what.causal ? all / 2 : all;
}

class GradientMatch {
 public:
  GradientMatch(Bench& bench, const AttentionCase& what) : bench_(&bench) {
    for (int set = 0; set < kSets; ++set) {
      const auto& problem = problems_.emplace_back(std::make_unique<GradientProblem>(
          bench.gpu(), what, bench.options().seed + static_cast<unsigned>(set) * 10U,
          bench.stream()));
      runs_.push_back(must(cuda::PreparedGradient::make(bench.gpu().library(), problem->spec())));
    }
  }

  [[nodiscard]] Contender of_ours() {
    return {.name = "gradient", .call = [this](int set, CUstream stream) {
              must(runs_[static_cast<std::size_t>(set)].launch(stream));
            }};
  }

  [[nodiscard]] GradientProblem::Comparison compare() const {
    CUstream const stream = bench_->stream();
    const GradientProblem& problem = *problems_.front();
    problem.reset(stream);
    must(runs_.front().launch(stream));
    return problem.compare(problem.read_results(stream), kSamples, stream);
  }

 private:
  Bench* bench_;
  std::vector<std::unique_ptr<GradientProblem>> problems_;
  std::vector<cuda::PreparedGradient> runs_;
};

void time_shape(Bench& bench, const AttentionCase& what) {
  GradientMatch match(bench, what);
  const std::vector<Contender> contenders = {match.of_ours()};
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, kSets);
  const double own_us = timings.front().median_us;
  const GradientProblem::Comparison comparison = match.compare();
  bench.report().add_check(kBackward, what.name, comparison.wrong,
                           {{"us", own_us},
                            {"TFLOP/s", flops_of(what) / own_us * 1e-6},
                            {"spread", timings.front().spread},
                            {"worst / bound", comparison.worst}});
}

// What a rank of a ring computes at a time, onto what it has.
std::vector<AttentionCase> block_pairs() {
  std::vector<AttentionCase> pairs;
  for (const std::int64_t rows : {1024, 4096}) {
    AttentionCase pair;
    pair.rows = pair.keys = rows;
    pair.heads = 32;
    pair.kv_heads = 8;
    pair.carried = pair.packed = true;
    pair.name = fmt::format("pair {} d 128 32/8 full, carried", rows);
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace

void time_gradient(Bench& bench) {
  std::vector<AttentionCase> shapes = attention_shapes();
  for (AttentionCase& pair : block_pairs()) shapes.push_back(std::move(pair));
  for (const AttentionCase& what : shapes) {
    if (bench.report().begins(kBackward, what.name)) time_shape(bench, what);
  }
}

}  // namespace harpe::bench
