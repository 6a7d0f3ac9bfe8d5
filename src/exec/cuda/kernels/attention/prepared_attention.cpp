#include "exec/cuda/kernels/attention/prepared_attention.h"

#include <cstddef>
#include <span>

#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/plain/device/plain_args.h"
#include "exec/cuda/kernels/plain/plain_variants.h"

namespace harpe::cuda {
namespace {

using device::AttentionArgs;
using device::AttentionConfig;

constexpr std::int64_t kFloat = 4;

std::int64_t rows_of(const AttentionSpec& spec) {
  return spec.batch * spec.heads * spec.panels.front().rows;
}

device::Number plain_number(device::Element element) {
  if (element == device::Element::F32) return device::Number::F32;
  return element == device::Element::F16 ? device::Number::F16 : device::Number::BF16;
}

// The spec that computes the states of the parts, dense at address `at`: all outputs, then all
// logarithms.
AttentionSpec states_of_parts(AttentionSpec spec, DeviceAddress at) {
  AttentionPanelSpec& panel = spec.panels.front();
  const std::int64_t outputs = rows_of(spec) * spec.parts * spec.value_dim * kFloat;
  const std::int64_t rows = panel.rows * spec.heads;
  panel.output = {.address = at,
                  .strides = {.batch = rows * spec.value_dim,
                              .row = spec.value_dim,
                              .head = panel.rows * spec.value_dim}};
  panel.lse = {.address = at + static_cast<DeviceAddress>(outputs),
               .strides = {.batch = rows, .row = 1, .head = panel.rows}};
  spec.to_state = true;
  return spec;
}

}  // namespace

Checked<PreparedAttention::Join> PreparedAttention::make_join(KernelLibrary& library,
                                                              const AttentionSpec& spec) {
  constexpr std::int64_t kRowsOfBlock = device::kRowThreads / 32;
  const std::int64_t rows = rows_of(spec);
  HP_TRY(
      DeviceMemory states,
      DeviceMemory::allocate(library.device(), rows * spec.parts * (spec.value_dim + 1) * kFloat));
  HP_TRY(const LoadedKernel* kernel, library.load(plain_variant(PlainKernel::Join, false)));
  const AttentionPanelSpec& panel = spec.panels.front();
  const AttentionPanelSpec made = states_of_parts(spec, states.address()).panels.front();
  Join join{.kernel = kernel, .args = {}, .shape = {}, .states = std::move(states)};
  join.args = {.o = pointer_to<const float>(made.output.address),
               .l = pointer_to<const float>(made.lse.address),
               .to = pointer_to<void>(panel.output.address),
               .lse = pointer_to<float>(panel.lse.address),
               .to_strides = panel.output.strides,
               .lse_strides = panel.lse.strides,
               .to_number = spec.to_state ? device::Number::F32 : plain_number(spec.element),
               .parts = spec.parts,
               .heads = static_cast<std::int32_t>(spec.heads),
               .rows = static_cast<std::int32_t>(panel.rows),
               .columns = static_cast<std::int32_t>(spec.value_dim),
               .all_rows = rows};
  join.shape.grid[0] = static_cast<std::uint32_t>((rows + kRowsOfBlock - 1) / kRowsOfBlock);
  return join;
}

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
  AttentionSpec made = spec;
  if (spec.parts > 1) {
    HP_TRY(attention.join_, make_join(library, spec));
    made = states_of_parts(spec, attention.join_->states.address());
  }
  AttentionPlan plan = plan_attention(made, config, at_once);
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
  const DriverApi& driver = library_->device().driver();
  HP_REQUIRE_OK(cuda::launch(driver, *kernel_, shape_, stream, *args_));
  if (!join_) return Ok{};
  return cuda::launch(driver, *join_->kernel, join_->shape, stream, join_->args);
}

}  // namespace harpe::cuda
