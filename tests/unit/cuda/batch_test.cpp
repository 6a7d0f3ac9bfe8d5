#include "exec/cuda/kernels/batch.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/plain/plain_launch.h"

namespace harpe::cuda {
namespace batch_test {

constexpr int kMultiprocessors = 132;
constexpr DeviceAddress kRows = 0x1000'0000;
constexpr DeviceAddress kWeights = 0x2000'0000;
constexpr DeviceAddress kResults = 0x3000'0000;

std::array<std::int32_t, 16> numbers{};  // numbers of used rows; never read here

std::byte* at(DeviceAddress address) { return reinterpret_cast<std::byte*>(address); }

device::UsedRows used(std::size_t from, std::size_t to, std::int64_t capacity) {
  return {.rows = &numbers[from], .result = &numbers[to], .before = 0, .capacity = capacity};
}

// The rows of slab `slab` times the 64 x 128 bf16 weights of an expert.
GemmSpec product(std::size_t slab, std::size_t expert) {
  GemmSpec spec{.n = 128, .k = 64, .out = device::Element::F32, .b_stride = 128};
  spec.b = kWeights + expert * 64 * 128 * 2;
  spec.panels = {
      {.rows = 32,
       .k_chunks = {{.a = kRows + slab * 32 * 64 * 2, .stride = 64, .k_begin = 0, .k_count = 64}},
       .c = kResults + slab * 32 * 128 * 4,
       .c_stride = 128,
       .used = used(slab, slab + 8, 32)}};
  return spec;
}

// `rows` consecutive rows of eight 16-byte words.
PlainLaunch move(DeviceAddress to, DeviceAddress from, std::int64_t rows) {
  device::MoveArgs args{};
  args.to = at(to);
  args.from = at(from);
  args.nest.count = 2;
  args.nest.kept = 2;
  args.nest.lengths[0] = rows;
  args.nest.lengths[1] = 8;
  for (int operand = 0; operand < 2; ++operand) {
    args.nest.bytes[0][operand] = 128;
    args.nest.bytes[1][operand] = 16;
  }
  args.words = rows * 8;
  args.word_bytes = 16;
  return {.kernel = PlainKernel::Move, .wide = false, .blocks = 700, .args = args};
}

TEST(Batched, makes_groups_of_products_that_share_weights_one_after_the_other) {
  const std::vector<LaunchSpec> launches = {product(0, 0), product(1, 2), product(2, 0),
                                            product(3, 2)};
  const auto batch = batched(launches, kMultiprocessors);
  ASSERT_EQ(batch.size(), 1U);
  const auto& groups = batch.front().get<GemmSpec>();
  EXPECT_EQ(groups.b, kWeights);
  EXPECT_EQ(groups.b_rows, 3 * 64);
  ASSERT_EQ(groups.panels.size(), 4U);
  EXPECT_EQ(groups.panels[1].b_first, 0);
  EXPECT_EQ(groups.panels[2].b_first, 2 * 64);
  EXPECT_EQ(groups.panels[1].k_chunks.front().a, kRows + 2 * 32 * 64 * 2);
  EXPECT_EQ(groups.panels[1].used.rows, &numbers[2]);
}

TEST(Batched, leaves_products_alone_that_are_no_group) {
  GemmSpec all_rows = product(1, 1);
  all_rows.panels.front().used = {};
  EXPECT_EQ(batched({product(0, 0), all_rows}, kMultiprocessors).size(), 2U);
  GemmSpec wider = product(1, 1);
  wider.n = 64;
  EXPECT_EQ(batched({product(0, 0), wider}, kMultiprocessors).size(), 2U);
  GemmSpec elsewhere = product(1, 1);
  elsewhere.b += 16;  // not whole rows behind the first
  EXPECT_EQ(batched({product(0, 0), elsewhere}, kMultiprocessors).size(), 2U);
  // The copy engine would read beyond a group's last row into the next expert's.
  GemmSpec first = product(0, 0);
  GemmSpec second = product(1, 1);
  for (GemmSpec* const spec : {&first, &second}) {
    spec->k = 56;
    spec->panels.front().k_chunks.front().k_count = 56;
  }
  EXPECT_EQ(batched({first, second}, kMultiprocessors).size(), 2U);
}

TEST(Batched, leaves_products_alone_that_read_what_another_makes) {
  GemmSpec rows = product(1, 1);
  rows.panels.front().k_chunks.front().a = kResults + 64;
  EXPECT_EQ(batched({product(0, 0), rows}, kMultiprocessors).size(), 2U);
  GemmSpec first = product(0, 0);
  first.panels.front().c = kWeights + 64 * 128 * 2;  // the next expert's weights
  EXPECT_EQ(batched({first, product(1, 1)}, kMultiprocessors).size(), 2U);
}

TEST(Batched, gives_moves_a_table_of_places) {
  PlainLaunch first = move(kResults, kRows, 32);
  PlainLaunch second = move(kResults + 8192, kRows + 4096, 32);
  std::get<device::MoveArgs>(first.args).used = used(0, 8, 32);
  std::get<device::MoveArgs>(second.args).used = used(1, 9, 32);
  const auto batch = batched({first, second}, kMultiprocessors);
  ASSERT_EQ(batch.size(), 1U);
  const auto& launch = batch.front().get<PlainLaunch>();
  EXPECT_EQ(launch.places, 2);
  EXPECT_EQ(launch.blocks, 700);
  std::array<device::StridedPlace, 2> places{};
  ASSERT_EQ(launch.table.size(), sizeof places);
  std::memcpy(places.data(), launch.table.data(), sizeof places);
  EXPECT_EQ(places[1].to, at(kResults + 8192));
  EXPECT_EQ(places[1].a, at(kRows + 4096));
  EXPECT_EQ(places[1].used.result, &numbers[9]);
}

TEST(Batched, keeps_the_order_of_what_depends_on_what_was_before) {
  const PlainLaunch first = move(kResults, kRows, 32);
  const PlainLaunch reads_it = move(kResults + 8192, kResults + 4000, 32);
  EXPECT_EQ(batched({first, reads_it}, kMultiprocessors).size(), 2U);
  const PlainLaunch overwrites_it = move(kResults + 4000, kRows + 8192, 32);
  EXPECT_EQ(batched({first, overwrites_it}, kMultiprocessors).size(), 2U);
  const PlainLaunch overwrites_its_operand = move(kRows + 4000, kRows + 65536, 32);
  EXPECT_EQ(batched({first, overwrites_its_operand}, kMultiprocessors).size(), 2U);
  // The first move stores the number of rows that the second one reads.
  PlainLaunch counts = first;
  PlainLaunch counted = move(kResults + 8192, kRows + 8192, 32);
  std::get<device::MoveArgs>(counts.args).used = used(0, 8, 32);
  std::get<device::MoveArgs>(counted.args).used = used(8, 9, 32);
  EXPECT_EQ(batched({counts, counted}, kMultiprocessors).size(), 2U);
}

TEST(Batched, takes_what_is_alike_alone) {
  const PlainLaunch first = move(kResults, kRows, 32);
  EXPECT_EQ(batched({first, move(kResults + 8192, kRows + 8192, 16)}, kMultiprocessors).size(), 2U);
  const std::vector<LaunchSpec> mixed = {first, product(0, 0),
                                         move(kResults + 65536, kRows + 65536, 32)};
  EXPECT_EQ(batched(mixed, kMultiprocessors).size(), 3U);
}

}  // namespace batch_test
}  // namespace harpe::cuda
