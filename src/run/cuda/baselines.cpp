#include "run/baselines.h"

#include <algorithm>
#include <utility>

#include "compile/library_operators.h"
#include "measure/baselines/baselines.h"
#include "run/cuda/cuda_gpus.h"

namespace harpe {
namespace {

std::vector<std::int64_t> shape_by_name(const Program& program, const std::string& name) {
  const Buffer* const buffer = find_buffer(program, name);
  return buffer == nullptr ? std::vector<std::int64_t>() : shape_of(program, *buffer);
}

library::Subject experts_of(const Program& program, const TensorMap& inputs) {
  library::Subject subject{.op = program.name};
  const std::vector<std::int64_t> x = shape_by_name(program, "x");
  const std::vector<std::int64_t> up = shape_by_name(program, "w1");
  const std::vector<std::int64_t> index = shape_by_name(program, "index");
  const auto router = inputs.find("router");
  if (x.size() != 2 || up.size() != 3 || index.size() != 2 || router == inputs.end()) {
    return subject;
  }
  subject.dtype = find_buffer(program, "x")->dtype;
  subject.tokens = x[0];
  subject.hidden = x[1];
  subject.experts = up[0];
  subject.inter = up[2];
  subject.topk = index[1];
  subject.router = &router->second;
  return subject;
}

library::Subject subject_of(const Program& program, const std::vector<std::string>& parameters,
                            const TensorMap& inputs) {
  if (program.name == "moe") return experts_of(program, inputs);
  library::Subject subject{.op = program.name};
  const bool multiplies = program.name.find("gemm") != std::string::npos;
  const std::vector<std::int64_t> left = shape_by_name(program, multiplies ? "a" : "q");
  const std::vector<std::int64_t> right = shape_by_name(program, multiplies ? "b" : "k");
  if (left.size() < 2 || right.size() < 2) return subject;
  subject.dtype = find_buffer(program, multiplies ? "a" : "q")->dtype;
  if (multiplies) {
    subject.m = left[0];
    subject.k = left[1];
    subject.n = right[1];
    return subject;
  }
  subject.batch = left[0];
  subject.heads = left[left.size() - 2];
  subject.head_dim = left.back();
  subject.seq = right[1];
  subject.kv_heads = right[2];
  subject.causal = std::ranges::find(parameters, "causal=true") != parameters.end();
  return subject;
}

class CudaBaselines final : public Baselines {
 public:
  explicit CudaBaselines(std::shared_ptr<library::Team> team) : team_(std::move(team)) {}

  [[nodiscard]] std::string describe() const override { return team_->describe(); }

  [[nodiscard]] Checked<std::vector<LibraryWay>> ways(const Program& program,
                                                      const std::vector<std::string>& parameters,
                                                      const TensorMap& inputs) const override {
    HP_REQUIRE_OK(check_library_ways(program, parameters));
    std::vector<LibraryWay> ways;
    const library::Subject subject = subject_of(program, parameters, inputs);
    for (library::Candidate& one : library::make_baselines(team_, subject)) {
      ways.push_back({one.name, [make = std::move(one.make)]() -> Checked<LibraryExecutor> {
                        HP_TRY(std::unique_ptr<library::Baseline> baseline, make());
                        library::Baseline* const timed = baseline.get();
                        return LibraryExecutor{std::move(baseline),
                                               [timed](std::int64_t executions) {
                                                 return timed->time_arithmetic(executions);
                                               }};
                      }});
    }
    return ways;
  }

 private:
  std::shared_ptr<library::Team> team_;
};

}  // namespace

Checked<std::unique_ptr<Baselines>> CudaGpus::open_baselines(int ranks,
                                                             const CudaPlaces& places) const {
  HP_TRY(std::shared_ptr<library::Team> team,
         library::Team::open({.ranks = ranks,
                              .kernel_cache = places.kernel_cache,
                              .nvrtc = places.nvrtc,
                              .cuda_folders = places.cuda_folders,
                              .library_folders = places.library_folders}));
  return std::unique_ptr<Baselines>(std::make_unique<CudaBaselines>(std::move(team)));
}

}  // namespace harpe
