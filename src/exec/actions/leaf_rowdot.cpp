#include <algorithm>

#include "exec/actions/leaf.h"

namespace harpe::actions {
namespace {

// Participants of the leaf.
constexpr std::size_t kRowdotA = 0;
constexpr std::size_t kRowdotB = 1;
constexpr std::size_t kRowdotC = 2;

Checked<Ok> check_floats(const LeafSite& site, const Cell& cell) {
  for (std::size_t i = 0; i < cell.views.size(); ++i) {
    const DType found = cell.views[i].dtype;
    const bool fits = i == kRowdotB ? found == cell.views[kRowdotA].dtype : is_floating(found);
    const DType same = cell.views[kRowdotA].dtype;
    HP_REQUIRE_OK(
        require_type(site, cell, i, fits, i == kRowdotB ? print(same) : "a floating type"));
  }
  return Ok{};
}

// The single axis that the operands have and the target lacks.
Checked<std::size_t> summed_axis(const LeafSite& site) {
  std::vector<std::size_t> summed;
  const std::vector<std::size_t> kept = site.axes_of(kRowdotC);
  for (const std::size_t operand : {kRowdotA, kRowdotB}) {
    for (const std::size_t axis : site.axes_of(operand)) {
      const bool known = std::ranges::find(kept, axis) != kept.end() ||
                         std::ranges::find(summed, axis) != summed.end();
      if (!known) summed.push_back(axis);
    }
  }
  if (summed.size() == 1) return summed.front();
  return make_diag(DiagCode::X011, {{"leaf", site.stmt.leaf},
                                    {"nest", site.nest.name},
                                    {"buffer", site.buffer_of(kRowdotC)},
                                    {"found", summed.size()}});
}

}  // namespace

Checked<Action> call_rowdot(const LeafSite& site, const LeafCall& call) {
  const std::vector<View>& views = call.cell.views;
  HP_REQUIRE_OK(check_floats(site, call.cell));
  HP_TRY(const std::size_t summed, summed_axis(site));
  HP_REQUIRE_OK(check_whole(site, call.cell, summed));
  const std::vector<std::size_t> kept = site.axes_of(kRowdotC);
  const auto length = [&](std::size_t axis) { return call.cell.span[axis].size(); };
  RowDot products;
  RowDotProblem& problem = products.first;
  problem = {.rows = 1,
             .length = length(summed),
             .dtype = views[kRowdotA].dtype,
             .a = {.data = views[kRowdotA].data, .stride = views[kRowdotA].strides[summed]},
             .b = {.data = views[kRowdotB].data, .stride = views[kRowdotB].strides[summed]},
             .c = views[kRowdotC].data,
             .c_dtype = views[kRowdotC].dtype};
  // The kernel runs over the longest axis; loops run over the others.
  const auto longest = std::ranges::max_element(kept, {}, length);
  for (auto axis = kept.begin(); axis != kept.end(); ++axis) {
    if (axis == longest) {
      problem.rows = length(*axis);
      problem.a.row_stride = views[kRowdotA].strides[*axis];
      problem.b.row_stride = views[kRowdotB].strides[*axis];
      problem.c_stride = views[kRowdotC].strides[*axis];
      continue;
    }
    if (length(*axis) == 1) continue;
    Loop<3> loop{.length = length(*axis), .bytes = {}};
    for (std::size_t i = 0; i < 3; ++i) {
      loop.bytes[i] = views[i].strides[*axis] * size_in_bytes(views[i].dtype);
    }
    products.loops.push_back(loop);
  }
  return Action{std::move(products)};
}

}  // namespace harpe::actions
