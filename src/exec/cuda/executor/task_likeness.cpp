#include "exec/cuda/executor/task_likeness.h"

#include <algorithm>

#include "ir/mask_contract.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kAlignment = 512;  // that any kernel asks of an address

void add_number(TaskLikeness::Key& key, std::int64_t number) {
  key.push_back(static_cast<std::int32_t>(number));
  key.push_back(static_cast<std::int32_t>(number >> 32));
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
                  .digits = iteration_digits(plan_.program, blocks_, *nest),
                  .has_route = find_route_of(plan_.program, *nest) != nullptr,
                  .masks = {}};
  for (const Stmt& stmt : nest->stmts) {
    facts.masks.push_back({.by_position = resolve_masks(blocks_, stmt),
                           .by_data = std::ranges::any_of(stmt.masks, [](const Mask& mask) {
                             return read_mask(mask).contract->data;
                           })});
  }
  return &nests_.emplace(name, std::move(facts)).first->second;
}

std::optional<TaskLikeness::Key> TaskLikeness::key_of(TaskId id, const std::vector<LaidRef>& refs) {
  const Task& task = plan_.tasks[id.index()];
  if (task.kind == TaskKind::Collective || sync::goes_out(plan_, id)) return std::nullopt;
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
  Bases bases;
  const MaskFacts* mask = nullptr;
  if (!task.nest.empty()) {
    const NestFacts* const facts = facts_of(task.nest);
    if (facts == nullptr || facts->has_route) return std::nullopt;
    key.push_back(facts->number);
    add_iterations(task, *facts, key, bases);
    const bool is_masked = task.kind == TaskKind::Compute;
    if (is_masked) mask = &facts->masks[static_cast<std::size_t>(task.stmt)];
  }
  add_refs(task, refs, key, bases);
  if (mask != nullptr) add_mask(*mask, key, bases);
  return key;
}

void TaskLikeness::add_mask(const MaskFacts& mask, Key& key, Bases& bases) {
  if (mask.by_data) {
    for (const auto& [axis, base] : bases) add_number(key, base);
  } else if (mask.by_position) {
    const std::int64_t keys = bases[mask.by_position->key_axis];
    add_number(key, bases[mask.by_position->query_axis] - keys);
    if (mask.by_position->visible.prefix > 0) add_number(key, keys);
  }
}

void TaskLikeness::add_iterations(const Task& task, const NestFacts& facts, Key& key,
                                  Bases& bases) const {
  key.push_back(static_cast<std::int32_t>(task.iter.size()));
  if (task.iter.empty()) return;
  const Box& first = task.iter.front();
  for (std::size_t i = 0; i < facts.digits.size(); ++i) {
    const int digit = facts.digits[i];
    const std::int64_t step = layouts_.step_of(digit);
    const std::int32_t shift = step == 0 ? 0 : first[i].lo;
    bases[blocks_.digits()[static_cast<std::size_t>(digit)].axis] += shift * step;
    for (const Box& box : task.iter) {
      key.push_back(box[i].lo - shift);
      key.push_back(box[i].hi - shift);
    }
  }
}

void TaskLikeness::add_refs(const Task& task, const std::vector<LaidRef>& refs, Key& key,
                            Bases& bases) const {
  const RankId rank = plan_.queues[task.queue.index()].rank;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const LaidRef& ref = refs[i];
    const Alloc& alloc = plan_.allocs[ref.alloc.index()];
    const bool is_written = i < task.writes.size();
    const WriteMode mode = is_written ? task.writes[i].mode : WriteMode::Read;
    const auto same = std::ranges::find(refs, ref.alloc, &LaidRef::alloc) - refs.begin();
    key.insert(key.end(), {ref.layout->id, static_cast<std::int32_t>(alloc.dtype),
                           static_cast<std::int32_t>(mode), static_cast<std::int32_t>(same),
                           static_cast<std::int32_t>(alloc.offset % kAlignment),
                           static_cast<std::int32_t>((alloc.rank == rank ? 1 : 0) +
                                                     (alloc.level == Level::Home ? 2 : 0) +
                                                     (is_half_[ref.alloc.index()] ? 4 : 0))});
    const std::vector<int>& axes =
        blocks_.buffers()[static_cast<std::size_t>(layouts_.buffer_of(ref.alloc))].axes;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const std::int64_t base = bases.try_emplace(axes[axis], ref.origin[axis]).first->second;
      add_number(key, ref.origin[axis] - base);
    }
  }
}

}  // namespace harpe::cuda
