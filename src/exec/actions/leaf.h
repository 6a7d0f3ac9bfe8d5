#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/actions/action.h"
#include "exec/actions/view.h"
#include "ir/mask.h"
#include "support/diag.h"

namespace harpe::actions {

// A statement from the view of its leaf's kernel. Participants are the operands, then the targets,
// then the buffers that its masks read.
struct LeafSite {
  const Nest& nest;
  const Stmt& stmt;
  // Per participant and dimension of its buffer: the axes of the space that form it, major first.
  std::vector<std::vector<std::vector<std::size_t>>> dims;
  std::vector<std::int64_t> lengths;  // per axis of the space: its whole length
  std::vector<std::string> names;     // per axis of the space
  std::optional<ResolvedMask> mask;   // its axes are axes of the space

  std::vector<Access> mask_reads = {};
  Products products = Products::Libraries;

  [[nodiscard]] std::size_t operands() const { return stmt.operands.size(); }
  [[nodiscard]] std::size_t targets_end() const { return operands() + stmt.targets.size(); }
  // Requires: a mask reads the buffer.
  [[nodiscard]] std::size_t mask_participant(const std::string& buffer) const;
  // All axes of a participant.
  [[nodiscard]] std::vector<std::size_t> axes_of(std::size_t participant) const;
  [[nodiscard]] const std::string& buffer_of(std::size_t participant) const;
};

// One call of a leaf.
struct LeafCall {
  const Cell& cell;
  std::vector<bool> accumulate;  // per target: its part of the cell already has contributions
};

constexpr std::size_t kNoStatistics = static_cast<std::size_t>(-1);

// How a leaf's actions are made. `elementwise`: opaque dimensions of its buffers correspond by
// position.
struct LeafCaller {
  bool elementwise;
  Checked<Action> (*call)(const LeafSite& site, const LeafCall& call);
};

[[nodiscard]] const LeafCaller* find_leaf_caller(std::string_view leaf);

// Errors: X002 operand types, X004 strides.
[[nodiscard]] Checked<Action> call_matmul(const LeafSite& site, const LeafCall& call);
// Errors: X002 operand types, X003 the leaf needs an axis whole that is cut.
[[nodiscard]] Checked<Action> call_attention(const LeafSite& site, const LeafCall& call);
[[nodiscard]] Checked<Action> call_attention_backward(const LeafSite& site, const LeafCall& call);
// Errors: X002 operand types, X003 the summed axis is cut, X011 more than one summed axis.
[[nodiscard]] Checked<Action> call_rowdot(const LeafSite& site, const LeafCall& call);
// Errors: X002 operand types, X003 the axis of the norm is cut.
[[nodiscard]] Checked<Action> call_add_rms_norm(const LeafSite& site, const LeafCall& call);
// Errors: X002 operand types, X003 experts, tokens or choices are cut.
[[nodiscard]] Checked<Action> call_limit_choices(const LeafSite& site, const LeafCall& call);
[[nodiscard]] Checked<Action> call_topk(const LeafSite& site, const LeafCall& call);
// Every leaf of kernels/pointwise.h. Errors: X002 operand types.
[[nodiscard]] Checked<Action> call_pointwise(const LeafSite& site, const LeafCall& call);
[[nodiscard]] Checked<Action> call_copy(const LeafSite& site, const LeafCall& call);

// X002 unless all operands have one type that kernels exist for, and targets the type of its
// states. Operands from number `statistics` on are one number per row: f32, or f64.
[[nodiscard]] Checked<Ok> check_types(const LeafSite& site, const Cell& cell,
                                      std::size_t statistics = kNoStatistics);
// X002 if the participant's type does not fit; `wanted` names the types that do.
[[nodiscard]] Checked<Ok> require_type(const LeafSite& site, const Cell& cell,
                                       std::size_t participant, bool fits, std::string_view wanted);
[[nodiscard]] constexpr bool is_index(DType dtype) {
  return dtype == DType::I32 || dtype == DType::I64;
}
// By how many bytes a step along an axis of the space moves in a participant's part.
[[nodiscard]] std::int64_t byte_stride(const Cell& cell, std::size_t participant, std::size_t axis);
// X003 unless the cell contains the whole axis.
[[nodiscard]] Checked<Ok> check_whole(const LeafSite& site, const Cell& cell, std::size_t axis);

}  // namespace harpe::actions
