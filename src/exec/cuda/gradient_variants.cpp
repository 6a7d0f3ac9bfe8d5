#include "exec/cuda/gradient_variants.h"

#include <string>

#include "exec/cuda/element_words.h"
#include "support/check.h"

namespace harpe::cuda {

using device::GradientConfig;

namespace {

// Keys by queries by features.
std::string tile_of(const GradientConfig& config) {
  return std::to_string(device::kKeyTile) + "x" + std::to_string(device::kQueryTile) + "x" +
         std::to_string(config.head_dim);
}

std::string source_of(const GradientConfig& config) {
  return "#include \"exec/cuda/device/gradient.cuh\"\n"
         "using namespace harpe::device;\n"
         "extern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(device::kGradientThreads) +
         ", 1)\n"
         "    harpe_kernel(const __grid_constant__ GradientArgs args) {\n"
         "  extern __shared__ __align__(1024) std::uint8_t memory[];\n"
         "  constexpr GradientConfig kConfig{.element = Element::" +
         enumerator_of(config.element) + ", .head_dim = " + std::to_string(config.head_dim) +
         ", .query_stages = " + std::to_string(config.query_stages) +
         ", .producer_registers = " + std::to_string(config.producer_registers) +
         ", .consumer_registers = " + std::to_string(config.consumer_registers) +
         "};\n"
         "  gradient<kConfig>(args, memory);\n"
         "}\n";
}

}  // namespace

KernelVariant gradient_variant(const GradientConfig& config) {
  HP_CHECK(valid(config), "no such gradient kernel can be built");
  KernelVariant variant;
  variant.name = std::string("gradient_") + word_of(config.element) + "_" + tile_of(config);
  variant.family = "gradient";
  variant.tile = tile_of(config);
  variant.source = source_of(config);
  variant.threads = device::kGradientThreads;
  variant.shared_bytes = shared_bytes(config);
  return variant;
}

const std::vector<GradientConfig>& gradient_configs() {
  static const std::vector<GradientConfig> configs = {{.head_dim = 128},
                                                      {.head_dim = 64, .query_stages = 4}};
  return configs;
}

std::vector<KernelVariant> gradient_variants() {
  std::vector<KernelVariant> variants;
  for (const GradientConfig& config : gradient_configs()) {
    variants.push_back(gradient_variant(config));
  }
  return variants;
}

}  // namespace harpe::cuda
