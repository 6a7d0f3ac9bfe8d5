#include "bench/cuda/gemm_shapes.h"

#include <fmt/format.h>

namespace harpe::bench {
namespace {

constexpr std::int64_t kRanks = 8;

struct Layer {
  const char* name;
  std::int64_t n;  // of the whole
  std::int64_t k;
  std::vector<std::int64_t> rows;
};

GemmCase shape(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmCase made;
  made.name = fmt::format("{} {}x{}x{}", name, m, n, k);
  made.m = m;
  made.n = n;
  made.k = k;
  made.panels = uncut(m, k);
  made.packed = true;
  return made;
}

}  // namespace

std::vector<GemmCase> gemm_shapes() {
  const std::vector<Layer> gathered = {{"ag_gemm qkv", 10240, 8192, {512, 2048, 8192}},
                                       {"ag_gemm ffn1", 57344, 8192, {512, 2048, 8192, 16384}},
                                       {"ag_gemm square", 4096, 4096, {4096}},
                                       {"ag_gemm wide", 28672, 8192, {8192}}};
  const std::vector<Layer> scattered = {{"gemm_rs o", 8192, 8192, {512, 2048, 8192}},
                                        {"gemm_rs ffn2", 8192, 28672, {512, 2048, 8192, 16384}}};
  std::vector<GemmCase> shapes = {shape("cube", 8192, 8192, 8192)};
  for (const Layer& layer : gathered) {
    for (const std::int64_t m : layer.rows) {
      shapes.push_back(shape(layer.name, m, layer.n / kRanks, layer.k));
    }
  }
  for (const Layer& layer : scattered) {
    for (const std::int64_t m : layer.rows) {
      shapes.push_back(shape(layer.name, m, layer.n, layer.k / kRanks));
    }
  }
  return shapes;
}

}  // namespace harpe::bench
