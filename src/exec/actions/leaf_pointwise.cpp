#include <algorithm>

#include "exec/actions/leaf.h"

namespace harpe::actions {
Checked<Action> call_pointwise(const LeafSite& site, const LeafCall& call) {
  const Cell& cell = call.cell;
  for (std::size_t i = 0; i < cell.views.size(); ++i) {
    HP_REQUIRE_OK(require_type(site, cell, i, is_floating(cell.views[i].dtype), "a floating type"));
  }
  const View& to = cell.views.back();
  const bool binary = cell.views.size() == 3;
  const View absent{};
  const View& a = cell.views[0];
  const View& b = binary ? cell.views[1] : absent;
  // The axis that the kernel runs along: one of unit stride, else the longest.
  std::size_t inner = 0;
  for (std::size_t axis = 1; axis < cell.span.size(); ++axis) {
    const auto rank = [&](std::size_t i) {
      const bool by_slots = cell.slot_axis == i || to.strides[i] == 0;
      return std::pair(!by_slots && to.strides[i] == 1 && cell.span[i].size() > 1,
                       by_slots ? 0 : cell.span[i].size());
    };
    if (rank(axis) > rank(inner)) inner = axis;
  }
  const bool by_slots = cell.slot_axis == inner;
  std::vector<std::int64_t> lengths;
  for (std::size_t axis = 0; axis < cell.span.size(); ++axis) {
    const bool once = axis == inner || to.strides[axis] == 0 || cell.slot_axis == axis;
    lengths.push_back(once ? 1 : cell.span[axis].size());
  }
  const std::vector<std::int64_t> none(cell.span.size(), 0);
  const std::vector<std::int64_t> strides[] = {to.strides, a.strides, binary ? b.strides : none};
  const auto operand = [&](const View& view) {
    return PointwiseProblem::Operand{.data = view.data,
                                     .dtype = view.dtype,
                                     .stride = view.strides.empty() ? 0 : view.strides[inner]};
  };
  Apply apply{.first = {.function = *find_pointwise(site.stmt.leaf),
                        .length = by_slots ? 1 : cell.span[inner].size(),
                        .to = to.data,
                        .to_dtype = to.dtype,
                        .to_stride = to.strides[inner],
                        .a = operand(a),
                        .b = operand(b),
                        .features = attribute_of(site.stmt, "length", 1),
                        .epsilon = attribute_of(site.stmt, "eps", 1e-6)},
              .rows = Rows(lengths, strides),
              .slots = slot_rows<3>(cell, {&to, &a, &b})};
  return Action{std::move(apply)};
}

}  // namespace harpe::actions
