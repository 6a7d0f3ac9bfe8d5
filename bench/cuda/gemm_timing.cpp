#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/gemm_problem.h"
#include "bench/cuda/gemm_runner.h"
#include "bench/cuda/gemm_shapes.h"
#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::bench {
namespace {

constexpr const char* kGemm = "gemm";
constexpr int kSets = 2;            // input sets, in rotation
constexpr int kTryRounds = 5;       // for candidates that are only ranked
constexpr std::int64_t kRows = 96;  // rows checked per GEMM

using device::GemmConfig;

// One shape with its inputs, Harpe's kernels and the library's.
class GemmMatch {
 public:
  GemmMatch(Bench& bench, const GemmCase& what) : bench_(&bench), what_(what) {
    for (int set = 0; set < kSets; ++set) {
      problems_.push_back(std::make_unique<GemmProblem>(
          bench.gpu(), bench.gpu(), what, bench.options().seed + 10U * set, bench.stream()));
      problems_.back()->sample_rows(kRows);
    }
  }

  // The library's GEMM, or none.
  [[nodiscard]] std::unique_ptr<library::LibraryGemm> library() const {
    const auto& cublaslt = bench_->cublaslt();
    if (!cublaslt.ok()) return nullptr;
    const GemmProblem& first = *problems_.front();
    auto gemm = cublaslt->prepare({.m = what_.m,
                                   .n = what_.n,
                                   .k = what_.k,
                                   .in = what_.in,
                                   .out = what_.out,
                                   .layout = what_.layout,
                                   .m_major = what_.m_major,
                                   .a_stride = first.a().stride(),
                                   .b_stride = first.b().stride(),
                                   .c_stride = first.c().stride()});
    if (!gemm.ok()) {
      bench_->report().note(gemm.error().reason);
      return nullptr;
    }
    return std::move(gemm).value();
  }

  [[nodiscard]] Contender of_library(const library::LibraryGemm& gemm, int algorithm) const {
    return {.name = fmt::format("algorithm {}", algorithm),
            .call = [this, &gemm, algorithm](int set, CUstream stream) {
              const GemmProblem& problem = *problems_[static_cast<std::size_t>(set)];
              HP_CHECK(gemm.launch(algorithm, problem.a().address(), problem.b().address(),
                                   problem.c().address(), stream),
                       "cuBLASLt refused an algorithm of its own");
            }};
  }

  [[nodiscard]] Contender of_ours(const cuda::GemmChoice& choice) {
    auto& runners = prepared_.emplace_back();
    for (const auto& problem : problems_)
      runners.emplace_back(bench_->gpu(), problem->spec(), choice);
    return {.name = fmt::format("{} {} full, {} parts", describe(choice.config), choice.full_tiles,
                                choice.parts),
            .call = [&runners](int set, CUstream stream) {
              runners[static_cast<std::size_t>(set)].launch(stream);
            }};
  }

  [[nodiscard]] cuda::GemmSpec spec() const { return problems_.front()->spec(); }

  // Checks the output of one call.
  [[nodiscard]] std::string wrong_in(const Contender& contender, VerdictBox& verdict) {
    CUstream const stream = bench_->stream();
    problems_.front()->reset(stream);
    verdict.clear(stream);
    contender.call(0, stream);
    problems_.front()->check(verdict.device(), stream);
    return describe(verdict.read(stream), what_.n);
  }

 private:
  Bench* bench_;
  GemmCase what_;
  std::vector<std::unique_ptr<GemmProblem>> problems_;
  std::deque<std::vector<GemmRunner>> prepared_;
};

std::size_t fastest(const std::vector<Timing>& timings) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < timings.size(); ++i) {
    if (timings[i].median_us < timings[best].median_us) best = i;
  }
  return best;
}

int best_algorithm(Bench& bench, const GemmMatch& match, const library::LibraryGemm& gemm) {
  std::vector<Contender> all;
  for (int i = 0; i < gemm.algorithms(); ++i) all.push_back(match.of_library(gemm, i));
  return static_cast<int>(fastest(bench.stopwatch().time(all, kTryRounds, kSets)));
}

// The last tiles cut as the model chooses, and uncut.
std::vector<cuda::GemmChoice> cuts_of(const cuda::GemmSpec& spec, const GemmConfig& config,
                                      int processors) {
  std::vector<cuda::GemmChoice> cuts = {cuda::cut_gemm(spec, config, processors)};
  if (cuts.front().parts == 1 || config.few_rows) return cuts;
  GemmConfig whole = config;
  whole.cuts = false;
  cuts.push_back(cuda::cut_gemm(spec, whole, processors));
  cuts.back().config = config;
  return cuts;
}

// The choice of choose_gemm, or the fastest of all variants with several cuts.
std::vector<cuda::GemmChoice> choices(Bench& bench, const std::string& name, GemmMatch& match) {
  const cuda::GemmSpec spec = match.spec();
  const int processors = bench.gpu().processors();
  std::vector<cuda::GemmChoice> chosen = {cuda::choose_gemm(spec, processors)};
  if (!bench.options().all_variants) return chosen;
  std::vector<cuda::GemmChoice> candidates;
  std::vector<Contender> contenders;
  for (const GemmConfig& config : cuda::gemm_configs(spec)) {
    for (cuda::GemmChoice choice : cuts_of(spec, config, processors)) {
      for (const int group : {4, 8, 16}) {
        choice.group = group;
        candidates.push_back(choice);
        contenders.push_back(match.of_ours(choice));
      }
    }
  }
  const auto timings = bench.stopwatch().time(contenders, kTryRounds, kSets);
  chosen.push_back(candidates[fastest(timings)]);
  for (std::size_t i = 0; i < timings.size(); ++i) {
    bench.report().add({.experiment = "gemm variants",
                        .name = name,
                        .cells = {{"variant", contenders[i].name},
                                  {"group", std::int64_t{candidates[i].group}},
                                  {"us", timings[i].median_us}}});
  }
  return chosen;
}

void time_shape(Bench& bench, const GemmCase& what) {
  GemmMatch match(bench, what);
  std::vector<Contender> contenders;
  for (const cuda::GemmChoice& choice : choices(bench, what.name, match)) {
    contenders.push_back(match.of_ours(choice));
  }
  const std::unique_ptr<library::LibraryGemm> gemm = match.library();
  if (gemm != nullptr && gemm->algorithms() > 0) {
    contenders.push_back(match.of_library(*gemm, best_algorithm(bench, match, *gemm)));
  }
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, kSets);
  VerdictBox verdict(bench.gpu());
  const double flops =
      2.0 * static_cast<double>(what.m) * static_cast<double>(what.n) * static_cast<double>(what.k);
  Row row = {.experiment = kGemm, .name = what.name, .cells = {}};
  row.cells = {{"m", what.m},
               {"n", what.n},
               {"k", what.k},
               {"variant", contenders.front().name},
               {"us", timings.front().median_us},
               {"TFLOP/s", flops / timings.front().median_us * 1e-6},
               {"spread", timings.front().spread}};
  if (bench.options().all_variants) {
    row.cells.emplace_back("best variant", contenders[1].name);
    row.cells.emplace_back("best us", timings[1].median_us);
  }
  if (gemm != nullptr && gemm->algorithms() > 0) {
    row.cells.emplace_back("cuBLASLt us", timings.back().median_us);
    row.cells.emplace_back("ratio", timings.back().median_us / timings.front().median_us);
    row.cells.emplace_back("cuBLASLt wrong", match.wrong_in(contenders.back(), verdict));
  }
  bench.report().add_check(kGemm, what.name, match.wrong_in(contenders.front(), verdict),
                           std::move(row.cells));
}

}  // namespace

void time_gemm(Bench& bench) {
  for (const GemmCase& what : shapes_of(bench.options(), gemm_shapes())) {
    if (bench.report().begins(kGemm, what.name)) time_shape(bench, what);
  }
}

}  // namespace harpe::bench
