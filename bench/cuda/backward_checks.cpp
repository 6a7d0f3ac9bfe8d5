#include <fmt/format.h>

#include <vector>

#include "bench/cuda/backward_experiments.h"
#include "bench/cuda/backward_problem.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/backward/backward_variants.h"
#include "exec/cuda/kernels/backward/prepared_backward.h"

namespace harpe::bench {
namespace {

constexpr const char* kCheck = "check gradient";
constexpr int kLaunches = 3;

// Several launches must give equal bits; the last is compared. With few SMs there is enough work
// for each without sharing keys.
void run(Bench& bench, const AttentionCase& what, int multiprocessors, std::uint64_t seed) {
  if (!bench.report().begins(kCheck, what.name)) return;
  CUstream const stream = bench.stream();
  const BackwardProblem problem(bench.gpu(), what, seed, stream);
  const auto backward =
      must(cuda::PreparedBackward::make(bench.gpu().library(), problem.spec(), multiprocessors));
  VerdictBox rooms(bench.gpu());
  rooms.clear(stream);
  BackwardResults results;
  bool same = true;
  for (int launch = 0; launch < kLaunches; ++launch) {
    problem.reset(stream);
    must(backward.launch(stream));
    problem.check_rooms(rooms.device(), stream);
    BackwardResults found = problem.read_results(stream);
    same = same && (launch == 0 || found == results);
    results = std::move(found);
  }
  BackwardProblem::Comparison comparison = problem.compare(results, 0, stream);
  std::string& wrong = comparison.wrong;
  if (wrong.empty() && !same) wrong = "launches differ";
  if (const auto altered = rooms.read(stream).altered; wrong.empty() && altered > 0) {
    wrong = fmt::format("{} bytes written outside the output", altered);
  }
  bench.report().add_check(kCheck, what.name, wrong, {{"worst / bound", comparison.worst}});
}

int some_multiprocessors(Draw& draw) { return draw.one_of(std::vector<int>{1, 6, 20, 132}); }

void check_random(Bench& bench) {
  Draw draw(bench.options().seed + 30);
  for (const device::BackwardConfig& config : cuda::backward_configs()) {
    const device::AttentionConfig heads{
        .element = config.element, .query_dim = config.head_dim, .value_dim = config.head_dim};
    for (int turn = 0; turn < bench.times(30); ++turn) {
      AttentionCase what = random_case(draw, heads, turn % 3 == 0 ? 700 : 300);
      what.carried = draw.coin();
      what.name = describe(what);
      run(bench, what, some_multiprocessors(draw), draw.bits());
    }
  }
}

void check_edges(Bench& bench) {
  struct Size {
    std::int64_t rows, keys;
  };
  Draw draw(bench.options().seed + 31);
  for (const device::BackwardConfig& config : cuda::backward_configs()) {
    for (const Size& size :
         {Size{1, 1}, {1, 700}, {129, 1}, {64, 128}, {128, 128}, {256, 256}, {257, 129}}) {
      for (const bool causal : {false, true}) {
        AttentionCase what;
        what.rows = size.rows;
        what.keys = size.keys;
        what.kv_heads = 2;
        what.heads = causal ? 2 : 6;
        what.query_dim = what.value_dim = config.head_dim;
        what.causal = causal;
        what.first_position = size.keys - size.rows;
        what.carried = draw.coin();
        what.packed = draw.coin();
        what.name = "edge " + describe(what);
        run(bench, what, some_multiprocessors(draw), draw.bits());
      }
    }
  }
}

}  // namespace

void check_backward(Bench& bench) {
  check_edges(bench);
  check_random(bench);
}

}  // namespace harpe::bench
