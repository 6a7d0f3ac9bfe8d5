#include "machine/rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/rng.h"

namespace harpe {
namespace rates_test {

LeafRate& find_line(Machine& machine, std::string_view leaf) {
  return *std::ranges::find_if(machine.rates, [&](const LeafRate& rate) {
    return rate.leaf == leaf && rate.dtype == "bf16";
  });
}

Machine preset(std::string_view name) {
  return parse_machine(find_machine_preset(name)->text, std::string(name)).value();
}

LeafShape product(double batch, double rows, double columns, double depth) {
  return {.batch = batch,
          .rows = rows,
          .columns = columns,
          .depth = depth,
          .flops = 2 * batch * rows * columns * depth,
          .bytes = 2 * batch * (rows * depth + depth * columns + rows * columns)};
}

LeafShape attention(double heads, double queries, double keys, double depth) {
  return {.batch = heads,
          .rows = queries,
          .columns = keys,
          .depth = depth,
          .flops = 4 * heads * queries * keys * depth,
          .bytes = 4 * heads * (queries + keys) * depth};
}

TEST(Rates, exact_at_samples_and_never_below_the_bound) {
  for (const MachinePreset& shipped : all_machine_presets()) {
    const Machine machine = preset(shipped.name);
    for (const LeafSample& sample : machine.samples) {
      EXPECT_EQ(leaf_time(machine, sample.leaf, sample.dtype, sample.shape, sample.causal,
                          sample.by == Supplier::Any ? Supplier::Own : sample.by),
                sample.time);
      EXPECT_LE(
          leaf_bound(machine, sample.leaf, sample.dtype, sample.shape.flops, sample.shape.bytes),
          sample.time);
    }
  }
}

TEST(Rates, bound_is_below_the_time_of_every_shape) {
  std::uint64_t drawn = 0;
  const auto extent = [&] {
    const std::uint64_t bits = mix_bits(++drawn * kStreamStep);
    return std::floor(std::exp(12 * static_cast<double>(bits >> 11U) * 0x1p-53));
  };
  for (const MachinePreset& shipped : all_machine_presets()) {
    const Machine machine = preset(shipped.name);
    for (int i = 0; i < 3000; ++i) {
      const bool is_product = i % 2 == 0;
      const LeafShape shape = is_product ? product(extent(), extent(), extent(), extent())
                                         : attention(extent(), extent(), extent(), extent());
      const char* const leaf = is_product ? "matmul" : "attn_fwd";
      for (const char* const dtype : {"bf16", "f32", "f8e4m3"}) {
        const Picoseconds time = leaf_time(machine, leaf, dtype, shape, i % 4 == 1);
        EXPECT_LE(leaf_bound(machine, leaf, dtype, shape.flops, shape.bytes), time);
        EXPECT_GT(time, Picoseconds(0));
      }
    }
  }
}

// Grows one extent at a time. Corrections differ between samples, so a small decrease is allowed.
TEST(Rates, larger_leaves_take_longer) {
  const Machine measured = preset("h200x8");
  const Machine modelled = preset("h100x8");
  for (const double step : {1.0, 1.3, 2.0}) {
    for (const char* const leaf : {"matmul", "attn_fwd", "attn_bwd"}) {
      for (int axis = 0; axis < 4; ++axis) {
        Picoseconds last;
        Picoseconds last_modelled;
        for (int i = 0; i < 40; ++i) {
          double extents[] = {1, 512 * step, 1024, 128 * step};
          extents[axis] *= std::pow(1.2, i);
          const LeafShape shape = product(extents[0], extents[1], extents[2], extents[3]);
          const Picoseconds time = leaf_time(measured, leaf, "bf16", shape, false);
          EXPECT_GE(time.seconds(), 0.97 * last.seconds()) << leaf << " " << axis << " " << i;
          const Picoseconds model = leaf_time(modelled, leaf, "bf16", shape, false);
          EXPECT_GE(model, last_modelled) << leaf << " " << axis << " " << i;
          last = time;
          last_modelled = model;
        }
      }
    }
  }
}

TEST(Rates, whole_tiles_and_waves) {
  const Machine machine = preset("h100x8");
  const auto time = [&](double tiles) {
    LeafShape shape = product(tiles, 128, 128, 4096);
    shape.bytes = 0;
    return leaf_time(machine, "matmul", "bf16", shape, false).microseconds();
  };
  // 132 tiles of 128 x 128 fill the SMs once; one more begins a second wave.
  const double wave = 2e-6 * 132 * 128 * 128 * 4096 / 880 * (1 + 256.0 / 4096);
  EXPECT_NEAR(time(66), 2 + wave, 1e-3);
  EXPECT_NEAR(time(132), 2 + wave, 1e-3);
  EXPECT_NEAR(time(133), 2 + 2 * wave, 1e-3);
  // With few tiles, SMs split the depth of a tile.
  EXPECT_NEAR(time(1), 2 + wave * std::sqrt(1.0 / 66), 1e-3);
}

// Up to few_rows another kernel runs. It streams columns and wastes no tiles, and samples of one
// kernel do not apply to the other.
TEST(Rates, few_rows_take_what_their_columns_take) {
  Machine machine = preset("h100x8");
  LeafRate& rate = find_line(machine, "matmul");
  rate.few_rows = 64;
  const auto time = [&](double rows) {
    return leaf_time(machine, "matmul", "bf16", product(1, rows, 8192, 8192), false).microseconds();
  };
  const auto memory = [&](double rows) {
    return 2 + product(1, rows, 8192, 8192).bytes /
                   (machine.processor.memory_bandwidth * rate.memory_share) * 1e6;
  };
  EXPECT_NEAR(time(64), memory(64), 1e-3);
  EXPECT_NEAR(time(1), memory(1), 1e-3);
  const double many = time(65);
  machine.samples.push_back({.leaf = "matmul",
                             .dtype = "bf16",
                             .shape = product(1, 16, 8192, 8192),
                             .causal = false,
                             .by = Supplier::Any,
                             .time = from_microseconds(2 * memory(16)),
                             .from = {}});
  EXPECT_GT(time(32), 1.3 * memory(32));
  EXPECT_EQ(time(65), many);
}

// Where columns are a loop, the kernel for few rows takes each problem's, and starts sooner.
TEST(Rates, few_queries_start_by_themselves) {
  Machine machine = preset("h100x8");
  LeafRate& rate = find_line(machine, "attn_fwd");
  rate.few_rows = 8;
  rate.few_start = from_microseconds(3);
  const auto beside_memory = [&](double queries) {
    const LeafShape shape = attention(64, queries, 65536, 128);
    const double memory =
        shape.bytes / (machine.processor.memory_bandwidth * rate.memory_share) * 1e6;
    return leaf_time(machine, "attn_fwd", "bf16", shape, false).microseconds() - memory;
  };
  machine.samples.clear();
  EXPECT_NEAR(beside_memory(1), 3, 1e-3);
  EXPECT_NEAR(beside_memory(8), 3, 1e-3);
  EXPECT_NEAR(beside_memory(9), rate.start.microseconds(), 1e-3);
}

TEST(Rates, waves_are_of_what_processors_hold) {
  Machine machine = preset("h100x8");
  const auto waves = [&](const char* leaf, double batch, double rows, double columns) {
    return leaf_waves(machine, leaf, "bf16", attention(batch, rows, columns, 128),
                      machine.processor.sms);
  };
  // 32 heads of 16 tiles of 128 rows on 132 SMs, for any number of keys.
  EXPECT_EQ(waves("attn_fwd", 32, 2048, 2048), 4);
  EXPECT_EQ(waves("attn_fwd", 32, 2048, 65536), 4);
  EXPECT_EQ(waves("attn_fwd", 1, 128, 2048), 1);
  // GEMMs also tile the columns; without `held` figures an SM holds one tile.
  EXPECT_EQ(waves("matmul", 1, 2048, 2048), 2);
  find_line(machine, "matmul").held_rows = 256;
  EXPECT_EQ(waves("matmul", 1, 2048, 2048), 1);
}

TEST(Rates, a_leaf_without_rate_takes_its_bytes) {
  const Machine machine = preset("h200x8");
  const LeafShape shape{.rows = 1e6, .flops = 1e9, .bytes = 4.32e9};
  EXPECT_NEAR(leaf_time(machine, "silu_mul", "bf16", shape, false).microseconds(), 1001, 1);
}

TEST(Rates, decode_is_bound_by_memory) {
  const Machine machine = preset("h200x8");
  // 64 heads in groups of 8 over 65,536 keys: 256 MiB of keys and values.
  LeafShape shape = attention(64, 1, 65536, 128);
  shape.bytes = 256.0 * 1024 * 1024;
  const double us = leaf_time(machine, "attn_fwd", "bf16", shape, false).microseconds();
  EXPECT_GT(us, 62);
  EXPECT_LT(us, 110);
}

TEST(Rates, levels_of_pairs_and_groups) {
  const Machine machine = preset("h200x8x16x8");
  EXPECT_EQ(level_between(machine, 0, 7), 0);
  EXPECT_EQ(level_between(machine, 7, 8), 1);
  EXPECT_EQ(level_between(machine, 127, 128), 2);
  EXPECT_EQ(level_between(machine, 1023, 0), 2);
  EXPECT_EQ(level_of_group(machine, 8, 1, 8), 0);
  EXPECT_EQ(level_of_group(machine, 3, 8, 16), 1);
  EXPECT_EQ(level_of_group(machine, 3, 128, 8), 2);
  EXPECT_EQ(level_of_group(machine, 5, 1, 1), 0);
}

TEST(Rates, transports_are_of_their_level) {
  const Machine machine = preset("h200x8x2");
  ASSERT_NE(find_transport(machine, "ce", 0), nullptr);
  EXPECT_EQ(find_transport(machine, "ce", 0)->level, "nvlink");
  EXPECT_EQ(find_transport(machine, "ce", 1), nullptr);
  EXPECT_EQ(find_transport(machine, "proxy", 0), nullptr);
  EXPECT_NE(find_transport(machine, "proxy", 1), nullptr);
  EXPECT_EQ(find_transport(machine, "ce", 2), nullptr);
}

TEST(Rates, completions_are_on_lines_over_groups) {
  Machine machine = preset("h200x8x16");
  const auto time = [&](std::int64_t groups, std::int64_t outstanding) {
    return completion_time(machine, 1, groups, outstanding, {}).microseconds();
  };
  EXPECT_EQ(time(8, 1), 0);  // no line, no time
  const auto add = [&](std::int64_t groups, std::int64_t outstanding, double us) {
    machine.completions.push_back({.level = "rail",
                                   .groups = groups,
                                   .outstanding = outstanding,
                                   .time = from_microseconds(us),
                                   .from = {}});
  };
  add(2, 1, 10);
  EXPECT_EQ(time(16, 9), 10);  // one line: the same everywhere
  add(8, 1, 60);
  EXPECT_EQ(time(2, 1), 10);
  EXPECT_NEAR(time(5, 1), 35, 1e-6);
  EXPECT_NEAR(time(8, 1), 60, 1e-6);
  EXPECT_NEAR(time(14, 1), 110, 1e-6);  // extrapolated
  EXPECT_EQ(time(1, 1), 10);            // but never below the first point
  add(2, 4, 30);
  EXPECT_NEAR(time(2, 2), 20, 1e-6);
  EXPECT_NEAR(time(2, 100), 30, 1e-6);  // not beyond the last measured value
  EXPECT_NEAR(time(5, 4), 45, 1e-6);
  machine.completions = {{.level = "rail", .groups = 2, .time = {}, .behind = 1.5, .from = {}}};
  EXPECT_EQ(completion_time(machine, 1, 8, 1, from_microseconds(4)), from_microseconds(6));
}

TEST(Rates, drains_of_the_nic_grow_with_groups) {
  Machine machine = preset("h200x8x16");
  const auto time = [&](std::int64_t groups) {
    return nic_drain_time(machine, 1, groups).microseconds();
  };
  machine.completions = {
      {.level = "rail", .groups = 1, .time = {}, .from = {}},
      {.level = "rail", .groups = 3, .time = {}, .nic_drain = from_microseconds(4), .from = {}}};
  machine.completions.push_back(
      {.level = "rail", .groups = 3, .outstanding = 64, .time = {}, .from = {}});
  EXPECT_EQ(time(16), 0);  // the level has no drain time
  machine.levels[1].nic_drain = from_microseconds(5);
  EXPECT_EQ(time(1), 5);
  EXPECT_EQ(time(2), 7);
  EXPECT_EQ(time(16), 35);
  machine.completions.clear();
  EXPECT_EQ(time(16), 5);
}

TEST(Rates, collectives_follow_their_samples) {
  Machine machine = preset("h200x8");
  std::erase_if(machine.collectives,
                [](const CollectiveSample& sample) { return sample.by != Supplier::Any; });
  const auto time = [&](CollectiveKind kind, std::int64_t ranks, double bytes) {
    return collective_time(machine, kind, 0, ranks, bytes).microseconds();
  };
  constexpr double kMib = 1024 * 1024;
  EXPECT_DOUBLE_EQ(time(CollectiveKind::AllGather, 8, 8 * kMib), 213.15);
  EXPECT_NEAR(time(CollectiveKind::AllGather, 8, 20 * kMib), (213.15 + 731.68) / 2, 0.1);
  EXPECT_DOUBLE_EQ(time(CollectiveKind::AllGather, 8, 1), 57.7);
  // Twice the last sample's bytes: extrapolated with the slope of the last two.
  EXPECT_NEAR(time(CollectiveKind::AllGather, 8, 512 * kMib),
              5402.85 + (5402.85 - 731.68) * 256 / 224, 0.1);
  // Four ranks gather 3 parts, not 7.
  EXPECT_NEAR(time(CollectiveKind::AllGather, 4, 8 * kMib * 7 / 3), 213.15, 0.1);
  for (const CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce,
        CollectiveKind::AllToAll, CollectiveKind::SendRecv}) {
    double last = 0;
    for (double bytes = 1; bytes < 4e9; bytes *= 1.1) {
      EXPECT_GE(time(kind, 8, bytes), last) << print(kind) << " " << bytes;
      last = time(kind, 8, bytes);
    }
  }
}

TEST(Rates, collectives_over_a_network_are_bound_by_its_ports) {
  const Machine machine = preset("h200x8x2");
  constexpr double kBytes = 64.0 * 1024 * 1024;
  const auto all_gather = [&](std::int64_t groups) {
    return collective_time(machine, CollectiveKind::AllGather, 1, 16, kBytes, groups).seconds();
  };
  // Two hosts: each NIC carries one rank's contribution, NVLink carries 15 parts.
  EXPECT_NEAR(all_gather(2), 65e-6 + 15 * kBytes / 348e9, 1e-6);
  EXPECT_EQ(all_gather(0), all_gather(2));
  // One processor per host: the NIC carries everything.
  EXPECT_NEAR(collective_time(machine, CollectiveKind::AllReduce, 1, 2, kBytes, 2).seconds(),
              65e-6 + kBytes / 46e9, 1e-6);
}

}  // namespace rates_test
}  // namespace harpe
