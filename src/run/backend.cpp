#include "run/backend.h"

#include "compile/certify_launches.h"
#include "compile/launches.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/launch_target.h"
#include "exec/cuda/target/launch_target.h"
#include "run/gpus.h"
#include "run/host.h"
#include "run/hosts.h"

namespace harpe {
namespace {

Checked<Ok> check_one_host(const BackendRequest& request) {
  const auto obstacle = find_gpu_obstacle(request.launch ? request.launch->hosts() : 1);
  if (!obstacle) return Ok{};
  return make_diag(DiagCode::N016, {{"variable", request.launch->local_ranks_by},
                                    {"reason", "says where: " + *obstacle}});
}

}  // namespace

Site find_site(Backend backend) {
  if (backend == Backend::Cpu) return {.backend = backend, .processor = describe_host()};
  const Checked<const Gpus*> gpus = find_gpus();
  return {.backend = backend, .processor = gpus.ok() ? (*gpus)->name() : ""};
}

Checked<std::unique_ptr<launch::Target>> make_target(Backend backend, bool takes_turns) {
  std::unique_ptr<launch::Target> target;
  if (backend == Backend::Cpu) {
    target = std::make_unique<cpu::LaunchTarget>(takes_turns);
    return target;
  }
  target = std::make_unique<cuda::LaunchTarget>(cuda::DescribedTarget{.takes_turns = takes_turns});
  return target;
}

Checked<std::unique_ptr<Executor>> make_executor(const Plan& plan, const BackendRequest& request) {
  if (request.backend == Backend::Cuda) {
    HP_REQUIRE_OK(check_one_host(request));
    HP_TRY(const Gpus* const gpus, find_gpus());
    return gpus->make_executor(plan, request);
  }
  CpuOptions options;
  options.lose_worker_at = request.lose_at;
  if (request.delay_seed) options.delay_seed = *request.delay_seed;
  options.launch = request.launch;
  options.products = request.uses_libraries ? Products::Libraries : Products::OwnLoops;
  options.provider = request.provider.value_or(options.provider);
  options.wait_limit = request.wait_limit;
  options.warn = request.warn;
  if (request.target == Backend::Cpu) return make_cpu_executor(plan, options);
  HP_TRY(const launch::LaunchPlan launches, make_gpu_launches(plan));
  HP_REQUIRE_OK(prove(plan, launches));
  return make_cpu_executor(plan, launches, options);
}

}  // namespace harpe
