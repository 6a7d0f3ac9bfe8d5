#include <algorithm>
#include <set>
#include <tuple>

#include "exec/cuda/profile/leaf_specs.h"
#include "exec/cuda/profile/measure.h"
#include "support/check.h"

namespace harpe::cuda::profile {
namespace {

using Cases = std::vector<LeafCase>;

// Operands in turn, so that a launch finds in the cache no more than it would in a plan.
constexpr std::int64_t kMostSets = 8;
constexpr std::int64_t kMostTimes = 512;
constexpr double kLeast = 1e-7;  // seconds of a leaf that no longer shows beside a small kernel

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t kGrain = 1024;
  return (bytes + kGrain - 1) / kGrain * kGrain;
}

std::int64_t sets_of(const LeafCase& one, std::int64_t cache) {
  const std::int64_t in = aligned(one.in_bytes);
  const std::int64_t out = aligned(one.out_bytes);
  HP_CHECK(in <= kSourceBytes && out <= kTargetBytes, "a leaf's operands fit");
  const std::int64_t fit = std::min(kSourceBytes / in, kTargetBytes / out);
  return std::clamp<std::int64_t>(2 * cache / (in + out) + 1, 1, std::min(fit, kMostSets));
}

Checked<Order> order_of(const LeafCase& one, const Member& member, std::int64_t times) {
  const std::int64_t sets = std::min(times, sets_of(one, member.device->facts().cache_bytes));
  std::vector<SharedLaunches> launches;
  for (std::int64_t set = 0; set < sets; ++set) {
    const Operands at{
        .in = member.source + static_cast<DeviceAddress>(set * aligned(one.in_bytes)),
        .out = member.target + static_cast<DeviceAddress>(set * aligned(one.out_bytes))};
    HP_TRY(const std::vector<LaunchSpec> specs, one.plan(member, at));
    HP_TRY(SharedLaunches ready, make_ready(member, specs));
    launches.push_back(std::move(ready));
  }
  return Order([launches, times](const Member& at) -> Checked<Ok> {
    for (std::int64_t i = 0; i < times; ++i) {
      const auto set = static_cast<std::size_t>(i) % launches.size();
      HP_REQUIRE_OK(enqueue(at, launches[set]));
    }
    return Ok{};
  });
}

Checked<Ok> measure(Crew& crew, const Cases& cases, double kernel,
                    std::vector<LeafFigure>& figures) {
  std::vector<Trial> trials;
  for (const LeafCase& one : cases) {
    const std::int64_t times = times_of(one.guess, kMostTimes);
    HP_TRY(Trial trial, crew.capture(static_cast<double>(times), [&](const Member& member) {
      return order_of(one, member, times);
    }));
    trials.push_back(std::move(trial));
  }
  HP_TRY(const std::vector<double> seconds, crew.time(trials));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    LeafFigure figure = cases[i].figure;
    figure.seconds = std::max(kLeast, seconds[i] - kernel);
    figures.push_back(std::move(figure));
  }
  return Ok{};
}

// Products of the bench's layers on so many ranks, whole and by chunks, and cubes.
Cases products(std::int64_t ranks, bool quick) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::set<Key> shapes = {{8192, 8192, 8192}, {256, 256, 256}, {1024, 1024, 1024}};
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
  for (const auto& [m, n, k] : shapes) cases.push_back(product_case({.m = m, .n = n, .k = k}));
  return cases;
}

HeadsShape heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                    std::int64_t keys, bool causal) {
  return {.heads = heads, .kv_heads = kv_heads, .queries = queries, .keys = keys, .causal = causal};
}

// Attention of the bench's cases on so many ranks: whole heads, parts of the positions, and parts
// of the heads; then one new query for each of some sequences.
Cases attention(std::int64_t ranks, bool quick) {
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

// What the plain kernels run: other types, gradients, and leaves that only touch memory.
Cases others(bool quick) {
  Cases cases;
  for (const std::int64_t size :
       quick ? std::vector<std::int64_t>{512} : std::vector<std::int64_t>{256, 1024, 2048}) {
    cases.push_back(plain_product_case(DType::F32, {.m = size, .n = size, .k = size}));
  }
  for (const std::int64_t rows :
       quick ? std::vector<std::int64_t>{256} : std::vector<std::int64_t>{256, 1024}) {
    for (const bool causal : {false, true}) {
      const HeadsShape shape = heads_of(8, 8, rows, rows, causal);
      cases.push_back(plain_attention_case(DType::F32, shape));
      cases.push_back(gradient_case(DType::F32, shape));
      cases.push_back(gradient_case(DType::BF16, shape));
    }
  }
  // The last beyond a cache; the first hardly longer than any kernel.
  for (const std::int64_t length : {std::int64_t{64} << 10, std::int64_t{128} << 20}) {
    cases.push_back(pointwise_case(Pointwise::Add, "add", length));
    cases.push_back(pointwise_case(Pointwise::SiluMul, "silu_mul", length));
  }
  for (const std::int64_t rows : {std::int64_t{512}, std::int64_t{1} << 20}) {
    cases.push_back(row_dot_case(rows, 128));
  }
  return cases;
}

}  // namespace

Checked<std::vector<LeafFigure>> measure_leaves(Crew& crew, bool quick, double kernel) {
  constexpr std::int64_t kUsualRanks = 8;  // that one GPU is measured for
  const std::int64_t ranks = crew.size() > 1 ? crew.size() : kUsualRanks;
  std::vector<LeafFigure> figures;
  HP_REQUIRE_OK(measure(crew, products(ranks, quick), kernel, figures));
  HP_REQUIRE_OK(measure(crew, attention(ranks, quick), kernel, figures));
  HP_REQUIRE_OK(measure(crew, others(quick), kernel, figures));
  return figures;
}

}  // namespace harpe::cuda::profile
