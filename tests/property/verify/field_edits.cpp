#include "tests/property/verify/field_edits.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

namespace harpe::test {
namespace {

constexpr DType kTypes[] = {DType::F32,    DType::F16,    DType::BF16, DType::F64,
                            DType::F8E4M3, DType::F8E5M2, DType::I8,   DType::U8,
                            DType::I32,    DType::I64,    DType::Bool};
constexpr int kLevels = 7;
constexpr int kQueues = 8;
constexpr int kTaskKinds = 10;
constexpr int kVias = 7;
constexpr int kHows = 5;
constexpr int kFences = 6;

class Editor {
 public:
  Editor(const Plan& plan, std::size_t per_field, std::mt19937_64& random)
      : plan_(plan), per_field_(per_field), random_(random) {}

  std::vector<Mutant> run() {
    edit_allocs();
    edit_places();
    edit_tasks();
    edit_transfers();
    edit_refs();
    edit_edges();
    return std::move(edits_);
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  // `change` returns false if it changes nothing.
  template <class Item, class Change>
  void add(const std::string& edit, std::vector<Item> Plan::* items, const Change& change) {
    const std::size_t count = (plan_.*items).size();
    for (std::size_t i = 0; i < per_field_ && count > 0; ++i) {
      Plan edited = plan_;
      const bool changed = change(edited, (edited.*items)[below(count)]);
      if (changed && edited != plan_) edits_.push_back({edit, std::move(edited)});
    }
  }

  template <class Enum>
  Enum any(int count) {
    return static_cast<Enum>(below(static_cast<std::size_t>(count)));
  }
  DType any_type() { return kTypes[below(std::size(kTypes))]; }

  // Makes the edit on one rank, and on all ranks.
  void edit_slots(const std::string& edit, const std::function<void(Alloc&)>& change) {
    add(edit, &Plan::allocs, [&](Plan&, Alloc& alloc) {
      change(alloc);
      return true;
    });
    add(edit + "-everywhere", &Plan::allocs, [&](Plan& plan, const Alloc& alloc) {
      Alloc like = alloc;
      change(like);
      const std::string name = alloc.name;
      for (Alloc& each : plan.allocs) {
        if (each.name != name) continue;
        const RankId rank = each.rank;
        each = like;
        each.rank = rank;
      }
      return true;
    });
  }

  void edit_allocs() {
    edit_slots("alloc.dtype", [this](Alloc& alloc) { alloc.dtype = any_type(); });
    edit_slots("alloc.dtype-with-room", [this](Alloc& alloc) {
      const std::int64_t elements = alloc.bytes / size_in_bytes(alloc.dtype);
      alloc.dtype = any_type();
      alloc.bytes = elements * size_in_bytes(alloc.dtype);
    });
    edit_slots("alloc.level", [this](Alloc& alloc) { alloc.level = any<Level>(kLevels); });
    edit_slots("alloc.holds", [this](Alloc& alloc) {
      if (alloc.holds.empty()) return;
      const std::size_t at = below(alloc.holds.size());
      alloc.holds[at] = !alloc.holds[at];
    });
    edit_slots("alloc.buffer", [this](Alloc& alloc) {
      alloc.buffer = plan_.allocs[below(plan_.allocs.size())].buffer;
    });
    add("alloc.rank", &Plan::allocs, [this](Plan& plan, Alloc& alloc) {
      alloc.rank =
          RankId(static_cast<std::int64_t>(below(static_cast<std::size_t>(plan.mesh.ranks()))));
      return true;
    });
  }

  // Shifts or resizes a slot by less than an element, and by more.
  void edit_places() {
    edit_slots("alloc.offset", [this](Alloc& alloc) {
      constexpr std::int64_t kShifts[] = {-256, -4, -1, 1, 2, 3, 4, 8, 16, 256};
      alloc.offset += kShifts[below(std::size(kShifts))];
    });
    edit_slots("alloc.bytes", [this](Alloc& alloc) {
      const std::int64_t size = size_in_bytes(alloc.dtype);
      const std::int64_t others[] = {
          0, 1, alloc.bytes / 2, alloc.bytes - size, alloc.bytes + size, alloc.bytes - 1};
      alloc.bytes = others[below(std::size(others))];
    });
    add("alloc.offset-of-the-last", &Plan::allocs, [this](Plan& plan, Alloc&) {
      // The last slot of every rank may move up without meeting another slot.
      const auto last = std::ranges::max_element(plan.allocs, {}, &Alloc::offset);
      constexpr std::int64_t kShifts[] = {1, 2, 4, 8, 24};
      const std::int64_t shift = kShifts[below(std::size(kShifts))];
      const std::string name = last->name;
      for (Alloc& each : plan.allocs) {
        if (each.name == name) each.offset += shift;
      }
      return true;
    });
  }

  void edit_tasks() {
    add("lane.rank", &Plan::queues, [this](Plan& plan, Queue& queue) {
      queue.rank =
          RankId(static_cast<std::int64_t>(below(static_cast<std::size_t>(plan.mesh.ranks()))));
      return true;
    });
    add("lane.kind", &Plan::queues, [this](Plan&, Queue& queue) {
      queue.kind = any<QueueKind>(kQueues);
      return true;
    });
    add("task.lane", &Plan::tasks, [this](Plan& plan, Task& task) {
      task.queue = QueueId(static_cast<std::int64_t>(below(plan.queues.size())));
      return true;
    });
    add("task.kind", &Plan::tasks, [this](Plan&, Task& task) {
      task.kind = any<TaskKind>(kTaskKinds);
      return true;
    });
    add("task.statement", &Plan::tasks, [this](Plan& plan, Task& task) {
      const Task& other = plan.tasks[below(plan.tasks.size())];
      task.nest = other.nest;
      task.stmt = other.stmt + static_cast<int>(below(2));
      return true;
    });
    add("task.kernel", &Plan::tasks, [this](Plan& plan, Task& task) {
      task.kernel = plan.tasks[below(plan.tasks.size())].kernel;
      return true;
    });
    add("task.leaf_kernel", &Plan::tasks, [this](Plan&, Task& task) {
      task.leaf_kernel = below(2) == 0 ? "cublaslt" : "gemm_sm90";
      return true;
    });
  }

  void edit_transfers() {
    add("task.bytes", &Plan::tasks, [this](Plan&, Task& task) {
      const std::int64_t others[] = {0, 1, task.bytes / 2, task.bytes * 2, task.bytes + 1};
      task.bytes = others[below(std::size(others))];
      return true;
    });
    add("task.via", &Plan::tasks, [this](Plan&, Task& task) {
      task.via = any<Via>(kVias);
      return true;
    });
    add("task.via-and-its-lane", &Plan::tasks, [this](Plan& plan, const Task& task) {
      const QueueId id = task.queue;
      constexpr std::pair<Via, QueueKind> kWays[] = {{Via::Ce, QueueKind::Ce},
                                                     {Via::Tma, QueueKind::Tma},
                                                     {Via::Nccl, QueueKind::Nccl},
                                                     {Via::Proxy, QueueKind::Proxy},
                                                     {Via::Ibgda, QueueKind::Ibgda}};
      const auto& [via, queue] = kWays[below(std::size(kWays))];
      plan.queues[id.index()].kind = queue;
      for (Task& each : plan.tasks) {
        if (each.queue == id) each.via = via;
      }
      return true;
    });
    add("task.how", &Plan::tasks, [this](Plan&, Task& task) {
      task.how = any<How>(kHows);
      return true;
    });
    add("task.wire", &Plan::tasks, [this](Plan&, Task& task) {
      task.wire = below(3) == 0 ? std::nullopt : std::optional(any_type());
      return true;
    });
    add("task.collective", &Plan::tasks, [this](Plan&, Task& task) {
      task.collective = any<CollectiveOp>(3);
      return true;
    });
    add("task.group", &Plan::tasks, [this](Plan& plan, Task& task) {
      task.group = below(2) == 0 ? 1000 : plan.tasks[below(plan.tasks.size())].group;
      return true;
    });
  }

  void edit_refs() {
    for (const std::string side : {"read", "write"}) {
      const auto refs = side == "read" ? &Task::reads : &Task::writes;
      const auto edit = [&](const std::string& field, const auto& change) {
        add(side + "." + field, &Plan::tasks, [&](Plan& plan, Task& task) {
          if ((task.*refs).empty()) return false;
          change(plan, task, (task.*refs)[below((task.*refs).size())]);
          return true;
        });
      };
      edit("alloc", [this](Plan& plan, Task&, Ref& ref) {
        ref.alloc = AllocId(static_cast<std::int64_t>(below(plan.allocs.size())));
      });
      edit("mode", [this](Plan&, Task&, Ref& ref) { ref.mode = any<WriteMode>(4); });
      edit("box", [this](Plan&, Task&, Ref& ref) {
        if (ref.boxes.empty() || ref.boxes.front().empty()) return;
        Range& range = ref.boxes.front()[below(ref.boxes.front().size())];
        (below(2) == 0 ? range.lo : range.hi) += below(2) == 0 ? 1 : -1;
      });
      edit("when", [](Plan&, Task&, Ref& ref) { ref.when.reset(); });
      edit("twice",
           [refs](Plan&, Task& task, const Ref& ref) { (task.*refs).push_back(Ref(ref)); });
      edit("order", [this, refs](Plan&, Task& task, Ref& ref) {
        std::swap(ref, (task.*refs)[below((task.*refs).size())]);
      });
    }
    add("transfer.order", &Plan::tasks, [this](Plan&, Task& task) {
      if (task.reads.size() != task.writes.size() || task.reads.size() < 2) return false;
      const std::size_t a = below(task.reads.size());
      const std::size_t b = below(task.reads.size());
      std::swap(task.reads[a], task.reads[b]);
      std::swap(task.writes[a], task.writes[b]);
      return true;
    });
  }

  void edit_edges() {
    const auto any_task = [this](Plan& plan) {
      return TaskId(static_cast<std::int64_t>(below(plan.tasks.size())));
    };
    add("sync.from", &Plan::syncs, [&](Plan& plan, Sync& sync) {
      sync.from = any_task(plan);
      return true;
    });
    add("sync.to", &Plan::syncs, [&](Plan& plan, Sync& sync) {
      sync.to = any_task(plan);
      return true;
    });
    add("sync.kind", &Plan::syncs, [&](Plan&, Sync& sync) {
      sync.kind = any<SyncKind>(3);
      return true;
    });
    add("sync.flag", &Plan::syncs, [&](Plan&, Sync& sync) {
      sync.flag = static_cast<std::int32_t>(below(20)) - 1;
      return true;
    });
    add("sync.fence", &Plan::syncs, [&](Plan&, Sync& sync) {
      sync.fence = below(4) == 0 ? std::nullopt : std::optional(any<Fence>(kFences));
      return true;
    });
    add("barrier.flag", &Plan::barriers, [&](Plan&, Barrier& barrier) {
      barrier.flag = static_cast<std::int32_t>(below(20)) - 1;
      return true;
    });
    add("barrier.to", &Plan::barriers, [&](Plan& plan, Barrier& barrier) {
      if (barrier.to.empty()) return false;
      barrier.to[below(barrier.to.size())] = any_task(plan);
      return true;
    });
    add("barrier.from", &Plan::barriers, [&](Plan& plan, Barrier& barrier) {
      if (barrier.from.empty()) return false;
      barrier.from[below(barrier.from.size())] = any_task(plan);
      return true;
    });
  }

  const Plan& plan_;
  std::size_t per_field_;
  std::mt19937_64& random_;
  std::vector<Mutant> edits_;
};

}  // namespace

std::vector<Mutant> make_field_edits(const Plan& plan, std::size_t per_field,
                                     std::mt19937_64& random) {
  return Editor(plan, per_field, random).run();
}

}  // namespace harpe::test
