#include "exec/cuda/target/task_likeness.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "ir/mask_contract.h"
#include "plan/slots.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kAlignment = 512;  // the maximum alignment that a kernel needs, in bytes

std::int32_t low_half(std::int64_t number) { return static_cast<std::int32_t>(number); }
std::int32_t high_half(std::int64_t number) { return static_cast<std::int32_t>(number >> 32); }

void add_number(TaskLikeness::Key& key, std::int64_t number) {
  key.push_back(low_half(number));
  key.push_back(high_half(number));
}

}  // namespace

TaskLikeness::TaskLikeness(const Plan& plan, const Blocks& blocks, RefLayouts& layouts,
                           const std::vector<AllocId>& partials16)
    : plan_(plan), blocks_(blocks), layouts_(layouts), is_half_(plan.allocs.size(), false) {
  for (const AllocId alloc : partials16) is_half_[alloc.index()] = true;
  for (std::size_t buffer = 0; buffer < blocks.buffers().size(); ++buffer) {
    is_ragged_.push_back(launch::is_ragged(plan, blocks, static_cast<int>(buffer)));
  }
}

const TaskLikeness::NestFacts* TaskLikeness::facts_of(const std::string& name) {
  const auto known = nests_.find(name);
  if (known != nests_.end()) return &known->second;
  const auto nest = std::ranges::find(plan_.program.nests, name, &Nest::name);
  if (nest == plan_.program.nests.end()) return nullptr;
  NestFacts facts{.number = static_cast<std::int32_t>(nest - plan_.program.nests.begin()),
                  .axes = {},
                  .has_route = find_route_of(plan_.program, *nest) != nullptr,
                  .has_renames = false,
                  .masks = {}};
  for (const std::string& axis : nest->over) facts.axes.push_back(blocks_.find_axis(axis));
  for (const Stmt& stmt : nest->stmts) {
    for (const std::vector<Access>* const all : {&stmt.operands, &stmt.targets}) {
      facts.has_renames |=
          std::ranges::any_of(*all, [](const Access& access) { return !access.renames.empty(); });
    }
    MaskFacts& mask = facts.masks.emplace_back();
    mask.by_position = resolve_masks(blocks_, stmt);
    mask.is_absolute = (mask.by_position && mask.by_position->visible.prefix > 0) ||
                       std::ranges::any_of(stmt.masks, [](const Mask& each) {
                         return read_mask(each).contract->data;
                       });
  }
  return &nests_.emplace(name, std::move(facts)).first->second;
}

std::optional<TaskLikeness::Key> TaskLikeness::key_of(TaskId id, const std::vector<LaidRef>& refs) {
  if (sync::goes_out(plan_, id)) return std::nullopt;
  return key_of(plan_.tasks[id.index()], refs);
}

std::optional<TaskLikeness::Key> TaskLikeness::key_of(const Task& task,
                                                      const std::vector<LaidRef>& refs) {
  if (task.kind == TaskKind::Collective) return std::nullopt;
  for (const std::vector<Ref>* const all : {&task.writes, &task.reads}) {
    for (const Ref& ref : *all) {
      const auto buffer = static_cast<std::size_t>(layouts_.buffer_of(ref.alloc));
      if (ref.when || is_ragged_[buffer]) return std::nullopt;
    }
  }
  const auto next = static_cast<std::int32_t>(kernels_.size());
  Key key = {static_cast<std::int32_t>(task.kind), static_cast<std::int32_t>(task.via), task.stmt,
             kernels_.try_emplace(task.leaf_kernel, next).first->second,
             static_cast<std::int32_t>(task.writes.size())};
  pieces_.clear();
  const NestFacts* facts = nullptr;
  if (!task.nest.empty()) {
    facts = facts_of(task.nest);
    if (facts == nullptr || facts->has_route) return std::nullopt;
    key.push_back(facts->number);
    add_iterations(task, *facts, key);
  }
  add_refs(task, refs, key);
  add_positions(key);
  if (task.kind != TaskKind::Compute) return key;
  MaskFacts mask = facts->masks[static_cast<std::size_t>(task.stmt)];
  mask.is_absolute = mask.is_absolute || facts->has_renames;
  add_mask(mask, key);
  return key;
}

// Block by block, because calls of leaves may be cut at block borders. Blocks that touch are one
// piece.
void TaskLikeness::add_iterations(const Task& task, const NestFacts& facts, Key& key) {
  key.push_back(static_cast<std::int32_t>(task.iter.size()));
  std::vector<std::vector<std::int64_t>> along_axes(facts.axes.size());
  std::span<const Range> before;  // the previous box, which usually differs along one axis only
  for (const Box& box : task.iter) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < facts.axes.size(); ++i) {
      const int axis = facts.axes[i];
      const std::size_t count = blocks_.axes()[static_cast<std::size_t>(axis)].digits.size();
      const auto digits = std::span(box).subspan(begin, count);
      std::vector<std::int64_t>& blocks = along_axes[i];
      if (before.empty() || !std::ranges::equal(digits, before.subspan(begin, count))) {
        blocks = blocks_along(blocks_, axis, digits);
      }
      begin += count;
      key.push_back(static_cast<std::int32_t>(blocks.size()));
      const std::size_t first = pieces_.size();
      for (const std::int64_t block : blocks) {
        const Interval along = blocks_.interval(axis, block);
        const bool touches = pieces_.size() > first && pieces_.back().along.end == along.begin;
        key.push_back(touches ? 1 : 0);
        add_number(key, along.size());
        if (touches) {
          pieces_.back().along.end = along.end;
        } else {
          pieces_.push_back({.axis = axis, .along = along});
        }
      }
    }
    before = box;
  }
}

void TaskLikeness::add_refs(const Task& task, const std::vector<LaidRef>& refs, Key& key) {
  const RankId rank = plan_.queues[task.queue.index()].rank;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const LaidRef& ref = refs[i];
    const Alloc& alloc = plan_.allocs[ref.alloc.index()];
    const bool is_written = i < task.writes.size();
    const WriteMode mode = is_written ? task.writes[i].mode : WriteMode::Read;
    const auto same = std::ranges::find(refs, ref.alloc, &LaidRef::alloc) - refs.begin();
    // Elements from the begin of the first reference to the slot, which may move by aligned
    // distances.
    const std::int64_t at = ref.layout->begin();
    const std::int64_t first = refs[static_cast<std::size_t>(same)].layout->begin();
    add_number(key, at - first);
    const int buffer = layouts_.buffer_of(ref.alloc);
    key.insert(key.end(), {buffer, ref.layout->shape, static_cast<std::int32_t>(alloc.dtype),
                           static_cast<std::int32_t>(mode), static_cast<std::int32_t>(same),
                           static_cast<std::int32_t>(alloc.offset % kAlignment),
                           static_cast<std::int32_t>(at % kAlignment),
                           static_cast<std::int32_t>((alloc.rank == rank ? 1 : 0) +
                                                     (alloc.level == Level::Home ? 2 : 0) +
                                                     (is_half_[ref.alloc.index()] ? 4 : 0))});
    const std::vector<int>& axes = blocks_.buffers()[static_cast<std::size_t>(buffer)].axes;
    for (const launch::RefLayout::Part& part : ref.layout->parts) {
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        const std::int64_t begin = part.span[axis].begin + ref.origin[axis];
        pieces_.push_back(
            {.axis = axes[axis], .along = {.begin = begin, .end = begin + part.span[axis].size()}});
      }
    }
  }
}

// The lengths of gaps between runs do not matter.
void TaskLikeness::add_positions(Key& key) {
  order_.resize(pieces_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::sort(order_, [&](std::size_t i, std::size_t j) {
    const Piece& one = pieces_[i];
    const Piece& other = pieces_[j];
    return one.axis != other.axis ? one.axis < other.axis : one.along.begin < other.along.begin;
  });
  positions_.resize(pieces_.size());
  runs_.clear();
  for (const std::size_t i : order_) {
    const auto& [axis, along] = pieces_[i];
    if (runs_.empty() || runs_.back().axis != axis || runs_.back().along.end < along.begin) {
      runs_.push_back(pieces_[i]);
    }
    Interval& run = runs_.back().along;
    run.end = std::max(run.end, along.end);
    positions_[i] = {.run = runs_.size() - 1, .offset = along.begin - run.begin};
  }
  std::size_t next = key.size();
  key.resize(next + 3 * positions_.size());
  for (const Position& position : positions_) {
    key[next++] = static_cast<std::int32_t>(position.run);
    key[next++] = low_half(position.offset);
    key[next++] = high_half(position.offset);
  }
}

void TaskLikeness::add_mask(const MaskFacts& mask, Key& key) const {
  if (mask.is_absolute) {
    for (const Piece& run : runs_) add_number(key, run.along.begin);
    return;
  }
  if (!mask.by_position) return;
  const auto& [query_axis, key_axis, visible] = *mask.by_position;
  for (const Piece& queries : runs_) {
    if (queries.axis != query_axis) continue;
    for (const Piece& keys : runs_) {
      if (keys.axis != key_axis) continue;
      const Coverage coverage = classify(visible, queries.along, keys.along);
      key.push_back(static_cast<std::int32_t>(coverage));
      if (coverage != Coverage::Partial) continue;
      add_number(key, queries.along.begin - keys.along.begin);
    }
  }
}

std::int64_t TaskLikeness::begin_of(const launch::Place& place, int axis) const {
  const auto buffer = static_cast<std::size_t>(layouts_.buffer_of(place.alloc));
  const std::vector<int>& axes = blocks_.buffers()[buffer].axes;
  const auto at = std::ranges::find(axes, axis);
  if (at == axes.end()) return 0;
  return place.span[static_cast<std::size_t>(at - axes.begin())].begin;
}

std::vector<std::int64_t> TaskLikeness::leads_of(const Task& task,
                                                 const std::vector<launch::Kernel>& kernels,
                                                 const std::vector<launch::Kernel>& prepared) {
  if (task.kind != TaskKind::Compute) return {};
  const auto& mask = facts_of(task.nest)->masks[static_cast<std::size_t>(task.stmt)].by_position;
  if (!mask) return {};
  const auto lead = [&](const launch::Kernel& kernel) {
    if (kernel.panels.empty() || kernel.panels.front().reads.empty()) return std::int64_t{0};
    return begin_of(kernel.panels.front().reads.front(), mask->query_axis) -
           begin_of(kernel.arrivals.front().reads.front(), mask->key_axis);
  };
  std::vector<std::int64_t> leads;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    leads.push_back(lead(kernels[i]) - lead(prepared[i]));
  }
  return leads;
}

}  // namespace harpe::cuda
