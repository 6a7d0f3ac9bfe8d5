#include "exec/cuda/prepared_attention.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "exec/cuda/attention_variants.h"

namespace harpe::cuda {
namespace {

using device::AttentionArgs;
using device::AttentionConfig;

// A counter that is zero.
Checked<DeviceMemory> place_ticket(const Device& device) {
  HP_TRY(DeviceMemory memory, DeviceMemory::allocate(device, sizeof(std::uint32_t)));
  const DriverApi& driver = device.driver();
  HP_REQUIRE_OK(driver_call(driver, "cuMemsetD32Async",
                            driver.cuMemsetD32Async(memory.address(), 0, 1, nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return memory;
}

Checked<std::optional<DeviceMemory>> place_jobs(const Device& device,
                                                const std::vector<device::CopyJob>& jobs) {
  if (jobs.empty()) return std::optional<DeviceMemory>();
  const std::size_t bytes = jobs.size() * sizeof(device::CopyJob);
  HP_TRY(DeviceMemory memory, DeviceMemory::allocate(device, static_cast<std::int64_t>(bytes)));
  const DriverApi& driver = device.driver();
  HP_REQUIRE_OK(
      driver_call(driver, "cuMemcpyHtoDAsync",
                  driver.cuMemcpyHtoDAsync(memory.address(), jobs.data(), bytes, nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return std::optional<DeviceMemory>(std::move(memory));
}

}  // namespace

Checked<PreparedAttention> PreparedAttention::make(KernelLibrary& library,
                                                   const AttentionSpec& spec,
                                                   const AttentionConfig& config) {
  HP_REQUIRE_OK(check(spec));
  const Device& device = library.device();
  if (auto current = device.make_current(); !current.ok()) return to_diag(current.error());
  HP_TRY(const LoadedKernel* kernel, library.load(attention_variant(config)));
  PreparedAttention attention(library, *kernel, config);
  AttentionPlan plan = plan_attention(spec, config, device.facts().multiprocessors);
  AttentionArgs& args = plan.args;
  for (std::size_t i = 0; i < plan.maps.size(); ++i) {
    HP_TRY(map_of(args, i), encode_map(device.driver(), plan.maps[i]));
  }
  HP_TRY(attention.ticket_, place_ticket(device));
  args.ticket = reinterpret_cast<std::uint32_t*>(attention.ticket_->address());
  HP_TRY(attention.jobs_, place_jobs(device, spec.copies));
  if (attention.jobs_.has_value()) {
    args.copies = reinterpret_cast<const device::CopyJob*>(attention.jobs_->address());
  }
  attention.args_ = std::make_unique<AttentionArgs>(args);
  attention.shape_.grid[0] = static_cast<std::uint32_t>(plan.blocks);
  return attention;
}

Result<Ok, CudaError> PreparedAttention::launch(CUstream stream) const {
  return cuda::launch(library_->device().driver(), *kernel_, shape_, stream, *args_);
}

}  // namespace harpe::cuda
