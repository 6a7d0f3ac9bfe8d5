#include "exec/cuda/kernels/attention/cudnn_shape.h"
#include "exec/cuda/kernels/attention/prepared_attention.h"
#include "exec/cuda/kernels/attention/prepared_decode.h"
#include "exec/cuda/kernels/prepared_order.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

// Refuses a spec whose mask or results cuDNN does not have (library::shape_of).
Checked<std::unique_ptr<PreparedKernel>> prepare_cudnn(const AttentionSpec& spec,
                                                       const LaunchTools& tools) {
  HP_CHECK(tools.leaves != nullptr, "libraries do leaves of plans alone");
  const Result<library::AttentionShape, library::Missing> shape = library::shape_of(spec);
  if (!shape.ok()) return tools.place.refuse(shape.error().reason);
  HP_TRY(const library::Cudnn* const library, tools.leaves->attention(tools.place));
  const AttentionPanelSpec& panel = spec.panels.front();
  const AttentionChunkSpec& chunk = spec.chunks.front();
  auto made = library->prepare(*shape, panel.lse.address != 0);
  if (!made.ok()) return tools.place.refuse(made.error().reason);
  const std::shared_ptr<const library::LibraryAttention> kernel = std::move(made).value();
  DeviceAddress space = 0;
  if (kernel->workspace_bytes() > 0) {
    HP_TRY(space, tools.leaves->reserve(kernel->workspace_bytes()));
  }
  const library::AttentionAddresses at{.q = panel.queries.address,
                                       .k = chunk.keys.address,
                                       .v = chunk.values.address,
                                       .o = panel.output.address,
                                       .lse = panel.lse.address};
  const auto order = [kernel, at, space](CUstream stream) -> Checked<Ok> {
    if (kernel->launch(at, space, stream)) return Ok{};
    return library::refused("execute", "cuDNN");
  };
  return prepare_order({.order = order, .library = "cuBLASLt or cuDNN", .call = "leaf"});
}

Checked<std::unique_ptr<PreparedKernel>> prepare_own(const AttentionSpec& spec,
                                                     const LaunchTools& tools) {
  if (spec.shares > 0) {
    HP_TRY(PreparedDecode decode, PreparedDecode::make(tools.kernels, spec, tools.sums));
    return std::unique_ptr<PreparedKernel>(std::make_unique<PreparedDecode>(std::move(decode)));
  }
  HP_TRY(
      PreparedAttention attention,
      PreparedAttention::make(tools.kernels, spec, choose_attention(spec), tools.multiprocessors));
  return std::unique_ptr<PreparedKernel>(std::make_unique<PreparedAttention>(std::move(attention)));
}

}  // namespace

Checked<std::unique_ptr<PreparedKernel>> prepare_attention(const KernelLaunch& launch,
                                                           const LaunchTools& tools) {
  const auto* const spec = find_spec<AttentionSpec>(launch);
  if (spec == nullptr) return std::unique_ptr<PreparedKernel>();
  return spec->engine == LeafEngine::Library ? prepare_cudnn(*spec, tools)
                                             : prepare_own(*spec, tools);
}

}  // namespace harpe::cuda
