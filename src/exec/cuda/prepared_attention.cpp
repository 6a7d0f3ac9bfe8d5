#include "exec/cuda/prepared_attention.h"

#include <cstddef>
#include <span>

#include "exec/cuda/attention_variants.h"

namespace harpe::cuda {
namespace {

using device::AttentionArgs;
using device::AttentionConfig;

}  // namespace

Checked<PreparedAttention> PreparedAttention::make(KernelLibrary& library,
                                                   const AttentionSpec& spec,
                                                   const AttentionConfig& config,
                                                   std::optional<int> blocks) {
  const Device& device = library.device();
  const int at_once = blocks.value_or(device.facts().multiprocessors);
  HP_REQUIRE_OK(check(spec, at_once));
  if (auto current = device.make_current(); !current.ok()) return to_diag(current.error());
  HP_TRY(const LoadedKernel* kernel, library.load(attention_variant(config)));
  PreparedAttention attention(library, *kernel, config);
  AttentionPlan plan = plan_attention(spec, config, at_once);
  AttentionArgs& args = plan.args;
  for (std::size_t i = 0; i < plan.maps.size(); ++i) {
    HP_TRY(map_of(args, i), encode_map(device.driver(), plan.maps[i]));
  }
  HP_TRY(attention.ticket_, DeviceMemory::zeros(device, 1));
  args.ticket = reinterpret_cast<std::uint32_t*>(attention.ticket_->address());
  if (!spec.copies.empty()) {
    HP_TRY(attention.jobs_, DeviceMemory::copy_of(device, std::as_bytes(std::span(spec.copies))));
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
