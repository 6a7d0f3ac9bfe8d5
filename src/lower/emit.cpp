#include "lower/emit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "plan/slots.h"
#include "support/units.h"

namespace harpe {
namespace {

// The largest arena of a rank that the verifier accepts.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;

class Emitter {
 public:
  explicit Emitter(Draft draft) : draft_(std::move(draft)) {
    plan_.program = draft_.program;
    plan_.mesh = draft_.mesh;
    plan_.form = draft_.form;
  }

  Checked<Plan> run(const TimeLimit& limit) {
    HP_REQUIRE_OK(place_slots());
    make_queues();
    number_tasks();
    make_signals();
    for (DraftTask& task : draft_.tasks) {
      HP_REQUIRE_OK(limit.check(kLowering));
      if (!task.is_barrier) plan_.tasks.push_back(emit_task(task));
      task = {};  // frees the draft's task, so that both are never whole in memory
    }
    return std::move(plan_);
  }

 private:
  Checked<Ok> place_slots() {
    std::vector<bool> used(draft_.slots.size());
    for (std::size_t s = 0; s < used.size(); ++s) used[s] = draft_.slots[s].level == Level::Home;
    for (const DraftTask& task : draft_.tasks) {
      for (const auto* refs : {&task.reads, &task.writes}) {
        for (const DraftRef& ref : *refs) used[static_cast<std::size_t>(ref.slot)] = true;
      }
    }
    struct Extent {
      std::int64_t offset = 0;
      std::int64_t bytes = 0;
    };
    std::unordered_map<std::string, Extent> extents;
    // All ranks' slots have equal sizes.
    std::map<std::pair<int, std::vector<bool>>, std::int64_t> elements;
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < used.size(); ++s) {
      if (!used[s]) continue;
      order.push_back(s);
      const DraftSlot& slot = draft_.slots[s];
      Extent& extent = extents[slot.name];
      const auto [most, fresh] = elements.try_emplace({slot.buffer, slot.holds}, 0);
      if (fresh) most->second = max_elements(draft_.blocks, slot.buffer, slot.holds);
      extent.bytes = std::max(extent.bytes, most->second * size_in_bytes(slot.dtype));
    }
    std::int64_t end = 0;
    std::unordered_set<std::string> placed;
    for (const std::size_t s : order) {  // in the order of first use
      if (!placed.insert(draft_.slots[s].name).second) continue;
      Extent& extent = extents[draft_.slots[s].name];
      extent.offset = end;
      end = saturating_add(end,
                           (extent.bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment);
    }
    if (end > kMostBytes) {
      return make_diag(DiagCode::F246, {{"slots", placed.size()}, {"limit", kMostBytes}});
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t s) { return draft_.slots[s].rank; });
    alloc_of_.resize(draft_.slots.size());
    for (const std::size_t s : order) {
      const DraftSlot& slot = draft_.slots[s];
      const Extent& extent = extents.at(slot.name);
      alloc_of_[s] = AllocId(static_cast<std::int64_t>(plan_.allocs.size()));
      plan_.allocs.push_back(
          {.rank = slot.rank,
           .name = slot.name,
           .buffer = draft_.blocks.buffers()[static_cast<std::size_t>(slot.buffer)].name,
           .level = slot.level,
           .dtype = slot.dtype,
           .holds = slot.holds,
           .offset = extent.offset,
           .bytes = extent.bytes});
    }
    return Ok{};
  }

  void make_queues() {
    for (const DraftTask& task : draft_.tasks) {
      if (!task.is_barrier) queues_.try_emplace({task.rank, task.queue});
    }
    for (auto& [queue, id] : queues_) {
      id = QueueId(static_cast<std::int64_t>(plan_.queues.size()));
      plan_.queues.push_back({queue.first, queue.second});
    }
  }

  void number_tasks() {
    std::int64_t count = 0;
    for (const DraftTask& task : draft_.tasks) {
      ids_.push_back(task.is_barrier ? TaskId() : TaskId(count++));
    }
    plan_.tasks.reserve(static_cast<std::size_t>(count));
  }

  [[nodiscard]] TaskId id_of(std::size_t task) const { return ids_[task]; }
  [[nodiscard]] TaskId id_of(int task) const { return id_of(static_cast<std::size_t>(task)); }

  Ref emit_ref(const DraftRef& ref) const {
    Ref out{.alloc = alloc_of_[static_cast<std::size_t>(ref.slot)],
            .mode = ref.mode,
            .boxes = boxes_of(draft_.blocks, draft_.digits_of(ref.slot), ref.blocks),
            .when = std::nullopt};
    if (ref.choice >= 0) {
      out.when =
          RouteChoice{.digit = draft_.blocks.digits()[static_cast<std::size_t>(ref.choice)].name,
                      .value = ref.value};
    }
    return out;
  }

  Task emit_task(const DraftTask& from) const {
    Task task;
    task.queue = queues_.at({from.rank, from.queue});
    task.kind = from.kind;
    task.collective = from.collective;
    task.group = from.group;
    if (from.nest >= 0) {
      const Nest& nest = draft_.program.nests[static_cast<std::size_t>(from.nest)];
      task.nest = nest.name;
      task.stmt = from.stmt;
      if (from.kind == TaskKind::Compute) {
        task.iter = boxes_of(draft_.blocks, draft_.nest_digits[static_cast<std::size_t>(from.nest)],
                             from.iter);
        task.kernel = from.kernel;
        const NestForm* form = find_nest(draft_.form, nest.name);
        task.leaf_kernel = kernel_of(*form, nest.stmts[static_cast<std::size_t>(from.stmt)]);
      }
    }
    for (const DraftRef& ref : from.reads) task.reads.push_back(emit_ref(ref));
    for (const DraftRef& ref : from.writes) task.writes.push_back(emit_ref(ref));
    if (from.kind == TaskKind::Copy || from.kind == TaskKind::Collective) {
      task.how = from.how;
      task.via = from.via;
      task.wire = from.wire;
      task.bytes = bytes_crossing(from);
    }
    return task;
  }

  // The kernel that the schedule chose, or else the one that the program declares for the leaf.
  std::string kernel_of(const NestForm& form, const Stmt& stmt) const {
    if (form.leaf.kernel) return *form.leaf.kernel;
    const LeafDecl* const declared = find_leaf(draft_.program, stmt.leaf);
    return declared == nullptr ? "" : declared->kernel.value_or("");
  }

  // Reads from another rank count in the type in which they arrive.
  std::int64_t bytes_crossing(const DraftTask& task) const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const DraftSlot& to = draft_.slot(task.writes[std::min(i, task.writes.size() - 1)]);
      if (draft_.slot(task.reads[i]).rank == to.rank) continue;
      for (const BlockId block : task.reads[i].blocks) {
        bytes = saturating_add(bytes, draft_.blocks.elements(to.buffer, block) *
                                          size_in_bytes(task.wire.value_or(to.dtype)));
      }
    }
    return bytes;
  }

  // A signal to a third rank takes another connection than the put, so no NIC can order the two;
  // and only the put's destination can count immediate data.
  std::optional<Fence> fence_of(const DraftTask& from, const DraftTask& to) const {
    if (!is_put(from)) return std::nullopt;
    if (destination_of(draft_, from) == to.rank) return from.fence;
    if (from.fence == Fence::NicOrdered || from.fence == Fence::Batched)
      return Fence::PerDestination;
    return from.fence == Fence::Immediate ? Fence::PerPut : from.fence;
  }

  std::int32_t next_flag(RankId rank) { return flags_[rank]++; }

  void make_signals() {
    std::map<int, Barrier> barriers;
    for (std::size_t i = 0; i < draft_.tasks.size(); ++i) {
      const DraftTask& task = draft_.tasks[i];
      for (const int before : task.after) {
        if (task.is_barrier) {
          barriers[static_cast<int>(i)].from.push_back(id_of(before));
        } else if (draft_.tasks[static_cast<std::size_t>(before)].is_barrier) {
          barriers[before].to.push_back(id_of(i));
        } else {
          const bool local = draft_.tasks[static_cast<std::size_t>(before)].rank == task.rank;
          plan_.syncs.push_back(
              {.from = id_of(before),
               .to = id_of(i),
               .kind = local ? SyncKind::Event : SyncKind::Flag,
               .flag = next_flag(task.rank),
               .fence = local ? std::nullopt
                              : fence_of(draft_.tasks[static_cast<std::size_t>(before)], task)});
        }
      }
    }
    for (auto& [node, barrier] : barriers) {
      if (barrier.to.empty()) continue;
      // One flag index for all waiting ranks, above every flag in use: a symmetric address.
      std::int32_t index = 0;
      for (const auto& [rank, count] : flags_) index = std::max(index, count);
      barrier.flag = index;
      for (RankId rank(0); rank.value < draft_.blocks.ranks(); ++rank.value)
        flags_[rank] = index + 1;
      plan_.barriers.push_back(std::move(barrier));
    }
  }

  Draft draft_;
  Plan plan_;
  std::vector<AllocId> alloc_of_;
  std::map<std::pair<RankId, QueueKind>, QueueId> queues_;
  std::vector<TaskId> ids_;  // per task of the draft; none for barriers
  std::map<RankId, std::int32_t> flags_;
};

}  // namespace

Checked<Plan> emit(Draft draft, const TimeLimit& limit) {
  return Emitter(std::move(draft)).run(limit);
}

}  // namespace harpe
