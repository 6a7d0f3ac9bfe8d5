#include "driver/baselines.h"

#include <algorithm>

#include "driver/bench_cases.h"
#ifdef HARPE_WITH_CUDA
#include "exec/cuda/library/baselines.h"
#endif

namespace harpe {
namespace {

// Parameters that none of the libraries' ways knows.
bool is_special(const std::vector<std::string>& parameters) {
  static const std::vector<std::string> kSpecial = {
      "window=", "prefix=", "packed=", "page=", "ragged=", "v_head_dim=", "kv_seq="};
  return std::ranges::any_of(parameters, [](const std::string& word) {
    return std::ranges::any_of(kSpecial,
                               [&](const std::string& name) { return word.starts_with(name); });
  });
}

// Of a type of two bytes; masks on data are whole numbers.
bool is_known_input(const Buffer& buffer) {
  const bool is_half = buffer.dtype == DType::BF16 || buffer.dtype == DType::F16;
  return is_half ||
         (buffer.dtype == DType::F32 && (buffer.name == "router" || buffer.name == "lse"));
}

}  // namespace

Checked<Ok> check_library_ways(const Program& program, const std::vector<std::string>& parameters) {
  const std::vector<std::string>& known = bench_suites();
  const auto refuse = [&](const std::string& reason) {
    return make_diag(DiagCode::G081, {{"what", "`" + program.name + "`"}, {"reason", reason}});
  };
  if (std::ranges::find(known, program.name) == known.end()) {
    return refuse("no way of the libraries' is known");
  }
  const auto buffers = buffers_of(program);
  const bool is_known = std::ranges::all_of(buffers, [](const Buffer* buffer) {
    return buffer->role != Role::In || is_known_input(*buffer);
  });
  if (is_known && !is_special(parameters)) return Ok{};
  return refuse("the libraries' ways know no such sizes, masks or types");
}

std::vector<std::string> library_outputs(const Program& program) {
  std::vector<std::string> names;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role == Role::Out && buffer->name != "lse") names.push_back(buffer->name);
  }
  return names;
}

#ifdef HARPE_WITH_CUDA

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

}  // namespace

struct Baselines::State {
  std::shared_ptr<library::Team> team;
};

Checked<Baselines> Baselines::open(const BaselineRequest& request) {
  const CudaPlaces& places = request.backend.places;
  HP_TRY(std::shared_ptr<library::Team> team,
         library::Team::open({.ranks = request.ranks,
                              .kernel_cache = places.kernel_cache,
                              .nvrtc = places.nvrtc,
                              .cuda_folders = places.cuda_folders,
                              .library_folders = places.library_folders}));
  Baselines opened;
  opened.state_ = std::make_shared<State>(State{std::move(team)});
  return opened;
}

std::string Baselines::describe() const { return state_->team->describe(); }

Checked<std::vector<LibraryWay>> Baselines::ways(const Program& program,
                                                 const std::vector<std::string>& parameters,
                                                 const TensorMap& inputs) const {
  HP_REQUIRE_OK(check_library_ways(program, parameters));
  std::vector<LibraryWay> ways;
  const library::Subject subject = subject_of(program, parameters, inputs);
  for (library::Candidate& one : library::make_baselines(state_->team, subject)) {
    ways.push_back({one.name, [make = std::move(one.make)]() -> Checked<LibraryExecutor> {
                      HP_TRY(std::unique_ptr<library::Baseline> baseline, make());
                      const library::Baseline* const timed = baseline.get();
                      return LibraryExecutor{std::move(baseline),
                                             [timed] { return timed->arithmetic_us(); }};
                    }});
  }
  return ways;
}

Checked<int> count_gpus() {
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  return cuda::count_devices(*driver);
}

#else

struct Baselines::State {};

Checked<Baselines> Baselines::open(const BaselineRequest&) { return make_diag(DiagCode::G001, {}); }

std::string Baselines::describe() const { return ""; }

Checked<std::vector<LibraryWay>> Baselines::ways(const Program&, const std::vector<std::string>&,
                                                 const TensorMap&) const {
  return make_diag(DiagCode::G001, {});
}

Checked<int> count_gpus() { return make_diag(DiagCode::G001, {}); }

#endif

}  // namespace harpe
