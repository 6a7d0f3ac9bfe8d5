#include "driver/baselines.h"

#include <algorithm>

#include "driver/options.h"
#ifdef HARPE_WITH_CUDA
#include "exec/cuda/library/baselines.h"
#endif

namespace harpe {

#ifdef HARPE_WITH_CUDA

namespace {

std::vector<std::int64_t> shape_by_name(const Program& program, const std::string& name) {
  const Buffer* const buffer = find_buffer(program, name);
  return buffer == nullptr ? std::vector<std::int64_t>() : shape_of(program, *buffer);
}

// Parameters that none of the libraries' ways knows.
bool is_special(const std::vector<std::string>& parameters) {
  static const std::vector<std::string> kSpecial = {
      "window=", "prefix=", "packed=", "page=", "ragged=", "v_head_dim=", "kv_seq="};
  return std::ranges::any_of(parameters, [](const std::string& word) {
    return std::ranges::any_of(kSpecial,
                               [&](const std::string& name) { return word.starts_with(name); });
  });
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

}  // namespace

struct Baselines::State {
  std::shared_ptr<library::Team> team;
};

Checked<Baselines> Baselines::open(const BaselineRequest& request) {
  prepare_cuda_environment();
  HP_TRY(std::shared_ptr<library::Team> team,
         library::Team::open({.ranks = request.ranks,
                              .kernel_cache = request.backend.kernel_cache,
                              .nvrtc = request.backend.nvrtc,
                              .cuda_folders = cuda_folders(),
                              .library_folders = request.folders}));
  Baselines opened;
  opened.state_ = std::make_shared<State>(State{std::move(team)});
  return opened;
}

std::string Baselines::describe() const { return state_->team->describe(); }

std::vector<LibraryWay> Baselines::ways(const Program& program,
                                        const std::vector<std::string>& parameters,
                                        const TensorMap& inputs) const {
  std::vector<LibraryWay> ways;
  const library::Subject subject = subject_of(program, parameters, inputs);
  const bool half = subject.dtype == DType::BF16 || subject.dtype == DType::F16;
  if (is_special(parameters) || !half) {
    const std::string reason = "the libraries' ways know no such sizes, masks or types";
    ways.push_back(
        {"libraries",
         make_diag(DiagCode::G081, {{"what", "`" + program.name + "`"}, {"reason", reason}}),
         {}});
    return ways;
  }
  for (library::Candidate& one : library::make_baselines(state_->team, subject)) {
    if (!one.baseline.ok()) {
      ways.push_back({one.name, one.baseline.error(), {}});
      continue;
    }
    std::unique_ptr<library::Baseline> baseline = std::move(one.baseline).value();
    const library::Baseline* const timed = baseline.get();
    ways.push_back({one.name, std::unique_ptr<Executor>(std::move(baseline)),
                    [timed] { return timed->arithmetic_us(); }});
  }
  return ways;
}

Checked<int> count_gpus() {
  prepare_cuda_environment();
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  return cuda::count_devices(*driver);
}

#else

struct Baselines::State {};

Checked<Baselines> Baselines::open(const BaselineRequest&) { return make_diag(DiagCode::G001, {}); }

std::string Baselines::describe() const { return ""; }

std::vector<LibraryWay> Baselines::ways(const Program&, const std::vector<std::string>&,
                                        const TensorMap&) const {
  return {};
}

Checked<int> count_gpus() { return make_diag(DiagCode::G001, {}); }

#endif

}  // namespace harpe
