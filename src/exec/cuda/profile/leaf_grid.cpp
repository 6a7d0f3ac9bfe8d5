#include "exec/cuda/profile/leaf_grid.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace harpe::cuda::profile {
namespace {

using Cases = std::vector<LeafCase>;

HeadsShape heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                    std::int64_t keys, bool causal) {
  return {.heads = heads, .kv_heads = kv_heads, .queries = queries, .keys = keys, .causal = causal};
}

}  // namespace

std::vector<GemmSize> short_gemms(const std::vector<std::int64_t>& cuts, bool quick) {
  // Columns and depth of the linear layers of Llama-3 8B and 70B before they are divided over the
  // ranks: by columns behind a gather, by depth before a reduction.
  constexpr std::array kGathered = {std::pair{6144, 4096}, std::pair{28672, 4096},
                                    std::pair{10240, 8192}, std::pair{57344, 8192}};
  constexpr std::array kReduced = {std::pair{4096, 4096}, std::pair{4096, 14336},
                                   std::pair{8192, 8192}, std::pair{8192, 28672}};
  std::vector<GemmSize> shapes;
  for (const std::int64_t m :
       quick ? std::vector<std::int64_t>{16} : std::vector<std::int64_t>{1, 16, 64, 128, 256}) {
    for (const std::int64_t ranks : cuts) {
      for (const auto& [n, k] : kGathered) shapes.push_back({.m = m, .n = n / ranks, .k = k});
      for (const auto& [n, k] : kReduced) shapes.push_back({.m = m, .n = n, .k = k / ranks});
    }
    if (quick) shapes.resize(1);
  }
  // The bulk copy engine reads rows in multiples of 16 bytes.
  constexpr std::int64_t kWhole = 8;
  std::erase_if(shapes, [](const GemmSize& s) { return s.n % kWhole != 0 || s.k % kWhole != 0; });
  return shapes;
}

std::vector<LeafCase> gemm_cases(const std::vector<std::int64_t>& cuts, bool quick) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::set<Key> shapes = {{8192, 8192, 8192}, {256, 256, 256}, {1024, 1024, 1024}};
  for (const GemmSize& s : short_gemms(cuts, quick)) shapes.insert({s.m, s.n, s.k});
  const std::int64_t ranks = cuts.back();
  // A rank's part, in whole tiles.
  const auto part = [&](std::int64_t size) {
    return std::max<std::int64_t>(128, size / ranks / 128 * 128);
  };
  if (!quick) {
    shapes.insert({{2048, 2048, 2048}, {4096, 4096, 4096}, {16, 8192, 8192}, {128, 8192, 8192}});
    for (const std::int64_t m : {512, 2048, 8192, 16384}) {
      for (const std::int64_t n : {10240, 28672, 57344}) {
        shapes.insert({{m, part(n), 8192}, {part(m), part(n), 8192}});
      }
      for (const std::int64_t k : {8192, 28672}) {
        shapes.insert({{m, 8192, part(k)}, {part(m), 8192, part(k)}});
      }
    }
  }
  Cases cases;
  for (const auto& [m, n, k] : shapes) cases.push_back(gemm_case({.m = m, .n = n, .k = k}));
  return cases;
}

std::vector<LeafCase> attention_cases(std::int64_t ranks, bool quick) {
  constexpr std::int64_t kHeads = 32;
  constexpr std::int64_t kKvHeads = 8;
  Cases cases;
  for (const std::int64_t rows : quick ? std::vector<std::int64_t>{1024, 4096}
                                       : std::vector<std::int64_t>{1024, 2048, 4096, 8192, 16384}) {
    for (const bool causal : {false, true}) {
      cases.push_back(attention_case(heads_of(kHeads, kKvHeads, rows, rows, causal)));
    }
  }
  if (quick) return cases;
  const std::int64_t parts = std::max<std::int64_t>(2, ranks);
  for (const std::int64_t rows : {8192, 32768}) {
    cases.push_back(attention_case(heads_of(kHeads, kKvHeads, rows / parts, rows, false)));
    for (const bool causal : {false, true}) {
      const std::int64_t heads = std::max<std::int64_t>(1, kHeads / parts);
      cases.push_back(attention_case(heads_of(heads, heads, rows, rows, causal)));
    }
  }
  for (const auto& [dim, value_dim] : {std::pair{64, 64}, std::pair{192, 128}}) {
    for (const bool causal : {false, true}) {
      HeadsShape shape = heads_of(kHeads, kHeads, 4096, 4096, causal);
      shape.dim = dim;
      shape.value_dim = value_dim;
      cases.push_back(attention_case(shape));
    }
  }
  for (const auto& [batch, keys] :
       {std::pair{1, 8192}, std::pair{1, 65536}, std::pair{8, 4096}, std::pair{8, 32768},
        std::pair{32, 1024}, std::pair{32, 8192}}) {
    HeadsShape shape = heads_of(64, kKvHeads, 1, keys, false);
    shape.batch = batch;
    cases.push_back(attention_case(shape));
  }
  return cases;
}

std::vector<LeafCase> plain_cases(bool quick) {
  Cases cases;
  for (const std::int64_t size :
       quick ? std::vector<std::int64_t>{512} : std::vector<std::int64_t>{256, 1024, 2048}) {
    cases.push_back(plain_gemm_case(DType::F32, {.m = size, .n = size, .k = size}));
  }
  for (const std::int64_t rows :
       quick ? std::vector<std::int64_t>{256} : std::vector<std::int64_t>{256, 1024}) {
    for (const bool causal : {false, true}) {
      const HeadsShape shape = heads_of(8, 8, rows, rows, causal);
      cases.push_back(plain_attention_case(DType::F32, shape));
      cases.push_back(backward_case(DType::F32, shape));
    }
  }
  for (const std::int64_t rows :
       quick ? std::vector<std::int64_t>{1024} : std::vector<std::int64_t>{1024, 4096, 8192}) {
    for (const bool causal : {false, true}) {
      cases.push_back(backward_case(DType::BF16, heads_of(8, 8, rows, rows, causal)));
    }
  }
  // The second exceeds the cache; the first takes hardly longer than an empty kernel.
  for (const std::int64_t length : {std::int64_t{64} << 10, std::int64_t{128} << 20}) {
    cases.push_back(pointwise_case(Pointwise::Add, Leaf::Add, length));
    cases.push_back(pointwise_case(Pointwise::SiluMul, Leaf::SiluMul, length));
  }
  for (const std::int64_t rows : {std::int64_t{512}, std::int64_t{1} << 20}) {
    cases.push_back(row_dot_case(rows, 128));
  }
  return cases;
}

}  // namespace harpe::cuda::profile
