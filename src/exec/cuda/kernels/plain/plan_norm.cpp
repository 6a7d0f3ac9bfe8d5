#include <algorithm>
#include <array>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_plans.h"

namespace harpe::cuda {
namespace {

using device::AddRmsNormArgs;

constexpr auto kNormOperands = static_cast<std::size_t>(AddRmsNormArgs::kOperands);

// An operand or a result; strides in elements.
struct NormOperand {
  const void* data;
  DType dtype;
  std::int64_t row_stride;
  std::int64_t stride;
};

std::array<NormOperand, kNormOperands> norm_operands(const AddRmsNormProblem& p) {
  const auto from = [](const auto& rows) {
    return NormOperand{rows.data, rows.dtype, rows.row_stride, rows.stride};
  };
  return {from(p.x), from(p.residual), from(p.weight), from(p.sum), from(p.y)};
}

bool is_dense(const std::array<NormOperand, kNormOperands>& operands, std::int64_t length,
              const Loops<kNormOperands>& loops) {
  constexpr std::int64_t kAlign = 16;
  if (length % device::kNormRun != 0) return false;
  for (std::size_t i = 0; i < kNormOperands; ++i) {
    const NormOperand& operand = operands[i];
    const bool lies_well = address_of(operand.data) % kAlign == 0 && operand.stride == 1 &&
                           operand.row_stride * size_in_bytes(operand.dtype) % kAlign == 0;
    const bool stays = std::ranges::all_of(loops, [&](const actions::Loop<kNormOperands>& loop) {
      return loop.bytes[i] % kAlign == 0;
    });
    if (operand.dtype != operands[0].dtype || !lies_well || !stays) return false;
  }
  return true;
}

}  // namespace

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::AddRmsNorm& norm) {
  LaunchSpecs launches;
  const AddRmsNormProblem& p = norm.first;
  const auto operands = norm_operands(p);
  const Loops<kNormOperands> loops = joined(norm.loops);
  AddRmsNormArgs args{};
  bool wide = false;
  for (std::size_t i = 0; i < kNormOperands; ++i) {
    const auto number = number_of(operands[i].dtype);
    if (!number)
      return no_kernel(choice, "norms of `" + std::string(print(operands[i].dtype)) + "`");
    const std::int64_t size = size_in_bytes(operands[i].dtype);
    args.numbers[i] = *number;
    args.row_bytes[i] = operands[i].row_stride * size;
    args.element_bytes[i] = operands[i].stride * size;
    wide = wide || operands[i].dtype == DType::F64;
  }
  args.dense = is_dense(operands, p.length, loops);
  args.rows = p.rows;
  args.length = p.length;
  args.epsilon = p.epsilon;
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        args.x = moved(p.x.data, offsets[0]);
        args.residual = moved(p.residual.data, offsets[1]);
        args.weight = moved(p.weight.data, offsets[2]);
        args.sum = moved(p.sum.data, offsets[3]);
        args.y = moved(p.y.data, offsets[4]);
        args.nest = nest_of(inner);
        args.all_rows = p.rows * turns_of(inner);
        if (args.all_rows <= 0) return;
        launches.emplace_back(PlainLaunch{.kernel = PlainKernel::AddRmsNorm,
                                          .wide = wide,
                                          .blocks = few_blocks(choice, args.all_rows),
                                          .args = args});
      }));
  return launches;
}

}  // namespace harpe::cuda
