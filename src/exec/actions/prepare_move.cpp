#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "exec/actions/prepare.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// A buffer as a participant of the space of its own axes.
class BufferSpace {
 public:
  BufferSpace(const Setting& setting, const std::string& buffer) : name_(buffer) {
    const int index = setting.blocks.find_buffer(buffer);
    HP_CHECK(index >= 0, "buffer `" + buffer + "`");
    const std::vector<AxisKey> keys =
        keys_of(setting.blocks.buffers()[static_cast<std::size_t>(index)]);
    axes_.resize(keys.size());
    std::iota(axes_.begin(), axes_.end(), std::size_t{0});
    ragged_ = ragged_axis_of_space(setting.plan, setting.blocks, keys);
  }

  [[nodiscard]] Participant with(std::vector<Patch> patches) const {
    return {.buffer = name_, .axes = axes_, .patches = std::move(patches)};
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::optional<RaggedAxis>& ragged() const { return ragged_; }

 private:
  std::string name_;
  std::vector<std::size_t> axes_;
  std::optional<RaggedAxis> ragged_;
};

const std::string& buffer_of(const Setting& setting, const Ref& ref) {
  return setting.plan.allocs[ref.alloc.index()].buffer;
}

SlotShare share_of(const Cell& cell) {
  SlotShare share{.used = {.rows = cell.views[1].used, .before = cell.rows_before},
                  .capacity = cell.span[*cell.slot_axis].size()};
  for (std::size_t axis = 0; axis < cell.span.size(); ++axis) {
    if (axis != cell.slot_axis) share.elements *= cell.span[axis].size();
  }
  return share;
}

// Appends the actions that copy or add `from` to the elements of `to`.
void add_transfer(const BufferSpace& space, std::vector<Patch> to, std::vector<Patch> from,
                  bool adds, TaskWork& work) {
  const Participant parts[] = {space.with(std::move(to)), space.with(std::move(from))};
  for (const Patch& patch : parts[0].patches) {
    for (const Cell& cell : cut(patch.span, parts, {}, space.ragged())) {
      HP_CHECK(cell.views[1].data != nullptr,
               "a copy reads the blocks of `" + space.name() + "` that it writes");
      if (adds) {
        work.actions.emplace_back(make_add(cell, cell.views[0], cell.views[1]));
      } else {
        work.actions.emplace_back(make_assign(cell, cell.views[0], cell.views[1]));
      }
      if (cell.slot_axis) work.shares.push_back(share_of(cell));
    }
  }
}

}  // namespace

TaskWork prepare_transfer(const Setting& setting, const std::string& buffer, std::vector<Patch> to,
                          std::vector<Patch> from, bool adds) {
  TaskWork work;
  add_transfer(BufferSpace(setting, buffer), std::move(to), std::move(from), adds, work);
  return work;
}

TaskWork prepare_moves(const Setting& setting, const Task& task) {
  HP_CHECK(task.reads.size() == task.writes.size(), "a copy writes what it reads");
  TaskWork work;
  std::optional<BufferSpace> space;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const std::string& buffer = buffer_of(setting, task.writes[i]);
    HP_CHECK(buffer == buffer_of(setting, task.reads[i]), "a copy stays within its buffer");
    if (!space || space->name() != buffer) space.emplace(setting, buffer);
    add_transfer(*space, patches_of(setting, task.writes[i]), patches_of(setting, task.reads[i]),
                 false, work);
  }
  return work;
}

TaskWork prepare_fill(const Setting& setting, const std::string& buffer, std::vector<Patch> to,
                      double value) {
  const BufferSpace space(setting, buffer);
  const Participant parts[] = {space.with(std::move(to))};
  TaskWork work;
  for (const Patch& patch : parts[0].patches) {
    for (const Cell& cell : cut(patch.span, parts, {}, space.ragged())) {
      work.actions.emplace_back(make_fill(cell, cell.views[0], value));
    }
  }
  return work;
}

TaskWork prepare_init(const Setting& setting, const Task& task) {
  const Stmt& stmt = statement_of(setting.plan, task);
  const std::size_t group = targets_per_state(stmt);
  TaskWork work;
  for (std::size_t i = 0; i < task.writes.size(); ++i) {
    TaskWork filled =
        prepare_fill(setting, buffer_of(setting, task.writes[i]),
                     patches_of(setting, task.writes[i]), identity_of(stmt, i % group));
    std::ranges::move(filled.actions, std::back_inserter(work.actions));
  }
  return work;
}

}  // namespace harpe::actions
