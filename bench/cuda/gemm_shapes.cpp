#include "bench/cuda/gemm_shapes.h"

#include <fmt/format.h>

#include <charconv>

namespace harpe::bench {
namespace {

constexpr std::int64_t kRanks = 8;

struct Size {
  std::int64_t m, n, k;
};

struct Layer {
  const char* name;
  std::int64_t n;  // of the whole GEMM
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

// Cuts into panels of equally many rows.
void cut_rows(GemmCase& what, std::int64_t panels) {
  what.name += fmt::format(" in {} panels", panels);
  what.panels.clear();
  const std::int64_t rows = what.m / panels;
  for (std::int64_t i = 0; i < panels; ++i) {
    what.panels.push_back(
        {.row_begin = i * rows, .rows = rows, .k_chunks = {{.k_begin = 0, .k_count = what.k}}});
  }
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
  // The parts of two ranks, in smaller models.
  for (const Size& size : {Size{512, 8192, 4096},
                           {768, 8192, 4096},
                           {1024, 5120, 4096},
                           {1536, 5120, 4096},
                           {2048, 8192, 4096},
                           {4096, 4096, 7168},
                           {3072, 5120, 12800},
                           {1024, 5120, 5120},
                           {2048, 6144, 4096},
                           {4096, 14336, 4096},
                           {3072, 25600, 5120}}) {
    shapes.push_back(shape("two ranks", size.m, size.n, size.k));
  }
  // Gradients of weights.
  for (const Size& size : {Size{4096, 8192, 8192}, {8192, 14336, 8192}, {5120, 4096, 4096}}) {
    shapes.push_back(shape("gradient", size.m, size.n, size.k));
    shapes.back().m_major = true;
  }
  return shapes;
}

std::optional<GemmCase> read_size(std::string_view text) {
  Size size{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* const value : {&size.m, &size.n, &size.k}) {
    if (value != &size.m && (at == end || *at++ != 'x')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, *value);
    if (error != std::errc() || *value <= 0) return std::nullopt;
    at = next;
  }
  const std::string_view layout(at, end);
  if (!layout.empty() && layout != "nk") return std::nullopt;
  GemmCase made = shape("size", size.m, size.n, size.k);
  if (layout == "nk") made.layout = device::GemmLayout::KMajor;
  made.name += layout;
  return made;
}

std::vector<GemmCase> shapes_of(const Options& options, std::vector<GemmCase> usual) {
  if (options.sizes.empty()) return usual;
  std::vector<GemmCase> shapes;
  for (const std::string& size : options.sizes) shapes.push_back(read_size(size).value());
  return shapes;
}

std::vector<GemmCase> mapped_shapes() {
  std::vector<GemmCase> shapes;
  for (const Size& size : {Size{512, 7168, 8192},
                           {2048, 7168, 8192},
                           {8192, 7168, 8192},
                           {2048, 14336, 8192},
                           {2048, 28672, 8192},
                           {512, 14336, 4096},
                           {4096, 14336, 4096},
                           {2048, 4096, 1024},
                           {8192, 4096, 1024},
                           {1000, 5000, 3000}}) {
    shapes.push_back(shape("bias, gelu", size.m, size.n, size.k));
    shapes.back().maps = {device::GemmMap::AddRow, device::GemmMap::Gelu};
  }
  return shapes;
}

std::vector<GemmCase> few_rows_shapes() {
  struct Weights {
    std::int64_t n;
    std::int64_t k;
    bool is_turned_too;  // also with rows along k
  };
  std::vector<GemmCase> shapes;
  for (const Weights& weights :
       {Weights{8192, 4096, true}, {5120, 8192, true},  {4096, 8192, false},
        {8192, 14336, true},       {28672, 8192, true}, {14336, 4096, false},
        {1280, 8192, true},        {5120, 5120, false}, {25600, 5120, false},
        {5120, 12800, false},      {6144, 2560, false}, {3072, 7168, true},
        {1000, 4104, false},       {768, 4096, false},  {2560, 5120, false},
        {8192, 1024, false},       {4096, 2048, false}, {3072, 4096, false},
        {8192, 3584, false},       {5120, 3200, false}}) {
    for (const auto layout : {device::GemmLayout::NMajor, device::GemmLayout::KMajor}) {
      const bool is_turned = layout == device::GemmLayout::KMajor;
      if (is_turned && !weights.is_turned_too) continue;
      for (const std::int64_t m : {1, 2, 4, 8, 16, 32, 64, 72, 96, 128, 192, 256}) {
        shapes.push_back(shape(is_turned ? "nk" : "kn", m, weights.n, weights.k));
        shapes.back().layout = layout;
      }
    }
  }
  for (const std::int64_t panels : {2, 4, 8}) {
    for (const std::int64_t n : {8192, 5120}) {
      shapes.push_back(shape("kn", 128, n, 4096));
      cut_rows(shapes.back(), panels);
    }
  }
  return shapes;
}

}  // namespace harpe::bench
