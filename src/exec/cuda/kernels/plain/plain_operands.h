#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// Operands of attention forward and backward, as plain kernels have them.
namespace harpe::cuda {

// Operands of Attend's loops, without the mask's tables.
enum AttendOperand : std::uint8_t { kQ, kK, kV, kO, kL, kAttendOperands };
inline constexpr std::size_t kAllAttendOperands = kAttendOperands + actions::kMaskTables;

// Operands of Differentiate's loops, without the mask's tables.
enum BackwardOperand : std::uint8_t {
  kBackwardQ,
  kBackwardK,
  kBackwardV,
  kDo,
  kLse,
  kDelta,
  kDq,
  kDk,
  kDv,
  kBackwardOperands
};
inline constexpr std::size_t kAllBackwardOperands = kBackwardOperands + actions::kMaskTables;

[[nodiscard]] device::PlainMatrix plain(const MatrixView& matrix, device::Number number);

[[nodiscard]] device::PlainMask plain(const Visibility& visible);

// The tables of one launch, each moved by its number of bytes.
[[nodiscard]] device::PlainTables tables_of(
    const MaskTables& tables, std::span<const std::int64_t, actions::kMaskTables> bytes);

}  // namespace harpe::cuda
