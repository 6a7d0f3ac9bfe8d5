#include "exec/cuda/kernels/attention/attention_variants.h"

#include <string>

#include "exec/cuda/kernels/attention/decode_variants.h"
#include "exec/cuda/kernels/element_words.h"
#include "support/check.h"

namespace harpe::cuda {

using device::AttentionConfig;
using device::Element;

namespace {

std::string tile_of(const AttentionConfig& config) {
  return std::to_string(query_rows(config)) + "x" + std::to_string(config.kv_tile) + "x" +
         std::to_string(config.query_dim) +
         (config.value_dim == config.query_dim ? "" : "v" + std::to_string(config.value_dim));
}

// Names every property in which a configuration differs, so that no two share a name.
std::string name_of(const AttentionConfig& config) {
  std::string name = std::string("attention_") + word_of(config.element) + "_" + tile_of(config) +
                     "_s" + std::to_string(config.kv_stages) + "q" +
                     std::to_string(config.query_stages);
  if (config.carried) name += "_from_state";
  if (config.output == Element::F32) name += "_to_state";
  if (config.consumer_registers != AttentionConfig{}.consumer_registers) {
    name += "_r" + std::to_string(config.producer_registers) + "_" +
            std::to_string(config.consumer_registers);
  }
  return name;
}

std::string config_text(const AttentionConfig& config) {
  return std::string("{.element = Element::") + enumerator_of(config.element) +
         ", .output = Element::" + enumerator_of(config.output) +
         ", .query_dim = " + std::to_string(config.query_dim) +
         ", .value_dim = " + std::to_string(config.value_dim) +
         ", .kv_tile = " + std::to_string(config.kv_tile) +
         ", .kv_stages = " + std::to_string(config.kv_stages) +
         ", .query_stages = " + std::to_string(config.query_stages) +
         ", .consumers = " + std::to_string(config.consumers) +
         ", .carried = " + (config.carried ? "true" : "false") +
         ", .producer_registers = " + std::to_string(config.producer_registers) +
         ", .consumer_registers = " + std::to_string(config.consumer_registers) + "}";
}

std::string source_of(const AttentionConfig& config) {
  const std::string threads = std::to_string(threads_of(config));
  return "#include \"exec/cuda/kernels/attention/device/attention.cuh\"\n"
         "using namespace harpe::device;\n"
         "extern \"C\" __global__ void __launch_bounds__(" +
         threads +
         ", 1)\n"
         "    harpe_kernel(const __grid_constant__ AttentionArgs args) {\n"
         "  extern __shared__ __align__(1024) std::uint8_t memory[];\n"
         "  constexpr AttentionConfig kConfig" +
         config_text(config) +
         ";\n"
         "  attention<kConfig>(args, memory);\n"
         "}\n";
}

std::vector<AttentionConfig> make_configs() {
  const AttentionConfig narrow{};
  AttentionConfig wide;  // fewer, larger key tiles, where a mask cuts few of them
  wide.kv_tile = 160;
  AttentionConfig small;
  small.query_dim = small.value_dim = 64;
  small.kv_stages = 3;
  AttentionConfig small_tall = small;
  small_tall.kv_tile = 112;
  small_tall.consumers = 3;
  small_tall.producer_registers = 56;
  small_tall.consumer_registers = 152;
  AttentionConfig latent;  // latent attention: queries and keys have an extra part for positions
  latent.query_dim = 192;
  latent.query_stages = 1;
  std::vector<AttentionConfig> configs{narrow, wide, small, small_tall, latent};
  for (const AttentionConfig& shape : {narrow, small, latent}) {
    AttentionConfig half = shape;
    half.element = half.output = Element::F16;
    configs.push_back(half);
    AttentionConfig first = shape;
    first.output = Element::F32;
    AttentionConfig middle = first;
    middle.carried = true;
    AttentionConfig last = shape;
    last.carried = true;
    for (const AttentionConfig& part : {first, middle, last}) configs.push_back(part);
  }
  return configs;
}

}  // namespace

KernelVariant attention_variant(const AttentionConfig& config) {
  HP_CHECK(valid(config), "no such attention kernel can be built");
  KernelVariant variant;
  variant.name = name_of(config);
  variant.family = "attention";
  variant.tile = tile_of(config);
  variant.source = source_of(config);
  variant.threads = threads_of(config);
  variant.shared_bytes = shared_bytes(config);
  return variant;
}

const std::vector<AttentionConfig>& attention_configs() {
  static const std::vector<AttentionConfig> configs = make_configs();
  return configs;
}

std::vector<KernelVariant> attention_variants() {
  std::vector<KernelVariant> variants;
  for (const AttentionConfig& config : attention_configs()) {
    variants.push_back(attention_variant(config));
  }
  for (const device::DecodeConfig& config : decode_configs()) {
    variants.push_back(decode_variant(config));
  }
  return variants;
}

}  // namespace harpe::cuda
