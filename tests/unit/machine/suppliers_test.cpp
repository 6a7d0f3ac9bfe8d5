#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "machine/rates.h"

namespace harpe {
namespace {

using testing::HasSubstr;

Machine h200x8() {
  return parse_machine(find_machine_preset("h200x8")->text, "h200x8.machine").value();
}

LeafShape product(double rows, double columns, double depth) {
  return {.rows = rows,
          .columns = columns,
          .depth = depth,
          .flops = 2 * rows * columns * depth,
          .bytes = 2 * (rows * depth + depth * columns + rows * columns)};
}

double time_of(const Machine& machine, const LeafShape& shape, Supplier by) {
  return leaf_time(machine, "matmul", "bf16", shape, false, by).microseconds();
}

Machine without_products() {
  Machine machine = h200x8();
  std::erase_if(machine.samples, [](const LeafSample& one) { return one.leaf == "matmul"; });
  return machine;
}

void add_sample(Machine& machine, const LeafShape& shape, Supplier by, double us) {
  machine.samples.push_back({.leaf = "matmul",
                             .dtype = "bf16",
                             .shape = shape,
                             .by = by,
                             .time = from_microseconds(us),
                             .from = {}});
}

// Columns and depth on one of two ranks, for layers of models with 8 to 70 billion weights. The
// last two were not measured.
struct Weights {
  double columns;
  double depth;
};
constexpr std::array kWeights = {Weights{5120, 8192},  Weights{28672, 8192}, Weights{14336, 4096},
                                 Weights{8192, 4096},  Weights{8192, 14336}, Weights{4096, 2048},
                                 Weights{5120, 12800}, Weights{25600, 5120}};
constexpr std::array kRows = {1.0,  2.0,  4.0,  8.0,   16.0,  24.0,  32.0,
                              48.0, 64.0, 96.0, 128.0, 160.0, 192.0, 256.0};

TEST(Suppliers, short_products_read_their_weights) {
  const Machine machine = h200x8();
  for (const auto& [columns, depth] : kWeights) {
    const double weights_us = 2 * columns * depth / machine.processor.memory_bandwidth * 1e6;
    for (const double rows : kRows) {
      const double own = time_of(machine, product(rows, columns, depth), Supplier::Own);
      const double library = time_of(machine, product(rows, columns, depth), Supplier::Library);
      EXPECT_GE(library, weights_us) << rows << " " << columns << " " << depth;
      EXPECT_GE(own, 0.85 * library) << rows << " " << columns << " " << depth;
      EXPECT_LE(library, 2.5 * weights_us + 5) << rows << " " << columns << " " << depth;
    }
  }
}

TEST(Suppliers, more_rows_take_libraries_hardly_less) {
  const Machine machine = h200x8();
  for (const auto& [columns, depth] : kWeights) {
    double last = 0;
    for (const double rows : kRows) {
      const double time = time_of(machine, product(rows, columns, depth), Supplier::Library);
      EXPECT_GE(time, 0.9 * last) << rows << " " << columns << " " << depth;
      last = time;
    }
  }
}

// A kernel may be slower for one row than for more rows. Between samples its time lies between
// theirs.
TEST(Suppliers, own_products_may_take_less_for_more_rows) {
  Machine machine = without_products();
  add_sample(machine, product(1, 768, 4096), Supplier::Own, 8);
  add_sample(machine, product(16, 768, 4096), Supplier::Own, 6);
  for (const double rows : {2.0, 4.0, 8.0}) {
    const double us = time_of(machine, product(rows, 768, 4096), Supplier::Own);
    EXPECT_LT(us, 8) << rows;
    EXPECT_GT(us, 6) << rows;
  }
}

// 129 and 192 rows take as many tiles as 256. Fewer than 128 rows leave a part of a tile empty:
// their time lies between the samples.
TEST(Suppliers, rows_of_the_same_tiles_take_as_long) {
  Machine machine = without_products();
  for (const auto& [rows, us] : {std::pair{64.0, 10.0}, {128.0, 12.0}, {256.0, 20.0}}) {
    add_sample(machine, product(rows, 4096, 4096), Supplier::Library, us);
  }
  const auto library = [&](double rows) {
    return time_of(machine, product(rows, 4096, 4096), Supplier::Library);
  };
  EXPECT_EQ(library(192), 20);
  EXPECT_EQ(library(129), 20);
  EXPECT_NEAR(library(90.5), 11, 0.01);
}

TEST(Suppliers, samples_without_one_are_anybodys) {
  Machine machine = without_products();
  const LeafShape shape = product(64, 4096, 4096);
  add_sample(machine, shape, Supplier::Any, 30);
  EXPECT_EQ(time_of(machine, shape, Supplier::Own), 30);
  EXPECT_EQ(time_of(machine, shape, Supplier::Library), 30);
  add_sample(machine, shape, Supplier::Library, 20);
  EXPECT_EQ(time_of(machine, shape, Supplier::Own), 30);
  EXPECT_EQ(time_of(machine, shape, Supplier::Library), 20);
  add_sample(machine, shape, Supplier::Own, 40);
  EXPECT_EQ(time_of(machine, shape, Supplier::Own), 40);
}

TEST(Suppliers, collectives_have_curves_of_their_own) {
  const Machine machine = h200x8();
  const auto time = [&](CollectiveKind kind, std::int64_t ranks, Supplier by) {
    return collective_time(machine, kind, 0, ranks, 65536, 0, by).microseconds();
  };
  const auto whose = [&](CollectiveKind kind, std::int64_t ranks, Supplier by) {
    return collective_samples_of(machine, kind, 0, ranks, by);
  };
  // Two ranks pull in 9 us; the library's eight ranks take 58.
  EXPECT_NEAR(time(CollectiveKind::AllGather, 2, Supplier::Own), 8.9, 0.5);
  EXPECT_NEAR(time(CollectiveKind::AllGather, 2, Supplier::Library), 5, 0.5);
  EXPECT_EQ(time(CollectiveKind::AllGather, 8, Supplier::Own), 57.7);
  EXPECT_EQ(whose(CollectiveKind::AllGather, 2, Supplier::Own), Supplier::Own);
  EXPECT_EQ(whose(CollectiveKind::AllGather, 4, Supplier::Own), Supplier::Own);
  EXPECT_EQ(whose(CollectiveKind::AllGather, 8, Supplier::Own), Supplier::Any);
  EXPECT_EQ(whose(CollectiveKind::AllReduce, 2, Supplier::Own), Supplier::Any);
  EXPECT_EQ(whose(CollectiveKind::AllReduce, 2, Supplier::Library), Supplier::Library);
  Machine bare = machine;
  bare.collectives.clear();
  EXPECT_FALSE(
      collective_samples_of(bare, CollectiveKind::AllGather, 0, 2, Supplier::Own).has_value());
}

TEST(Suppliers, have_a_text) {
  constexpr std::string_view kText =
      "machine m {\n"
      "  processor p sms=4 memory=1gib bandwidth=100gbs from assumed \"t\"\n"
      "  level link switch size=2 bandwidth=10gbs from assumed \"t\"\n"
      "  transport ce at link bandwidth=10gbs from assumed \"t\"\n"
      "  collective all_gather at link by own ranks=2 bytes=1kib time=1us from assumed \"t\"\n"
      "  collective all_gather at link by library ranks=2 bytes=1kib time=2us from assumed \"t\"\n"
      "  collective all_gather at link ranks=2 bytes=1kib time=3us from assumed \"t\"\n"
      "  rate * * from assumed \"t\"\n"
      "  sample matmul bf16 by library rows=8 flops=1000 time=1us from assumed \"t\"\n"
      "  sample attn_fwd bf16 causal by own rows=8 flops=1000 time=2us from assumed \"t\"\n"
      "}\n";
  const Checked<Machine> machine = parse_machine(kText, "m.machine");
  ASSERT_TRUE(machine.ok()) << render(machine.error());
  EXPECT_EQ(print(*machine), kText);
  EXPECT_EQ(machine->collectives[1].by, Supplier::Library);
  EXPECT_EQ(machine->samples[1].by, Supplier::Own);
  EXPECT_TRUE(machine->samples[1].causal);
}

// A rate `by library` applies only to library leaves; without one they use the leaf's own rate. A
// line for the exact type precedes one for all types, whatever its supplier.
TEST(Suppliers, have_rates_of_their_own) {
  constexpr std::string_view kText =
      "machine m {\n"
      "  processor p sms=4 memory=1gib bandwidth=100gbs from assumed \"t\"\n"
      "  rate matmul bf16 peak=1tflops from assumed \"t\"\n"
      "  rate matmul bf16 by library peak=2tflops from assumed \"t\"\n"
      "  rate matmul * by library peak=4tflops from assumed \"t\"\n"
      "  rate attn_fwd bf16 peak=8tflops from assumed \"t\"\n"
      "  rate * * from assumed \"t\"\n"
      "}\n";
  const Checked<Machine> machine = parse_machine(kText, "m.machine");
  ASSERT_TRUE(machine.ok()) << render(machine.error());
  EXPECT_EQ(print(*machine), kText);
  const auto peak = [&](std::string_view leaf, std::string_view dtype, Supplier by) {
    return find_rate(*machine, leaf, dtype, by).peak;
  };
  EXPECT_EQ(peak("matmul", "bf16", Supplier::Own), 1e12);
  EXPECT_EQ(peak("matmul", "bf16", Supplier::Library), 2e12);
  EXPECT_EQ(peak("matmul", "f32", Supplier::Library), 4e12);
  EXPECT_EQ(peak("matmul", "f32", Supplier::Own), 0) << "that of all leaves";
  EXPECT_EQ(peak("attn_fwd", "bf16", Supplier::Library), 8e12) << "the leaf's own";
  const LeafShape shape{.rows = 1000, .columns = 1000, .depth = 1000, .flops = 2e9};
  const auto time = [&](Supplier by) {
    return leaf_time(*machine, "matmul", "bf16", shape, false, by);
  };
  EXPECT_EQ(time(Supplier::Own).value, 2 * time(Supplier::Library).value);
  EXPECT_EQ(leaf_bound(*machine, "matmul", "bf16", 2e9, 0, Supplier::Library).microseconds(), 1000);
}

// The rate for all leaves may not name a supplier.
TEST(Suppliers, have_no_rate_for_all_leaves) {
  const Checked<Machine> machine = parse_machine(
      "machine m {\n"
      "  processor p sms=4 memory=1gib bandwidth=100gbs from assumed \"t\"\n"
      "  rate * * by library from assumed \"t\"\n}\n",
      "m.machine");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code, DiagCode::M110);
}

TEST(Suppliers, others_are_refused) {
  const Checked<Machine> machine = parse_machine(
      "machine m {\n"
      "  processor p sms=4 memory=1gib bandwidth=100gbs from assumed \"t\"\n"
      "  rate * * from assumed \"t\"\n"
      "  sample matmul bf16 by librery rows=8 time=1us from assumed \"t\"\n}\n",
      "m.machine");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(render(machine.error()), HasSubstr("supplier `librery`"));
  EXPECT_THAT(render(machine.error()), HasSubstr("did you mean `library`?"));
}

}  // namespace
}  // namespace harpe
