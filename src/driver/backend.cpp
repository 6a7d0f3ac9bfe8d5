#include "driver/backend.h"

#include "driver/certify_launches.h"
#include "driver/hosts.h"
#include "driver/profile_host.h"
#include "exec/cpu/cpu_executor.h"
#ifdef HARPE_WITH_CUDA
#include "exec/cuda/device.h"
#include "exec/cuda/executor/cuda_executor.h"
#endif

namespace harpe {
namespace {

#ifdef HARPE_WITH_CUDA
Checked<std::unique_ptr<Executor>> make_on_gpus(const Plan& plan, const BackendRequest& request) {
  return make_cuda_executor(plan, {.share_gpus = request.share_gpus,
                                   .kernel_cache = request.places.kernel_cache,
                                   .nvrtc = request.places.nvrtc,
                                   .cuda_folders = request.places.cuda_folders,
                                   .collectives = request.collectives,
                                   .library_folders = request.places.library_folders,
                                   .launch = request.launch,
                                   .network = {.provider = request.provider.value_or("shared"),
                                               .interface = request.interface},
                                   .wait_limit = request.wait_limit,
                                   .trace = request.trace,
                                   .warn = request.warn,
                                   .prove =
                                       [&plan](const launch::LaunchPlan& launches) {
                                         return prove_if_modelled(plan, launches);
                                       },
                                   .drop_signal_of = request.lose_at,
                                   .stray_at = request.stray_at,
                                   .delay_seed = request.delay_seed});
}

std::string name_of_gpu() {
  const auto driver = cuda::open_driver();
  if (!driver.ok()) return "";
  const Checked<std::string> name = cuda::name_of(**driver, cuda::DeviceId(0));
  return name.ok() ? *name : "";
}
#else
Checked<std::unique_ptr<Executor>> make_on_gpus(const Plan&, const BackendRequest&) {
  return make_diag(DiagCode::G001, {});
}

std::string name_of_gpu() { return ""; }
#endif

Checked<Ok> check_one_host(const BackendRequest& request) {
  const auto obstacle = find_gpu_obstacle(request.launch ? request.launch->hosts() : 1);
  if (!obstacle) return Ok{};
  return make_diag(DiagCode::N016, {{"variable", request.launch->local_ranks_by},
                                    {"reason", "says where: " + *obstacle}});
}

}  // namespace

std::string_view print(Backend backend) { return backend == Backend::Cuda ? "cuda" : "cpu"; }

std::string processor_of(Backend backend) {
  return backend == Backend::Cuda ? name_of_gpu() : describe_host();
}

Checked<std::unique_ptr<Executor>> make_executor(const Plan& plan, const BackendRequest& request) {
  if (request.backend == Backend::Cuda) {
    HP_REQUIRE_OK(check_one_host(request));
    return make_on_gpus(plan, request);
  }
  CpuOptions options;
  options.lose_worker_at = request.lose_at;
  if (request.delay_seed) options.delay_seed = *request.delay_seed;
  options.launch = request.launch;
  options.provider = request.provider.value_or(options.provider);
  options.wait_limit = request.wait_limit;
  options.warn = request.warn;
  return make_cpu_executor(plan, options);
}

}  // namespace harpe
