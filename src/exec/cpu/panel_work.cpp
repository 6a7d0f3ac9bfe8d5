#include "exec/cpu/panel_work.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/mask_contract.h"
#include "plan/ref_layouts.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

using actions::Patch;
using actions::StatementWork;
using actions::TaskWork;

void append(TaskWork& work, TaskWork more) {
  std::ranges::move(more.actions, std::back_inserter(work.actions));
  std::ranges::move(more.shares, std::back_inserter(work.shares));
}

}  // namespace

Diag PanelWork::misfit(const std::string& problem) const {
  return make_diag(DiagCode::V704, {{"kernel", kernel_->name},
                                    {"launch", id_.value},
                                    {"rank", launch_.rank.value},
                                    {"problem", problem}});
}

const std::string& PanelWork::buffer_of(const launch::Place& place) const {
  return setting_.plan.allocs[place.alloc.index()].buffer;
}
const Nest& PanelWork::nest() const { return *find_nest(setting_.plan.program, nest_); }
const Stmt& PanelWork::stmt() const { return actions::statement_of(setting_.plan, nest_, stmt_); }

bool PanelWork::is_target(const std::string& buffer) const {
  return std::ranges::count(stmt().targets, buffer, &Access::buffer) > 0;
}

const PanelWork::Sum* PanelWork::find_sum(const launch::Place& place) const {
  const auto found = std::ranges::find(sums_, buffer_of(place), &Sum::buffer);
  return found == sums_.end() ? nullptr : &*found;
}

const launch::Arrival& PanelWork::arrival_of(const launch::Panel& panel, std::size_t met) const {
  return kernel_->arrivals[static_cast<std::size_t>(panel.meets[met])];
}

Checked<std::vector<Patch>> PanelWork::patches_of(const launch::Place& place,
                                                  WriteMode mode) const {
  std::vector<Patch> patches = actions::patches_of(setting_, place, mode);
  if (!patches.empty()) return patches;
  const Alloc& alloc = setting_.plan.allocs[place.alloc.index()];
  return make_diag(DiagCode::V705, {{"kernel", kernel_->name},
                                    {"launch", id_.value},
                                    {"rank", launch_.rank.value},
                                    {"alloc", alloc.name},
                                    {"owner", alloc.rank.value},
                                    {"problem", "which cannot hold all of it"}});
}

Checked<PanelWork::Operands> PanelWork::operands_of(
    const std::vector<launch::Place>& places) const {
  Operands operands;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const launch::Place& place = places[i];
    if (is_target(buffer_of(place)) || launch::is_held(places, i)) continue;
    HP_TRY(std::vector<Patch> patches, patches_of(place, WriteMode::Read));
    operands.push_back({.buffer = buffer_of(place), .patches = std::move(patches)});
  }
  return operands;
}

Checked<TaskWork> PanelWork::prepare(const PanelPart& part) {
  kernel_ = &launch_.kernels[static_cast<std::size_t>(part.kernel)];
  const auto statement = find_statement(setting_.plan, launch_, *kernel_);
  HP_CHECK(statement, "steps of a kernel have its statement");
  nest_ = setting_.plan.tasks[statement->index()].nest;
  stmt_ = setting_.plan.tasks[statement->index()].stmt;
  const launch::Panel& panel = kernel_->panels[static_cast<std::size_t>(part.panel)];
  const auto index = static_cast<std::size_t>(part.index);
  switch (part.kind) {
    case PanelPart::Kind::Begin:
      return begin(panel);
    case PanelPart::Kind::Meet:
      return meet(panel, arrival_of(panel, index));
    case PanelPart::Kind::Add:
      return add(panel.addends[index]);
    case PanelPart::Kind::Map:
      return apply(panel, index);
    case PanelPart::Kind::Store:
      return store(panel);
  }
  HP_CHECK(false, "a part of a panel");
  return TaskWork{};
}

Checked<TaskWork> PanelWork::prepare(const CopyPart& part) {
  kernel_ = &launch_.kernels[static_cast<std::size_t>(part.kernel)];
  const launch::FusedCopy& copy = kernel_->fused_copies[static_cast<std::size_t>(part.copy)];
  const bool fits = buffer_of(copy.from) == buffer_of(copy.to) && copy.from.span == copy.to.span;
  if (!fits) return misfit("copies elements to a place of others");
  HP_TRY(std::vector<Patch> to, patches_of(copy.to, WriteMode::Set));
  HP_TRY(std::vector<Patch> from, patches_of(copy.from, WriteMode::Read));
  return actions::prepare_transfer(setting_, buffer_of(copy.to), std::move(to), std::move(from),
                                   false);
}

std::optional<std::size_t> PanelWork::axis_of(const Access& access, int axis) const {
  std::string name = setting_.blocks.axes()[static_cast<std::size_t>(axis)].name;
  for (const Rename& rename : access.renames) {
    if (rename.axis == name && rename.member.empty()) {
      name = rename.source;
      break;
    }
  }
  const auto found = std::ranges::find(nest().over, name);
  if (found == nest().over.end()) return std::nullopt;
  return static_cast<std::size_t>(found - nest().over.begin());
}

launch::Span PanelWork::narrow(Span box, const std::vector<Access>& accesses,
                               const std::vector<launch::Place>& places) const {
  for (const Access& access : accesses) {
    const auto place = std::ranges::find_if(
        places, [&](const launch::Place& one) { return buffer_of(one) == access.buffer; });
    if (place != places.end()) narrow_to(box, access, place->span);
  }
  return box;
}

void PanelWork::narrow_to(Span& box, const Access& access, const Span& elements) const {
  const auto buffer = static_cast<std::size_t>(setting_.blocks.find_buffer(access.buffer));
  const std::vector<int>& axes = setting_.blocks.buffers()[buffer].axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::optional<std::size_t> axis = axis_of(access, axes[i]);
    if (!axis) continue;
    Interval& along = box[*axis];
    along.begin = std::max(along.begin, elements[i].begin);
    along.end = std::max(along.begin, std::min(along.end, elements[i].end));
  }
}

Interval PanelWork::whole_axis(int axis) const {
  return {.begin = 0, .end = setting_.blocks.axes()[static_cast<std::size_t>(axis)].size};
}

launch::Span PanelWork::whole_box() const {
  Span box;
  for (const std::string& name : nest().over) {
    box.push_back(whole_axis(setting_.blocks.find_axis(name)));
  }
  return box;
}

std::byte* PanelWork::reserve(Memory& memory, std::int64_t bytes) const {
  if (memory.bytes < bytes) {
    memory = {.data = setting_.scratch.reserve(bytes), .bytes = bytes};
  }
  return memory.data;
}

// Dense in the order of the buffer's dimensions, as in slots.
void PanelWork::open_sum(std::size_t target, std::size_t slot) {
  const Access& access = stmt().targets[target];
  const auto index = static_cast<std::size_t>(setting_.blocks.find_buffer(access.buffer));
  const BufferTable& table = setting_.blocks.buffers()[index];
  Patch patch;
  patch.dtype = state_dtype(table.dtype);
  for (const int axis : table.axes) {
    const std::optional<std::size_t> along = axis_of(access, axis);
    patch.span.push_back(along ? box_[*along] : whole_axis(axis));
  }
  for (const DimTable& dim : table.dims) {
    if (dim.axes.empty()) patch.span.push_back({.begin = 0, .end = dim.opaque});
  }
  patch.strides.resize(patch.span.size());
  std::size_t axis = table.axes.size();
  std::size_t opaque = patch.span.size();
  std::int64_t elements = 1;
  const auto lay = [&](std::size_t at) {
    patch.strides[at] = elements;
    elements *= patch.span[at].size();
  };
  for (std::size_t dim = table.dims.size(); dim-- > 0;) {
    if (table.dims[dim].axes.empty()) lay(--opaque);
    for (std::size_t i = table.dims[dim].axes.size(); i-- > 0;) lay(--axis);
  }
  memories_.resize(std::max(memories_.size(), slot + 1));
  numbers_.resize(memories_.size());
  patch.data = reserve(memories_[slot], elements * size_in_bytes(patch.dtype));
  const std::int64_t numbers = actions::Occupancy::count_numbers(
      setting_.plan, setting_.blocks, *find_buffer(setting_.plan.program, access.buffer));
  if (numbers > 0) {
    const std::int64_t bytes = numbers * static_cast<std::int64_t>(sizeof(std::int32_t));
    patch.occupancy = reinterpret_cast<std::int32_t*>(reserve(numbers_[slot], bytes));
  }
  sums_.push_back({.buffer = access.buffer, .patch = std::move(patch)});
}

// Whether work over the box contributes to every element of the panel's results.
bool PanelWork::makes_all(const Span& box) const {
  for (const Access& access : stmt().targets) {
    const auto buffer = static_cast<std::size_t>(setting_.blocks.find_buffer(access.buffer));
    for (const int axis : setting_.blocks.buffers()[buffer].axes) {
      const std::optional<std::size_t> along = axis_of(access, axis);
      if (along && box[*along] != box_[*along]) return false;
    }
  }
  return true;
}

// The panel's initial value: a stored state, or the identity if its first arrival leaves gaps.
Checked<TaskWork> PanelWork::begin(const launch::Panel& panel) {
  box_ = narrow(whole_box(), stmt().targets, panel.stores);
  // The result of a map has the axes of its operand.
  if (!panel.maps.empty()) narrow_to(box_, stmt().targets.front(), panel.stores.front().span);
  box_ = narrow(std::move(box_), stmt().operands, panel.reads);
  sums_.clear();
  for (std::size_t target = 0; target < stmt().targets.size(); ++target) open_sum(target, target);
  TaskWork work;
  std::size_t carried = 0;
  for (const launch::Place& place : panel.reads) {
    const Sum* const sum = find_sum(place);
    if (sum == nullptr) continue;
    HP_TRY(std::vector<Patch> from, patches_of(place, WriteMode::Read));
    append(work,
           actions::prepare_transfer(setting_, sum->buffer, {sum->patch}, std::move(from), false));
    ++carried;
  }
  is_begun_ = carried > 0;
  if (is_begun_ && carried < sums_.size()) return misfit("goes on from a part of a state");
  if (is_begun_) return work;
  if (panel.meets.empty() && !panel.addends.empty()) return work;  // the first addend begins it
  if (!panel.meets.empty() &&
      makes_all(narrow(box_, stmt().operands, arrival_of(panel, 0).reads))) {
    return work;
  }
  for (std::size_t target = 0; target < sums_.size(); ++target) {
    append(work, actions::prepare_fill(setting_, sums_[target].buffer, {sums_[target].patch},
                                       actions::identity_of(stmt(), target)));
  }
  is_begun_ = true;
  return work;
}

Checked<TaskWork> PanelWork::meet(const launch::Panel& panel, const launch::Arrival& arrival) {
  StatementWork work;
  work.nest = nest_;
  work.stmt = stmt_;
  work.boxes = {narrow(box_, stmt().operands, arrival.reads)};
  HP_TRY(work.reads, operands_of(arrival.reads));
  HP_TRY(Operands of_panel, operands_of(panel.reads));
  std::ranges::move(of_panel, std::back_inserter(work.reads));
  for (const Access& access : stmt().operands) {
    if (std::ranges::count(work.reads, access.buffer, &StatementWork::Operand::buffer) > 0)
      continue;
    return misfit("lacks `" + access.buffer + "`, which its statement reads");
  }
  add_mask_data(work.reads);
  for (const Sum& sum : sums_) {
    Patch patch = sum.patch;
    patch.mode = is_begun_ ? WriteMode::Add : WriteMode::Init;
    work.writes.push_back({.buffer = sum.buffer, .patches = {std::move(patch)}});
  }
  is_begun_ = true;
  return actions::prepare_statement(setting_, work);
}

// Masks read their data where the launch's tasks have it.
void PanelWork::add_mask_data(Operands& operands) const {
  for (const Access& access : mask_reads(stmt())) {
    for (const TaskId id : launch_.does) {
      const Task& task = setting_.plan.tasks[id.index()];
      if (task.nest != nest_ || task.stmt != stmt_) continue;
      for (const Ref& ref : task.reads) {
        if (setting_.plan.allocs[ref.alloc.index()].buffer != access.buffer) continue;
        operands.push_back(
            {.buffer = access.buffer, .patches = actions::patches_of(setting_, ref)});
      }
    }
  }
}

Checked<TaskWork> PanelWork::add(const launch::Addend& addend) {
  Operands to;
  Operands from;
  for (const Sum& sum : sums_) {
    const auto place = std::ranges::find_if(
        addend.reads, [&](const launch::Place& one) { return buffer_of(one) == sum.buffer; });
    if (place == addend.reads.end()) return misfit("adds what is no part of its sum");
    HP_TRY(std::vector<Patch> patches, patches_of(*place, WriteMode::Read));
    from.push_back({.buffer = sum.buffer, .patches = std::move(patches)});
    Patch patch = sum.patch;
    patch.mode = is_begun_ ? WriteMode::Add : WriteMode::Set;
    to.push_back({.buffer = sum.buffer, .patches = {std::move(patch)}});
  }
  is_begun_ = true;
  return actions::prepare_addend(setting_, stmt(), std::move(to), std::move(from));
}

// The sum, or the result of the previous map, is an operand of the map's statement; the map's
// result replaces it.
Checked<TaskWork> PanelWork::apply(const launch::Panel& panel, std::size_t map) {
  const launch::Map& applied = panel.maps[map];
  if (sums_.size() != 1) return misfit("applies a map to a state of several parts");
  const Sum value = sums_.front();
  nest_ = applied.nest;
  stmt_ = applied.stmt;
  box_ = whole_box();
  narrow_to(box_, stmt().targets.front(), panel.stores.front().span);
  sums_.clear();
  open_sum(0, 1 + map);
  StatementWork work;
  work.nest = nest_;
  work.stmt = stmt_;
  work.boxes = {box_};
  HP_TRY(work.reads, operands_of(applied.reads));
  work.reads.push_back({.buffer = value.buffer, .patches = {value.patch}});
  Patch made = sums_.front().patch;
  made.mode = WriteMode::Set;
  work.writes.push_back({.buffer = sums_.front().buffer, .patches = {std::move(made)}});
  return actions::prepare_statement(setting_, work);
}

Checked<TaskWork> PanelWork::store(const launch::Panel& panel) {
  TaskWork work;
  for (const launch::Place& place : panel.stores) {
    const Sum* const sum = find_sum(place);
    if (sum == nullptr) return misfit("stores no result of its statement");
    if (panel.adds && sums_.size() != 1) return misfit("adds to a state of several parts");
    const DType dtype = setting_.plan.allocs[place.alloc.index()].dtype;
    if (&place == panel.stores.data() && dtype != panel.dtype) {
      return misfit("stores " + std::string(print(panel.dtype)) + " where " +
                    std::string(print(dtype)) + " lies");
    }
    const WriteMode mode = panel.adds ? WriteMode::Add : WriteMode::Set;
    HP_TRY(std::vector<Patch> to, patches_of(place, mode));
    append(work, actions::prepare_transfer(setting_, sum->buffer, std::move(to), {sum->patch},
                                           panel.adds));
  }
  return work;
}

}  // namespace harpe::cpu
