#include "exec/actions/leaf.h"

#include <algorithm>
#include <array>

#include "support/check.h"

namespace harpe::actions {
namespace {

struct Entry {
  Leaf leaf;
  LeafCaller caller;
};

constexpr std::array kCallers = {
    Entry{Leaf::Matmul, {.elementwise = false, .call = call_matmul}},
    Entry{Leaf::AttentionForward, {.elementwise = false, .call = call_attention}},
    Entry{Leaf::AttentionBackward, {.elementwise = false, .call = call_attention_backward}},
    Entry{Leaf::RowDot, {.elementwise = false, .call = call_rowdot}},
    Entry{Leaf::AddRmsNorm, {.elementwise = false, .call = call_add_rms_norm}},
    Entry{Leaf::TopK, {.elementwise = false, .call = call_topk}},
    Entry{Leaf::LimitChoices, {.elementwise = false, .call = call_limit_choices}},
    Entry{Leaf::Copy, {.elementwise = true, .call = call_copy}},
};

// For every leaf of kernels/pointwise.h.
constexpr LeafCaller kPointwise{.elementwise = true, .call = call_pointwise};

}  // namespace

std::vector<std::size_t> LeafSite::axes_of(std::size_t participant) const {
  std::vector<std::size_t> axes;
  for (const std::vector<std::size_t>& dim : dims[participant]) {
    axes.insert(axes.end(), dim.begin(), dim.end());
  }
  return axes;
}

std::size_t LeafSite::mask_participant(const std::string& buffer) const {
  const auto found = std::ranges::find(mask_reads, buffer, &Access::buffer);
  HP_CHECK(found != mask_reads.end(), "a mask reads `" + buffer + "`");
  return targets_end() + static_cast<std::size_t>(found - mask_reads.begin());
}

const std::string& LeafSite::buffer_of(std::size_t participant) const {
  if (participant >= targets_end()) return mask_reads[participant - targets_end()].buffer;
  return participant < operands() ? stmt.operands[participant].buffer
                                  : stmt.targets[participant - operands()].buffer;
}

const LeafCaller* find_leaf_caller(std::string_view leaf) {
  for (const Entry& entry : kCallers) {
    if (is_leaf(leaf, entry.leaf)) return &entry.caller;
  }
  return find_pointwise(leaf) ? &kPointwise : nullptr;
}

Checked<Ok> check_types(const LeafSite& site, const Cell& cell, std::size_t statistics) {
  const DType operand = cell.views[0].dtype;
  const bool known = operand == DType::F32 || operand == DType::BF16 || operand == DType::F16 ||
                     operand == DType::F64;
  const DType state = operand == DType::F64 ? DType::F64 : DType::F32;
  for (std::size_t i = 0; i < site.targets_end(); ++i) {
    const bool statistic = i >= statistics && i < site.operands();
    const DType found = cell.views[i].dtype;
    const DType wanted = i < site.operands() && !statistic ? operand : state;
    const bool fits = statistic ? found == DType::F32 || found == DType::F64 : found == wanted;
    const std::string_view types = !known      ? "f32, bf16, f16 or f64"
                                   : statistic ? "f32 or f64"
                                               : print(wanted);
    HP_REQUIRE_OK(require_type(site, cell, i, known && fits, types));
  }
  return Ok{};
}

Checked<Ok> require_type(const LeafSite& site, const Cell& cell, std::size_t participant, bool fits,
                         std::string_view wanted) {
  if (fits) return Ok{};
  return make_diag(DiagCode::X002, {{"leaf", site.stmt.leaf},
                                    {"nest", site.nest.name},
                                    {"buffer", site.buffer_of(participant)},
                                    {"found", print(cell.views[participant].dtype)},
                                    {"wanted", wanted}});
}

std::int64_t byte_stride(const Cell& cell, std::size_t participant, std::size_t axis) {
  const View& view = cell.views[participant];
  return view.strides[axis] * size_in_bytes(view.dtype);
}

Checked<Ok> check_whole(const LeafSite& site, const Cell& cell, std::size_t axis) {
  const std::int64_t found = cell.span[axis].size();
  if (found == site.lengths[axis]) return Ok{};
  return make_diag(DiagCode::X003, {{"leaf", site.stmt.leaf},
                                    {"nest", site.nest.name},
                                    {"axis", site.names[axis]},
                                    {"found", found},
                                    {"whole", site.lengths[axis]}});
}

Checked<Action> call_copy(const LeafSite&, const LeafCall& call) {
  return Action{make_assign(call.cell, call.cell.views[1], call.cell.views[0])};
}

}  // namespace harpe::actions
