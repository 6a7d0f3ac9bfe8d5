#include "exec/cuda/kernels/attention/decode_variants.h"

#include <string>

#include "exec/cuda/kernels/element_words.h"
#include "support/check.h"

namespace harpe::cuda {

using device::DecodeConfig;
using device::Element;

namespace {

std::string tile_of(const DecodeConfig& config) {
  const std::string tile = std::to_string(config.columns) + "x" +
                           std::to_string(tile_keys(config)) + "x" +
                           std::to_string(config.head_dim);
  return values_in_keys(config) ? tile + "x" + std::to_string(config.value_dim) : tile;
}

std::string source_of(const DecodeConfig& config) {
  return std::string(
             "#include \"exec/cuda/kernels/attention/device/decode.cuh\"\n"
             "using namespace harpe::device;\n"
             "extern \"C\" __global__ void __launch_bounds__(") +
         std::to_string(device::kDecodeThreads) +
         ", 1)\n"
         "    harpe_kernel(const __grid_constant__ " +
         (config.exchanges ? "DecodeExchangeArgs" : "DecodeArgs") +
         " args) {\n"
         "  extern __shared__ __align__(1024) std::uint8_t memory[];\n"
         "  constexpr DecodeConfig kConfig{.element = Element::" +
         enumerator_of(config.element) + ", .output = Element::" + enumerator_of(config.output) +
         ", .head_dim = " + std::to_string(config.head_dim) +
         ", .value_dim = " + std::to_string(config.value_dim) +
         ", .columns = " + std::to_string(config.columns) +
         ", .slots = " + std::to_string(config.slots) +
         ", .exchanges = " + (config.exchanges ? "true" : "false") +
         "};\n"
         "  decode<kConfig>(" +
         (config.exchanges ? "args.decode, &args.exchange, &args.bounds"
                           : "args, nullptr, nullptr") +
         ", memory);\n"
         "}\n";
}

void add_configs(std::vector<DecodeConfig>& configs, DecodeConfig config) {
  for (const Element element : {Element::BF16, Element::F16}) {
    for (const Element output : {element, Element::F32}) {
      for (const bool exchanges : {false, true}) {
        config.element = element;
        config.output = output;
        config.exchanges = exchanges;
        configs.push_back(with_most_slots(config));
      }
    }
  }
}

std::vector<DecodeConfig> make_decode_configs() {
  std::vector<DecodeConfig> configs;
  for (const int columns : {8, 16}) {
    for (const int head_dim : {128, 64}) {
      add_configs(configs, {.head_dim = head_dim, .value_dim = head_dim, .columns = columns});
    }
  }
  add_configs(configs, {.head_dim = 576, .value_dim = 512, .columns = 32});
  return configs;
}

}  // namespace

KernelVariant decode_variant(const DecodeConfig& config) {
  HP_CHECK(valid(config), "no such decode kernel can be built");
  KernelVariant variant;
  variant.name = std::string("decode_") + word_of(config.element) + "_" + tile_of(config) + "_s" +
                 std::to_string(config.slots) + (config.output == Element::F32 ? "_to_state" : "") +
                 (config.exchanges ? "_exchanged" : "");
  variant.family = "decode";
  variant.tile = tile_of(config);
  variant.source = source_of(config);
  variant.threads = device::kDecodeThreads;
  variant.shared_bytes = shared_bytes(config);
  return variant;
}

const std::vector<DecodeConfig>& decode_configs() {
  static const std::vector<DecodeConfig> configs = make_decode_configs();
  return configs;
}

}  // namespace harpe::cuda
