#include <array>

#include "tests/gpu/actions/on_gpu.h"

namespace harpe::testing_support {
namespace {

using RaggedRows = OnGpu;
using actions::Rows;
using actions::SlotRows;

constexpr std::array kTypes = {DType::BF16, DType::F16, DType::F32, DType::F64};

// Rows of a block, of which some are used, and where that is written.
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

// In f64 and f32, whose products are plain; of the others all rows may be multiplied.
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

}  // namespace
}  // namespace harpe::testing_support
