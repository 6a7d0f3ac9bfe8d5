// A GEMM with maps in its kernel, compared with the launches of a plan that does not fuse them.
#include <fmt/format.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/gemm_problem.h"
#include "bench/cuda/gemm_runner.h"
#include "bench/cuda/gemm_shapes.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/kernels/prepared_launches.h"

namespace harpe::bench {
namespace {

constexpr const char* kMaps = "maps gemm";
constexpr int kMapSets = 2;            // of inputs, in rotation
constexpr std::int64_t kMapRows = 96;  // rows checked per GEMM

// One set of operands, C = gelu(A B + row), and the intermediates of a plan without fusion: A B,
// and A B + row, both of C's type.
class MapsProblem {
 public:
  MapsProblem(Bench& bench, const GemmCase& what, std::uint64_t seed)
      : bench_(&bench),
        problem_(bench.gpu(), bench.gpu(), what, seed, bench.stream()),
        product_(bench.gpu().memory(what.m * what.n * 2)),
        biased_(bench.gpu().memory(what.m * what.n * 2)) {
    problem_.sample_rows(kMapRows);
    const int processors = bench.gpu().processors();
    const cuda::GemmSpec spec = problem_.spec();
    fused_.emplace(bench.gpu(), spec, cuda::choose_gemm(spec, processors));
    cuda::GemmSpec alone = spec;
    alone.maps.clear();
    alone.panels.front().map_operands.clear();
    alone.panels.front().c = product_.address();
    alone.panels.front().c_stride = what.n;
    alone_.emplace(bench.gpu(), alone, cuda::choose_gemm(alone, processors));
    const Address row = spec.panels.front().map_operands.front().address;
    add(apply(what, Pointwise::Add, biased_.address(), what.n, product_.address(), row));
    add(apply(what, Pointwise::Gelu, problem_.c().address(), problem_.c().stride(),
              biased_.address(), 0));
  }

  [[nodiscard]] GemmProblem& problem() { return problem_; }
  void launch_fused(CUstream stream) const { fused_->launch(stream); }
  void launch_alone(CUstream stream) const { alone_->launch(stream); }
  void launch_unfused(CUstream stream) const {
    alone_->launch(stream);
    must(maps_.enqueue(stream));
  }

 private:
  // A plan's task: computes all of `to` from rows of `from`, and one row unless it is 0.
  static actions::Apply apply(const GemmCase& what, Pointwise function, Address to,
                              std::int64_t to_stride, Address from, Address row) {
    const DType dtype = what.in == device::Element::F16 ? DType::F16 : DType::BF16;
    const std::array<std::vector<std::int64_t>, 3> strides = {
        std::vector{to_stride}, std::vector{what.n}, std::vector<std::int64_t>{0}};
    actions::Apply apply;
    apply.first = {.function = function,
                   .length = what.n,
                   .to = at<void>(to),
                   .to_dtype = dtype,
                   .to_stride = 1,
                   .a = {.data = at<void>(from), .dtype = dtype, .stride = 1},
                   .b = {.data = at<void>(row), .dtype = dtype, .stride = 1}};
    apply.rows = actions::Rows(std::vector{what.m}, strides);
    return apply;
  }

  void add(const actions::Apply& apply) {
    const int processors = bench_->gpu().processors();
    const cuda::LaunchChoice choice = {
        .nest = "maps", .buffer = "c", .multiprocessors = processors};
    for (const cuda::LaunchSpec& spec : must(cuda::plan_launches(choice, apply))) {
      must(maps_.add({.kernels = bench_->gpu().library(), .multiprocessors = processors}, spec));
    }
  }

  Bench* bench_;
  GemmProblem problem_;
  cuda::DeviceMemory product_;
  cuda::DeviceMemory biased_;
  std::optional<GemmRunner> fused_;
  std::optional<GemmRunner> alone_;
  cuda::Launches maps_;
};

void time_maps(Bench& bench, const GemmCase& what) {
  std::deque<MapsProblem> sets;
  for (std::uint64_t set = 0; set < kMapSets; ++set) {
    sets.emplace_back(bench, what, bench.options().seed + 10 * set);
  }
  const auto contender = [&](const char* name, void (MapsProblem::*launch)(CUstream) const) {
    return Contender{.name = name, .call = [&sets, launch](int set, CUstream stream) {
                       (sets[static_cast<std::size_t>(set)].*launch)(stream);
                     }};
  };
  const std::vector<Contender> contenders = {contender("fused", &MapsProblem::launch_fused),
                                             contender("unfused", &MapsProblem::launch_unfused),
                                             contender("GEMM", &MapsProblem::launch_alone)};
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, kMapSets);
  GemmProblem& problem = sets.front().problem();
  VerdictBox verdict(bench.gpu());
  CUstream const stream = bench.stream();
  problem.reset(stream);
  verdict.clear(stream);
  sets.front().launch_fused(stream);
  problem.check(verdict.device(), stream);
  bench.report().add_check(kMaps, what.name, describe(verdict.read(stream), what.n),
                           {{"fused us", timings[0].median_us},
                            {"unfused us", timings[1].median_us},
                            {"GEMM us", timings[2].median_us},
                            {"unfused / fused", timings[1].median_us / timings[0].median_us},
                            {"fused / GEMM", timings[0].median_us / timings[2].median_us}});
}

}  // namespace

void time_gemm_maps(Bench& bench) {
  for (const GemmCase& what : mapped_shapes()) {
    if (bench.report().begins(kMaps, what.name)) time_maps(bench, what);
  }
}

}  // namespace harpe::bench
