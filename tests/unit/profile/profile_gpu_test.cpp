#include "profile/profile_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "machine/rates.h"

namespace harpe {
namespace profile_gpu_test {

using cuda::profile::GpuFigures;
using cuda::profile::LeafFigure;
using cuda::profile::TimedBytes;

LeafFigure product(double size, std::string_view dtype, double rate) {
  LeafFigure figure;
  figure.leaf = "matmul";
  figure.dtype = dtype;
  figure.rows = figure.columns = figure.depth = size;
  figure.flops = 2 * size * size * size;
  figure.bytes = 6 * size * size;
  figure.seconds = 3e-6 + figure.flops / rate;
  return figure;
}

LeafFigure heads(std::string_view leaf, std::string_view dtype, double rows, bool causal) {
  LeafFigure figure;
  figure.leaf = leaf;
  figure.dtype = dtype;
  figure.causal = causal;
  figure.batch = 32;
  figure.rows = figure.columns = rows;
  figure.depth = 128;
  figure.flops = 4 * 32 * rows * rows * 128 * (causal ? 0.5 : 1);
  figure.bytes = 4 * 2 * 32 * rows * 128;
  figure.seconds = 5e-6 + figure.flops / 5e14;
  return figure;
}

LeafFigure pointwise(std::string_view leaf, double bytes, double bandwidth) {
  LeafFigure figure;
  figure.leaf = leaf;
  figure.dtype = "bf16";
  figure.rows = bytes / 6;
  figure.bytes = bytes;
  figure.seconds = 1e-6 + bytes / bandwidth;
  return figure;
}

std::vector<TimedBytes> line(double start, double bandwidth) {
  std::vector<TimedBytes> times;
  for (const double bytes : {65536.0, 4194304.0, 134217728.0}) {
    times.push_back({bytes, start + bytes / bandwidth});
  }
  return times;
}

// Plausible figures of two GPUs.
GpuFigures figures_of(std::int64_t gpus) {
  GpuFigures figures;
  figures.gpu = "NVIDIA H200";
  figures.gpus = gpus;
  figures.starts = {.kernel = 1.3e-6,
                    .issue = 2.5e-6,
                    .event = 0.4e-6,
                    .signal = 3.1e-6,
                    .memory_bytes = 140e9,
                    .cache_bytes = 50.0 * 1024 * 1024,
                    .multiprocessors = 132};
  for (const double size : {256.0, 1024.0, 8192.0}) {
    figures.leaves.push_back(product(size, "bf16", 750e12));
    figures.leaves.push_back(product(size, "f32", 20e12));
  }
  for (const double rows : {1024.0, 8192.0}) {
    for (const bool causal : {false, true}) {
      figures.leaves.push_back(heads("attn_fwd", "bf16", rows, causal));
      figures.leaves.push_back(heads("attn_bwd", "f32", rows, causal));
    }
  }
  for (const double bytes : {393216.0, 8e8}) {
    figures.leaves.push_back(pointwise("add", bytes, 4.2e12));
    figures.leaves.push_back(pointwise("silu_mul", bytes, 3.9e12));
    figures.leaves.push_back(pointwise("rowdot", bytes, 4.0e12));
  }
  if (gpus == 1) return figures;
  figures.links = {.engine_pair = line(5e-6, 395e9),
                   .engine_ring = line(5e-6, 390e9),
                   .push_ring = line(4e-6, 360e9),
                   .pull_ring = line(6e-6, 300e9),
                   .push_blocks = {{4, 90e9}, {16, 345e9}, {32, 358e9}, {132, 360e9}},
                   .engine_pull = 380e9,
                   .engine_all_to_all = 399e9,
                   .engine_incast = 370e9};
  figures.links->collectives = {{cuda::profile::Pattern::AllGather, 1048576, 30e-6},
                                {cuda::profile::Pattern::ReduceScatter, 1048576, 25e-6}};
  figures.interference = {.product = 0.93, .copies = 0.9};
  return figures;
}

TEST(ProfileGpu, makes_a_machine_that_reads_back) {
  for (const std::int64_t gpus : {1, 2, 8}) {
    const Machine machine = machine_of(figures_of(gpus), "2026-11-22");
    EXPECT_TRUE(check_machine(machine).ok());
    const Checked<Machine> again = parse_machine(print(machine), "h200.machine");
    ASSERT_TRUE(again.ok()) << render(again.error());
    EXPECT_EQ(*again, machine);
    EXPECT_EQ(machine.processors(), gpus);
    EXPECT_EQ(machine.name, "h200x" + std::to_string(gpus) + "_measured");
    EXPECT_EQ(machine.processor.from.note,
              "NVIDIA H200 x " + std::to_string(gpus) + ", 2026-11-22; execution_start as h200x8");
    EXPECT_GT(machine.processor.execution_start, Picoseconds(0)) << "no profile measures it";
  }
}

TEST(ProfileGpu, keeps_libraries_apart) {
  const Machine alone = machine_of(figures_of(2), "2026-11-22");
  GpuFigures figures = figures_of(2);
  figures.libraries = cuda::profile::LibraryFigures{.versions = "NCCL 2, cuBLASLt 13"};
  LeafFigure fast = product(1024, "bf16", 790e12);
  fast.rows = 16;
  fast.bytes = 6e6;
  fast.flops = 2 * 16.0 * 1024 * 1024;
  fast.seconds = 1e-6;  // 6 TB/s: more than any Harpe leaf reaches
  figures.libraries->products = {fast};
  figures.libraries->collectives = {{cuda::profile::Pattern::AllGather, 1048576, 16e-6},
                                    {cuda::profile::Pattern::AllReduce, 1048576, 13e-6}};
  const Machine machine = machine_of(figures, "2026-11-22");
  EXPECT_EQ(parse_machine(print(machine), "m.machine").value(), machine);
  EXPECT_GE(machine.processor.memory_bandwidth, 6e12) << "the bound holds for libraries too";
  const LeafSample& sample = machine.samples.back();
  EXPECT_EQ(sample.by, Supplier::Library);
  EXPECT_EQ(sample.from.note, "NVIDIA H200 x 2, 2026-11-22, NCCL 2, cuBLASLt 13");
  EXPECT_EQ(leaf_time(machine, "matmul", "bf16", sample.shape, false, Supplier::Library),
            from_microseconds(1));
  EXPECT_NE(leaf_time(machine, "matmul", "bf16", sample.shape, false), from_microseconds(1));
  // A collective's time excludes its launch.
  const auto gather = [&](Supplier by) {
    return collective_time(machine, CollectiveKind::AllGather, 0, 2, 1048576, 0, by).microseconds();
  };
  EXPECT_NEAR(gather(Supplier::Library), 14.7, 1e-2);
  EXPECT_NEAR(gather(Supplier::Own), 28.7, 1e-2);
  // Rates are fitted to Harpe's own kernels only.
  ASSERT_EQ(machine.rates.size(), alone.rates.size());
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    EXPECT_EQ(machine.rates[i].peak, alone.rates[i].peak) << machine.rates[i].leaf;
  }
}

TEST(ProfileGpu, gives_each_transport_its_line) {
  const Machine machine = machine_of(figures_of(8), "2026-11-22");
  const auto expect = [&](std::string_view via, double start, double bandwidth, std::int64_t sms) {
    const TransportRate* const found = find_transport(machine, via, 0);
    ASSERT_NE(found, nullptr) << via;
    EXPECT_NEAR(found->start.seconds(), start, 1e-8) << via;
    EXPECT_NEAR(found->bandwidth, bandwidth, 1e8) << via;
    EXPECT_EQ(found->sms, sms) << via;
  };
  expect("ce", 5e-6, 390e9, 0);
  expect("sm", 4e-6, 360e9, 16);  // 345 is within a twentieth of 360
  expect("tma", 4e-6, 360e9, 16);
  expect("nccl", 6e-6, 300e9, 16);
  EXPECT_EQ(find_transport(machine, "tma", 0)->from.origin, Origin::Assumed);
  // A port's rate is the best of all patterns.
  EXPECT_NEAR(machine.levels.front().bandwidth, 399e9, 1e8);
  EXPECT_EQ(machine.levels.front().latency, from_microseconds(3.1));
  // Excludes the launch, which the simulator adds.
  ASSERT_EQ(machine.collectives.size(), 2U);
  EXPECT_EQ(machine.collectives[0].kind, CollectiveKind::AllGather);
  EXPECT_EQ(machine.collectives[0].time, from_microseconds(28.7));
}

TEST(ProfileGpu, takes_what_does_not_show_as_nothing) {
  GpuFigures figures = figures_of(2);
  figures.starts.event = 0;
  EXPECT_EQ(machine_of(figures, "2026-11-22").processor.event, Picoseconds(0));
}

TEST(ProfileGpu, says_that_links_of_one_gpu_are_assumed) {
  const Machine machine = machine_of(figures_of(1), "2026-11-22");
  EXPECT_TRUE(machine.collectives.empty());
  ASSERT_FALSE(machine.transports.empty());
  for (const TransportRate& one : machine.transports) {
    EXPECT_EQ(one.from,
              (Provenance{Origin::Assumed, "as h200x8: one GPU has no links to measure"}));
  }
  EXPECT_EQ(machine.levels.front().from.origin, Origin::Assumed);
}

TEST(ProfileGpu, takes_samples_as_they_are_and_keeps_bounds) {
  const Machine machine = machine_of(figures_of(2), "2026-11-22");
  EXPECT_EQ(machine.samples.size(), 14U);
  for (const LeafSample& sample : machine.samples) {
    EXPECT_EQ(leaf_time(machine, sample.leaf, sample.dtype, sample.shape, sample.causal),
              sample.time)
        << sample.leaf;
  }
  // 4.2 TB/s, less the fixed time of a short kernel.
  EXPECT_NEAR(machine.processor.memory_bandwidth, 4.18e12, 0.02e12);
  const LeafShape long_add{.bytes = 8e8};
  EXPECT_NEAR(leaf_time(machine, "add", "bf16", long_add, false).seconds(), 1e-6 + 8e8 / 4.2e12,
              4e-6);
  // Types without measurements are no faster than the slowest measured type.
  const auto rate = [&](std::string_view dtype) {
    const auto found = std::ranges::find_if(machine.rates, [&](const LeafRate& one) {
      return one.leaf == "matmul" && one.dtype == dtype;
    });
    return found == machine.rates.end() ? LeafRate{} : *found;
  };
  EXPECT_EQ(rate("f16").peak, rate("bf16").peak);
  EXPECT_EQ(rate("f16").from.origin, Origin::Assumed);
  EXPECT_EQ(rate("*").peak, rate("f32").peak);
}

}  // namespace profile_gpu_test
}  // namespace harpe
