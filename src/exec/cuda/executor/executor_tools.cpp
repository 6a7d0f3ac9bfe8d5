#include "exec/cuda/executor/executor_tools.h"

#include <set>
#include <utility>

#include "exec/cuda/executor/checks.h"
#include "exec/cuda/executor/together.h"

namespace harpe::cuda {

Checked<ExecutorTools> open_tools(const Plan& plan, const CudaOptions& options) {
  std::shared_ptr<const DriverApi> driver = options.driver;
  if (driver == nullptr) {
    HP_TRY(driver, open_driver());
  }
  HP_TRY(const std::vector<GpuPart> gpus, gpus_of(*driver, plan.mesh.ranks(), options));
  std::set<DeviceId> used;
  for (const GpuPart& gpu : gpus) used.insert(gpu.gpu);
  const bool is_shared = used.size() < gpus.size();
  std::vector<Device> devices;
  for (const GpuPart& gpu : gpus) {
    HP_TRY(Device device, Device::open(driver, gpu));
    devices.push_back(std::move(device));
  }
  HP_TRY(Nvrtc compiler, Nvrtc::open(options.nvrtc, options.cuda_folders));
  return ExecutorTools{.driver = std::move(driver),
                       .devices = std::move(devices),
                       .compiler = std::move(compiler),
                       .shares_gpus = options.launch ? options.share_gpus : is_shared,
                       .divides_gpus = options.divide_gpus};
}

Checked<Peers> peers_of(const ExecutorTools& tools, std::optional<processes::ProcessGroup>& group,
                        std::int64_t bytes, std::int32_t signals) {
  if (group) {
    return Peers::join({.device = tools.devices.front(), .arena_bytes = bytes, .flags = signals},
                       group->exchange());
  }
  return Peers::open({.devices = tools.devices, .arena_bytes = bytes, .flags = signals});
}

Checked<Ok> warm_up_collectives(Prepared& prepared, const std::vector<RankProgram>& programs,
                                std::chrono::milliseconds limit) {
  if (prepared.communicators.empty()) return Ok{};
  const auto failure = run_together(
      programs.size(), limit,
      [&](std::size_t at) -> Checked<Ok> {
        const Result<Ok, CudaError> current = programs[at].device().make_current();
        if (!current.ok()) return to_diag(current.error());
        return programs[at].warm_up();
      },
      [&] { prepared.communicators.abort(); });
  if (failure) return failure->why;
  return Ok{};
}

}  // namespace harpe::cuda
