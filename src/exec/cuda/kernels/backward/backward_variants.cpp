#include "exec/cuda/kernels/backward/backward_variants.h"

#include <string>

#include "exec/cuda/kernels/element_words.h"
#include "support/check.h"

namespace harpe::cuda {

using device::BackwardConfig;

namespace {

// The tile as keys by queries by features.
std::string tile_of(const BackwardConfig& config) {
  return std::to_string(device::kKeyTile) + "x" + std::to_string(device::kQueryTile) + "x" +
         std::to_string(config.head_dim);
}

std::string source_of(const BackwardConfig& config) {
  return "#include \"exec/cuda/kernels/backward/device/backward.cuh\"\n"
         "using namespace harpe::device;\n"
         "extern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(device::kBackwardThreads) +
         ", 1)\n"
         "    harpe_kernel(const __grid_constant__ BackwardArgs args) {\n"
         "  extern __shared__ __align__(1024) std::uint8_t memory[];\n"
         "  constexpr BackwardConfig kConfig{.element = Element::" +
         enumerator_of(config.element) + ", .head_dim = " + std::to_string(config.head_dim) +
         ", .query_stages = " + std::to_string(config.query_stages) +
         ", .producer_registers = " + std::to_string(config.producer_registers) +
         ", .consumer_registers = " + std::to_string(config.consumer_registers) +
         "};\n"
         "  backward<kConfig>(args, memory);\n"
         "}\n";
}

}  // namespace

KernelVariant backward_variant(const BackwardConfig& config) {
  HP_CHECK(valid(config), "no such gradient kernel can be built");
  KernelVariant variant;
  variant.name = std::string("gradient_") + word_of(config.element) + "_" + tile_of(config);
  variant.family = "gradient";
  variant.tile = tile_of(config);
  variant.source = source_of(config);
  variant.threads = device::kBackwardThreads;
  variant.shared_bytes = shared_bytes(config);
  return variant;
}

const std::vector<BackwardConfig>& backward_configs() {
  static const std::vector<BackwardConfig> configs = {{.head_dim = 128},
                                                      {.head_dim = 64, .query_stages = 4}};
  return configs;
}

std::vector<KernelVariant> backward_variants() {
  std::vector<KernelVariant> variants;
  for (const BackwardConfig& config : backward_configs()) {
    variants.push_back(backward_variant(config));
  }
  return variants;
}

}  // namespace harpe::cuda
