#include "exec/cuda/kernels/plain/plain_variants.h"

#include <array>
#include <string>

#include "exec/cuda/kernels/plain/device/route_args.h"

namespace harpe::cuda {
namespace {

struct Entry {
  const char* name;
  const char* header;
  const char* arguments;
  std::int32_t threads;
  std::int32_t blocks;   // the least resident thread blocks per SM, which limits registers
  bool computes = true;  // has versions in f32 and f64
};

constexpr std::array<Entry, 14> kEntries = {{
    {"move", "plain/device/strided", "MoveArgs", device::kStridedThreads, 4, false},
    {"map", "plain/device/strided", "MapArgs", device::kStridedThreads, 4},
    {"sum", "plain/device/fold", "SumArgs", device::kStridedThreads, 2},
    {"combine", "plain/device/fold", "CombineArgs", device::kRowThreads, 1},
    {"join_parts", "plain/device/join", "JoinArgs", device::kRowThreads, 4, false},
    {"row_dot", "plain/device/row_dot", "RowDotArgs", device::kRowThreads, 4},
    {"add_rms_norm", "plain/device/add_rms_norm", "AddRmsNormArgs", device::kNormThreads, 2},
    {"plain_gemm", "plain/device/plain_gemm", "PlainGemmArgs", device::kPlainGemmThreads, 2},
    {"plain_attention", "plain/device/plain_attention", "PlainAttentionArgs",
     device::kPlainAttentionThreads, 2},
    {"plain_backward", "plain/device/plain_backward", "PlainBackwardArgs",
     device::kPlainAttentionThreads, 2},
    {"choose_experts", "plain/device/choices", "ChooseArgs", device::kRouteThreads, 4, false},
    {"limit_choices", "plain/device/choices", "LimitArgs", device::kRouteThreads, 4, false},
    {"gather_rows", "plain/device/route", "RouteArgs", device::kRouteThreads, 4, false},
    {"combine_rows", "plain/device/route", "RouteArgs", device::kRouteThreads, 4},
}};

}  // namespace

KernelVariant plain_variant(PlainKernel kernel, bool wide) {
  const Entry& entry = kEntries[static_cast<std::size_t>(kernel)];
  const std::string name = entry.name;
  const bool computes = entry.computes;
  const std::string real = wide ? "double" : "float";
  const std::string source = std::string("#include \"exec/cuda/kernels/") + entry.header +
                             ".cuh\"\n\n"
                             "using namespace harpe::device;\n\n"
                             "extern \"C\" __global__ void __launch_bounds__(" +
                             std::to_string(entry.threads) + ", " + std::to_string(entry.blocks) +
                             ")\nharpe_kernel(const __grid_constant__ " + entry.arguments +
                             " args) {\n  harpe::device::" + name +
                             (computes ? "<" + real + ">" : "") + "(args);\n}\n";
  const bool prefixed = name.starts_with("plain_");
  return {.name = (prefixed ? "" : "plain_") + name + (computes ? (wide ? "_f64" : "_f32") : ""),
          .family = "plain",
          .tile = "",
          .source = source,
          .threads = entry.threads,
          .shared_bytes = 0,
          .uses_wgmma = false};
}

std::vector<KernelVariant> plain_variants() {
  std::vector<KernelVariant> variants;
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    variants.push_back(plain_variant(static_cast<PlainKernel>(i), false));
    if (kEntries[i].computes) variants.push_back(plain_variant(static_cast<PlainKernel>(i), true));
  }
  return variants;
}

}  // namespace harpe::cuda
