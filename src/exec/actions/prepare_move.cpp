#include "exec/actions/prepare.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

std::vector<AxisKey> keys_of_buffer(const Setting& setting, const Ref& ref) {
  const int buffer = setting.blocks.find_buffer(setting.plan.allocs[ref.alloc.index()].buffer);
  return keys_of(setting.blocks.buffers()[static_cast<std::size_t>(buffer)]);
}

Participant whole_buffer(const Setting& setting, const Ref& ref) {
  const Alloc& alloc = setting.plan.allocs[ref.alloc.index()];
  const std::size_t axes = keys_of_buffer(setting, ref).size();
  Participant participant{.buffer = alloc.buffer, .axes = {}, .patches = patches_of(setting, ref)};
  for (std::size_t axis = 0; axis < axes; ++axis) participant.axes.push_back(axis);
  return participant;
}

SlotShare share_of(const Cell& cell) {
  SlotShare share{.used = {.rows = cell.views[1].used, .before = cell.rows_before},
                  .capacity = cell.span[*cell.slot_axis].size()};
  for (std::size_t axis = 0; axis < cell.span.size(); ++axis) {
    if (axis != cell.slot_axis) share.elements *= cell.span[axis].size();
  }
  return share;
}

}  // namespace

TaskWork prepare_moves(const Setting& setting, const Task& task) {
  HP_CHECK(task.reads.size() == task.writes.size(), "a copy writes what it reads");
  TaskWork work;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const Participant parts[] = {whole_buffer(setting, task.writes[i]),
                                 whole_buffer(setting, task.reads[i])};
    HP_CHECK(parts[0].buffer == parts[1].buffer, "a copy stays within its buffer");
    const auto ragged =
        ragged_axis_of_space(setting.plan, setting.blocks, keys_of_buffer(setting, task.writes[i]));
    for (const Patch& patch : parts[0].patches) {
      for (const Cell& cell : cut(patch.span, parts, {}, ragged)) {
        HP_CHECK(cell.views[1].data != nullptr,
                 "a copy reads the blocks of `" + parts[0].buffer + "` that it writes");
        work.actions.emplace_back(make_assign(cell, cell.views[0], cell.views[1]));
        if (cell.slot_axis) work.shares.push_back(share_of(cell));
      }
    }
  }
  return work;
}

TaskWork prepare_init(const Setting& setting, const Task& task) {
  const Stmt& stmt = statement_of(setting.plan, task);
  const std::size_t group = targets_per_state(stmt);
  TaskWork work;
  for (std::size_t i = 0; i < task.writes.size(); ++i) {
    const Participant parts[] = {whole_buffer(setting, task.writes[i])};
    const auto ragged =
        ragged_axis_of_space(setting.plan, setting.blocks, keys_of_buffer(setting, task.writes[i]));
    for (const Patch& patch : parts[0].patches) {
      for (const Cell& cell : cut(patch.span, parts, {}, ragged)) {
        work.actions.emplace_back(make_fill(cell, cell.views[0], identity_of(stmt, i % group)));
      }
    }
  }
  return work;
}

}  // namespace harpe::actions
