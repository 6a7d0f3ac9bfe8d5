#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
#include "exec/cuda/kernels/gemm/prepared_gemm.h"
#include "exec/cuda/kernels/prepared_order.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

library::LibraryGemmShape shape_of(const GemmSpec& spec, const GemmPanelSpec& panel) {
  return {.m = panel.rows,
          .n = spec.n,
          .k = spec.k,
          .in = spec.in,
          .out = spec.out,
          .layout = spec.layout,
          .m_major = spec.m_major,
          .a_stride = panel.k_chunks.front().stride,
          .b_stride = spec.b_stride,
          .c_stride = panel.c_stride,
          .add = spec.add};
}

// A prepared GEMM of cuBLASLt with its addresses.
struct LibraryCall {
  std::shared_ptr<const library::LibraryGemm> gemm;
  DeviceAddress a = 0;
  DeviceAddress b = 0;
  DeviceAddress c = 0;
};

// Always takes the first algorithm that the heuristics return, so results have the same bits.
Checked<std::unique_ptr<PreparedKernel>> prepare_cublaslt(const GemmSpec& spec,
                                                          const LaunchTools& tools) {
  HP_CHECK(tools.leaves != nullptr, "libraries do leaves of plans alone");
  HP_TRY(const library::CublasLt library, tools.leaves->products(tools.place));
  std::vector<LibraryCall> calls;
  for (const GemmPanelSpec& panel : spec.panels) {
    HP_CHECK(panel.k_chunks.size() == 1 && panel.addends.empty() && !is_awaited(panel),
             "nothing is joined with a GEMM of a library");
    auto gemm = library.prepare(shape_of(spec, panel));
    if (!gemm.ok()) return tools.place.refuse(gemm.error().reason);
    if ((*gemm)->algorithms() == 0) {
      return tools.place.refuse("cuBLASLt names no algorithm");
    }
    calls.push_back({.gemm = std::move(gemm).value(),
                     .a = panel.k_chunks.front().a,
                     .b = spec.b,
                     .c = panel.c});
  }
  const auto order = [calls = std::move(calls)](CUstream stream) -> Checked<Ok> {
    for (const LibraryCall& call : calls) {
      if (!call.gemm->launch(0, call.a, call.b, call.c, stream)) {
        return library::refused("cublasLtMatmul", "cuBLASLt");
      }
    }
    return Ok{};
  };
  return prepare_order({.order = order, .library = "cuBLASLt or cuDNN", .call = "leaf"});
}

Checked<std::unique_ptr<PreparedKernel>> prepare_own(const GemmSpec& spec,
                                                     const LaunchTools& tools) {
  std::optional<GemmChoice> choice;
  if (tools.variant) {
    choice = find_gemm_choice(spec, *tools.variant);
    HP_CHECK(choice, "a launch plan's variant is looked for before it is made ready");
  }
  const int multiprocessors = tools.multiprocessors;
  HP_TRY(
      PreparedGemm gemm,
      PreparedGemm::make(tools.kernels, spec, choice ? *choice : choose_gemm(spec, multiprocessors),
                         multiprocessors, tools.sums));
  return std::unique_ptr<PreparedKernel>(std::make_unique<PreparedGemm>(std::move(gemm)));
}

}  // namespace

Checked<std::unique_ptr<PreparedKernel>> prepare_gemm(const KernelLaunch& launch,
                                                      const LaunchTools& tools) {
  const auto* const spec = find_spec<GemmSpec>(launch);
  if (spec == nullptr) return std::unique_ptr<PreparedKernel>();
  return spec->engine == LeafEngine::Library ? prepare_cublaslt(*spec, tools)
                                             : prepare_own(*spec, tools);
}

}  // namespace harpe::cuda
