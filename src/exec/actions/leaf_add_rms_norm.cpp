#include <algorithm>

#include "exec/actions/leaf.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// Participants of the leaf.
enum NormParticipant : std::uint8_t {
  kNormX,
  kNormResidual,
  kNormWeight,
  kNormSum,
  kNormY,
  kNormParticipants
};

// The axes that number the rows: all but the axis of the norm.
std::vector<std::size_t> norm_row_axes(const LeafSite& site, std::size_t along) {
  std::vector<std::size_t> axes = site.axes_of(kNormX);
  std::erase(axes, along);
  return axes;
}

}  // namespace

Checked<Action> call_add_rms_norm(const LeafSite& site, const LeafCall& call) {
  const Cell& cell = call.cell;
  for (std::size_t i = 0; i < kNormParticipants; ++i) {
    HP_REQUIRE_OK(require_type(site, cell, i, is_floating(cell.views[i].dtype), "a floating type"));
  }
  const std::vector<std::size_t> of_weight = site.axes_of(kNormWeight);
  HP_CHECK(of_weight.size() == 1, "check_program has seen the dimensions of `add_rms_norm`");
  const std::size_t along = of_weight.front();
  HP_REQUIRE_OK(check_whole(site, cell, along));
  const auto length = [&](std::size_t axis) { return cell.span[axis].size(); };
  // The kernel runs over the longest axis of rows; loops run over the others.
  const std::vector<std::size_t> rows = norm_row_axes(site, along);
  const auto longest = std::ranges::max_element(rows, {}, length);
  const auto row_stride = [&](std::size_t i) {
    return longest == rows.end() ? 0 : cell.views[i].strides[*longest];
  };
  const auto operand = [&](std::size_t i) {
    const View& view = cell.views[i];
    return AddRmsNormProblem::Rows{.data = view.data,
                                   .dtype = view.dtype,
                                   .row_stride = row_stride(i),
                                   .stride = view.strides[along]};
  };
  const auto result = [&](std::size_t i) {
    const View& view = cell.views[i];
    return AddRmsNormProblem::Results{.data = view.data,
                                      .dtype = view.dtype,
                                      .row_stride = row_stride(i),
                                      .stride = view.strides[along]};
  };
  AddRmsNorm norm{.first = {.rows = longest == rows.end() ? 1 : length(*longest),
                            .length = length(along),
                            .x = operand(kNormX),
                            .residual = operand(kNormResidual),
                            .weight = operand(kNormWeight),
                            .sum = result(kNormSum),
                            .y = result(kNormY),
                            .epsilon = attribute_of(site.stmt, "eps", 1e-6)},
                  .loops = {}};
  for (auto axis = rows.begin(); axis != rows.end(); ++axis) {
    if (axis == longest || length(*axis) == 1) continue;
    Loop<kNormParticipants> loop{.length = length(*axis), .bytes = {}};
    for (std::size_t i = 0; i < kNormParticipants; ++i) loop.bytes[i] = byte_stride(cell, i, *axis);
    norm.loops.push_back(loop);
  }
  return Action{std::move(norm)};
}

}  // namespace harpe::actions
