#include "exec/actions/action.h"

#include <utility>

namespace harpe::actions {
namespace {

// Lengths of the axes that `view` runs along; 1 for the others, and for the ragged axis, whose rows
// are processed one by one.
std::vector<std::int64_t> lengths_of(const Cell& cell, const View& view, bool by_slots) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(cell.span.size());
  for (std::size_t axis = 0; axis < cell.span.size(); ++axis) {
    const bool once = view.strides[axis] == 0 || (by_slots && axis == cell.slot_axis);
    lengths.push_back(once ? 1 : cell.span[axis].size());
  }
  return lengths;
}

Rows rows_of(const Cell& cell, const View& to, const View& from) {
  const std::vector<std::int64_t> strides[] = {to.strides, from.strides};
  return Rows(lengths_of(cell, to, true), strides);
}

}  // namespace

template <std::size_t Operands>
SlotRows<Operands> slot_rows(const Cell& cell, const std::array<const View*, Operands>& views) {
  SlotRows<Operands> slots;
  if (!cell.slot_axis) return slots;
  slots.capacity = cell.span[*cell.slot_axis].size();
  for (std::size_t i = 0; i < Operands; ++i) {
    slots.strides[i] = views[i]->strides.empty() ? 0 : views[i]->strides[*cell.slot_axis];
    const bool first = i > 0 && slots.used.rows == nullptr && views[i]->used != nullptr;
    if (first) slots.used = {.rows = views[i]->used, .before = cell.rows_before};
  }
  slots.result = views[0]->mode == WriteMode::Read ? nullptr : views[0]->used;  // scratch
  return slots;
}
template SlotRows<2> slot_rows(const Cell& cell, const std::array<const View*, 2>& views);
template SlotRows<3> slot_rows(const Cell& cell, const std::array<const View*, 3>& views);

Assign make_assign(const Cell& cell, const View& to, const View& from) {
  return {.to = to,
          .from = from,
          .rows = rows_of(cell, to, from),
          .slots = slot_rows<2>(cell, {&to, &from})};
}

Add make_add(const Cell& cell, const View& to, const View& from) {
  return {.to = to,
          .from = from,
          .rows = rows_of(cell, to, from),
          .slots = slot_rows<2>(cell, {&to, &from})};
}

Sum make_sum(const Cell& cell, const View& to, std::vector<Sum::Source> from, DType state) {
  std::vector<std::vector<std::int64_t>> strides = {to.strides};
  for (const Sum::Source& source : from) strides.push_back(source.view.strides);
  return {.to = to,
          .from = std::move(from),
          .state = state,
          .rows = Rows(lengths_of(cell, to, false), strides)};
}

Fill make_fill(const Cell& cell, const View& to, double value) {
  const std::vector<std::int64_t> strides[] = {to.strides};
  return {.to = to, .value = value, .rows = Rows(lengths_of(cell, to, false), strides)};
}

}  // namespace harpe::actions
