#include <array>

#include "tests/gpu/actions/on_gpu.h"

namespace harpe::testing_support {
namespace ragged_test {

using RaggedRows = OnGpu;
using actions::Rows;
using actions::SlotRows;

constexpr std::array kTypes = {DType::BF16, DType::F16, DType::F32, DType::F64};

// A block of which only the first rows are used; their number is itself in memory.
struct Block {
  std::int64_t before, capacity, features, used, result;

  [[nodiscard]] static std::int32_t* number(std::byte* base, std::int64_t at) {
    return reinterpret_cast<std::int32_t*>(base + at);
  }
  [[nodiscard]] std::int64_t elements() const { return capacity * features; }
  template <std::size_t kOperands>
  [[nodiscard]] SlotRows<kOperands> slots(std::byte* base) const {
    SlotRows<kOperands> result_rows;
    result_rows.used = {.rows = number(base, used), .before = before};
    result_rows.capacity = capacity;
    result_rows.strides.fill(features);
    result_rows.result = result < 0 ? nullptr : number(base, result);
    return result_rows;
  }
};

Block draw_block(Arena& arena, unsigned seed) {
  Block block{.before = arena.draw(0, 20),
              .capacity = arena.draw(1, 60),
              .features = seed % 2 == 0 ? 32 : arena.draw(1, 50),
              .used = arena.add(DType::I32, 1),
              .result = seed % 3 == 0 ? -1 : arena.add(DType::I32, 1)};
  *Block::number(arena.bytes().data(), block.used) = static_cast<std::int32_t>(arena.draw(0, 90));
  return block;
}

TEST_F(RaggedRows, are_moved_and_rounded) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Arena arena(seed);
    const Block block = draw_block(arena, seed);
    const DType to = kTypes[seed % 4];
    const DType from = seed % 5 == 0 ? kTypes[seed / 4 % 4] : to;
    const std::int64_t to_at = arena.add(to, block.elements());
    const std::int64_t from_at = arena.add(from, block.elements());
    const auto make = [&](std::byte* base) {
      const std::vector<std::int64_t> strides[] = {{1}, {1}};
      actions::Assign assign;
      assign.to.data = base + to_at;
      assign.to.dtype = to;
      assign.from.data = base + from_at;
      assign.from.dtype = from;
      assign.rows = Rows(std::vector<std::int64_t>{block.features}, strides);
      assign.slots = block.slots<2>(base);
      return actions::Action{assign};
    };
    check(arena, make, seed % 2 == 0);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(RaggedRows, are_added) {
  for (unsigned seed = 0; seed < 16; ++seed) {
    Arena arena(seed);
    const Block block = draw_block(arena, seed);
    const DType state = seed % 2 == 0 ? DType::F32 : DType::F64;
    const DType from = kTypes[seed % 4];
    const std::int64_t to_at = arena.add(state, block.elements());
    const std::int64_t from_at = arena.add(from, block.elements());
    check(arena, [&](std::byte* base) {
      const std::vector<std::int64_t> strides[] = {{1}, {1}};
      actions::Add add;
      add.to.data = base + to_at;
      add.to.dtype = state;
      add.from.data = base + from_at;
      add.from.dtype = from;
      add.rows = Rows(std::vector<std::int64_t>{block.features}, strides);
      add.slots = block.slots<2>(base);
      return actions::Action{add};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(RaggedRows, are_mapped) {
  for (unsigned seed = 0; seed < 16; ++seed) {
    Arena arena(seed);
    const Block block = draw_block(arena, seed);
    const DType dtype = kTypes[seed % 4];
    const std::int64_t to_at = arena.add(dtype, block.elements());
    const std::int64_t a_at = arena.add(dtype, block.elements());
    const std::int64_t b_at = arena.add(dtype, block.elements());
    check(arena, [&](std::byte* base) {
      const std::vector<std::int64_t> strides[] = {{}, {}, {}};
      actions::Apply apply;
      apply.first = {.function = Pointwise::Mul,
                     .length = block.features,
                     .to = base + to_at,
                     .to_dtype = dtype,
                     .to_stride = 1,
                     .a = {.data = base + a_at, .dtype = dtype, .stride = 1},
                     .b = {.data = base + b_at, .dtype = dtype, .stride = 1}};
      apply.rows = Rows(std::vector<std::int64_t>{}, strides);
      apply.slots = block.slots<3>(base);
      return actions::Action{apply};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// Only f64 and f32, whose GEMMs are plain: kernels of other types may multiply all rows.
TEST_F(RaggedRows, are_multiplied) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Arena arena(seed);
    const Block block = draw_block(arena, seed);
    const DType dtype = seed % 2 == 0 ? DType::F32 : DType::F64;
    const std::int64_t n = arena.draw(1, 100);
    const std::int64_t k = block.features;
    const double bound = 2 * static_cast<double>(k + 1) * unit_roundoff(dtype);
    const std::int64_t a = arena.add(dtype, block.capacity * k);
    const std::int64_t b = arena.add(dtype, k * n);
    const std::int64_t c = arena.add(dtype, block.capacity * n, bound * static_cast<double>(k));
    check(arena, [&](std::byte* base) {
      actions::Multiply multiply;
      multiply.first = {
          .m = block.capacity,
          .n = n,
          .k = k,
          .a = {.data = base + a, .dtype = dtype, .row_stride = k, .column_stride = 1},
          .b = {.data = base + b, .dtype = dtype, .row_stride = n, .column_stride = 1},
          .c = base + c,
          .c_row_stride = n,
          .accumulate = seed % 3 == 0};
      multiply.used = {.rows = Block::number(base, block.used), .before = block.before};
      multiply.result = block.result < 0 ? nullptr : Block::number(base, block.result);
      return actions::Action{std::move(multiply)};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// Several row slabs of several experts, whose weights are consecutive in memory.
struct Experts {
  std::int64_t experts, slabs, capacity, n, k;
  std::int64_t a, b, c;  // of the first slab
  bool turned;           // B is stored with K contiguous
  std::vector<Block> blocks;

  [[nodiscard]] actions::Action multiply(std::byte* base, std::size_t slab) const {
    const auto at = static_cast<std::int64_t>(slab);
    actions::Multiply multiply;
    multiply.first = {.m = capacity,
                      .n = n,
                      .k = k,
                      .a = {.data = base + a + at * capacity * k * 2,
                            .dtype = DType::BF16,
                            .row_stride = k,
                            .column_stride = 1},
                      .b = {.data = base + b + at / slabs * k * n * 2,
                            .dtype = DType::BF16,
                            .row_stride = turned ? 1 : n,
                            .column_stride = turned ? k : 1},
                      .c = base + c + at * capacity * n * 4,
                      .c_row_stride = n};
    multiply.used = {.rows = Block::number(base, blocks[slab].used), .before = 0, .taken = 0.3};
    multiply.result = Block::number(base, blocks[slab].result);
    return actions::Action{std::move(multiply)};
  }
};

Experts draw_experts(Arena& arena, unsigned seed) {
  Experts all{.experts = arena.draw(1, 6),
              .slabs = arena.draw(1, 5),
              .capacity = seed % 3 == 0 ? arena.draw(200, 700) : arena.draw(1, 90),
              .n = 8 * arena.draw(1, 80),
              .k = 64 * arena.draw(1, 5),
              .turned = seed % 2 == 1};
  const std::int64_t count = all.experts * all.slabs;
  const double bound = 2 * static_cast<double>(all.k + 1) * unit_roundoff(DType::F32);
  all.a = arena.add(DType::BF16, count * all.capacity * all.k);
  all.b = arena.add(DType::BF16, all.experts * all.k * all.n);
  all.c = arena.add(DType::F32, count * all.capacity * all.n, bound * static_cast<double>(all.k));
  for (std::int64_t slab = 0; slab < count; ++slab) {
    all.blocks.push_back({.before = 0,
                          .capacity = all.capacity,
                          .features = all.k,
                          .used = arena.add(DType::I32, 1),
                          .result = arena.add(DType::I32, 1)});
    const std::int64_t used = seed % 5 == 0 ? all.capacity : arena.draw(0, all.capacity);
    *Block::number(arena.bytes().data(), all.blocks.back().used) = static_cast<std::int32_t>(used);
  }
  return all;
}

// All slabs run in one launch. Unused rows of the result are undefined and not compared.
TEST_F(RaggedRows, are_multiplied_by_experts) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Arena arena(seed);
    const Experts all = draw_experts(arena, seed);
    std::vector<MakeAction> makes;
    for (std::size_t slab = 0; slab < all.blocks.size(); ++slab) {
      makes.emplace_back([&all, slab](std::byte* base) { return all.multiply(base, slab); });
    }
    Outcome outcome = run_on_gpu(arena, makes);
    ASSERT_EQ(outcome.launches.size(), 1U) << "seed " << seed;
    for (std::size_t slab = 0; slab < all.blocks.size(); ++slab) {
      const std::int64_t used = *Block::number(arena.bytes().data(), all.blocks[slab].used);
      const std::int64_t row = all.n * 4;
      const std::int64_t first = all.c + static_cast<std::int64_t>(slab) * all.capacity * row;
      std::copy(arena.bytes().begin() + first + used * row,
                arena.bytes().begin() + first + all.capacity * row,
                outcome.bytes.begin() + first + used * row);
    }
    ASSERT_EQ(arena.compare(run_on_host(arena, makes), outcome.bytes), "") << "seed " << seed;
  }
}

}  // namespace ragged_test
}  // namespace harpe::testing_support
