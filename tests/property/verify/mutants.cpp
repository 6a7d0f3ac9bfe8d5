#include "tests/property/verify/mutants.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "ir/blocks.h"

namespace harpe::test {
namespace {

class Mutator {
 public:
  Mutator(const Plan& plan, std::size_t per_kind, std::mt19937_64& random)
      : plan_(plan), per_kind_(per_kind), random_(random) {}

  std::vector<Mutant> run() {
    break_order();
    break_transfers();
    break_parts();
    break_leaves();
    break_combinations();
    break_groups();
    break_fences();
    break_launches();
    break_homes();
    return std::move(mutants_);
  }

 private:
  using Ids = std::vector<std::size_t>;

  Ids tasks(const std::function<bool(const Task&)>& wanted) const {
    Ids ids;
    for (std::size_t id = 0; id < plan_.tasks.size(); ++id) {
      if (wanted(plan_.tasks[id])) ids.push_back(id);
    }
    return ids;
  }
  Ids tasks(TaskKind kind) const {
    return tasks([&](const Task& task) { return task.kind == kind; });
  }
  static Ids count_to(std::size_t count) {
    Ids ids(count);
    std::iota(ids.begin(), ids.end(), std::size_t{0});
    return ids;
  }
  std::size_t below(std::size_t bound) { return random_() % bound; }

  Ids pick(Ids ids) {
    std::ranges::shuffle(ids, random_);
    ids.resize(std::min(ids.size(), per_kind_));
    return ids;
  }

  // `change` returns false if the fault is impossible there.
  void add(const std::string& mutation, const Ids& from,
           const std::function<bool(Plan&, std::size_t)>& change) {
    for (const std::size_t id : pick(from)) {
      Plan mutant = plan_;
      if (change(mutant, id)) mutants_.push_back({mutation, std::move(mutant)});
    }
  }

  static void idle(Plan& plan, std::size_t id) {
    Task& task = plan.tasks[id];
    const QueueKind queue = plan.queues[task.queue.index()].kind;
    constexpr std::pair<QueueKind, Via> kVias[] = {{QueueKind::Sm, Via::Sm},
                                                   {QueueKind::Ce, Via::Ce},
                                                   {QueueKind::Tma, Via::Tma},
                                                   {QueueKind::Nccl, Via::Nccl},
                                                   {QueueKind::Proxy, Via::Proxy},
                                                   {QueueKind::Ibgda, Via::Ibgda},
                                                   {QueueKind::Multimem, Via::Multimem}};
    Task nothing;
    nothing.queue = task.queue;
    nothing.kind = TaskKind::Copy;
    for (const auto& [kind, via] : kVias) {
      if (kind == queue) nothing.via = via;
    }
    const RankId rank = plan.queues[task.queue.index()].rank;
    for (std::size_t a = 0; a < plan.allocs.size() && nothing.reads.empty(); ++a) {
      const bool input = plan.allocs[a].level == Level::Home &&
                         find_buffer(plan.program, plan.allocs[a].buffer)->role == Role::In;
      if (plan.allocs[a].rank != rank || input) continue;
      const AllocId slot(static_cast<std::int64_t>(a));
      nothing.reads = {{.alloc = slot, .mode = WriteMode::Read, .boxes = {}, .when = {}}};
      nothing.writes = {{.alloc = slot, .mode = WriteMode::Set, .boxes = {}, .when = {}}};
    }
    task = nothing;
  }

  void drop(const std::string& mutation, const Ids& from) {
    add(mutation, from, [](Plan& plan, std::size_t id) {
      idle(plan, id);
      return true;
    });
  }

  void break_order() {
    add("drop-sync", count_to(plan_.syncs.size()), [](Plan& plan, std::size_t id) {
      plan.syncs.erase(plan.syncs.begin() + static_cast<std::ptrdiff_t>(id));
      return true;
    });
    add("cyclic-wait", count_to(plan_.syncs.size()), [](Plan& plan, std::size_t id) {
      const Sync sync = plan.syncs[id];
      plan.syncs.push_back(
          {.from = sync.to, .to = sync.from, .kind = sync.kind, .flag = 1'000'000});
      return true;
    });
    Ids members;  // (barrier, from or to, position), flattened
    for (std::size_t b = 0; b < plan_.barriers.size(); ++b) {
      const std::size_t all = plan_.barriers[b].from.size() + plan_.barriers[b].to.size();
      for (std::size_t i = 0; i < all; ++i) members.push_back(b * kBarrierStride + i);
    }
    add("drop-barrier-member", members, [](Plan& plan, std::size_t code) {
      Barrier& barrier = plan.barriers[code / kBarrierStride];
      const std::size_t at = code % kBarrierStride;
      const std::size_t from = barrier.from.size();
      auto& side = at < from ? barrier.from : barrier.to;
      side.erase(side.begin() + static_cast<std::ptrdiff_t>(at < from ? at : at - from));
      return true;
    });
    add("swap-lane-order", tasks([](const Task& task) {
          return task.kind != TaskKind::Entry && task.kind != TaskKind::Exit;
        }),
        [](Plan& plan, std::size_t id) {
          for (std::size_t next = id + 1; next < plan.tasks.size(); ++next) {
            if (plan.tasks[next].queue != plan.tasks[id].queue) continue;
            std::swap(plan.tasks[id], plan.tasks[next]);
            return true;
          }
          return false;
        });
  }

  void break_transfers() {
    drop("drop-copy", tasks(TaskKind::Copy));
    add("wrong-source-rank", tasks(TaskKind::Copy), [this](Plan& plan, std::size_t id) {
      Ref& ref = plan.tasks[id].reads[below(plan.tasks[id].reads.size())];
      return redirect(plan, ref, [&](const Alloc& now, const Alloc& other) {
        return now.name == other.name && now.rank != other.rank;
      });
    });
    add("wrong-slot", tasks(TaskKind::Copy), [this](Plan& plan, std::size_t id) {
      Ref& ref = plan.tasks[id].writes[below(plan.tasks[id].writes.size())];
      return redirect(plan, ref, [&](const Alloc& now, const Alloc& other) {
        return now.name != other.name && now.rank == other.rank && now.buffer == other.buffer &&
               now.level == other.level && now.holds == other.holds;
      });
    });
  }

  // References limited to one value of a digit: changes, drops or swaps the values.
  void break_parts() {
    const auto cut_refs = [](std::vector<Ref>& refs) {
      std::vector<Ref*> found;
      for (Ref& ref : refs) {
        if (ref.when) found.push_back(&ref);
      }
      return found;
    };
    const auto is_cut = [](const std::vector<Ref>& refs) {
      return std::ranges::any_of(refs, [](const Ref& ref) { return ref.when.has_value(); });
    };
    const Ids readers = tasks([&](const Task& task) { return is_cut(task.reads); });
    const Ids bringers = tasks([&](const Task& task) { return is_cut(task.writes); });
    const auto turn = [](const Plan& plan, RouteChoice& when) {
      const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
      const int digit = blocks->find_digit(when.digit);
      const std::int32_t extent = blocks->digits()[static_cast<std::size_t>(digit)].extent;
      when.value = (when.value + 1) % extent;
      return extent > 1;
    };
    add("wrong-part-read", readers, [=, this](Plan& plan, std::size_t id) {
      const std::vector<Ref*> refs = cut_refs(plan.tasks[id].reads);
      return turn(plan, *refs[below(refs.size())]->when);
    });
    add("wrong-part-brought", bringers, [=, this](Plan& plan, std::size_t id) {
      const std::vector<Ref*> refs = cut_refs(plan.tasks[id].writes);
      return turn(plan, *refs[below(refs.size())]->when);
    });
    add("part-read-as-whole", readers, [=, this](Plan& plan, std::size_t id) {
      const std::vector<Ref*> refs = cut_refs(plan.tasks[id].reads);
      refs[below(refs.size())]->when.reset();
      return true;
    });
    add("swapped-parts", readers, [=, this](Plan& plan, std::size_t id) {
      const std::vector<Ref*> refs = cut_refs(plan.tasks[id].reads);
      if (refs.size() < 2) return false;
      const std::size_t first = below(refs.size());
      std::swap(refs[first]->when, refs[(first + 1) % refs.size()]->when);
      return true;
    });
  }

  bool redirect(Plan& plan, Ref& ref, const std::function<bool(const Alloc&, const Alloc&)>& fits) {
    const Alloc& now = plan.allocs[ref.alloc.index()];
    Ids others;
    for (std::size_t a = 0; a < plan.allocs.size(); ++a) {
      if (fits(now, plan.allocs[a])) others.push_back(a);
    }
    if (others.empty()) return false;
    ref.alloc = AllocId(static_cast<std::int64_t>(others[below(others.size())]));
    return true;
  }

  void break_leaves() {
    drop("drop-compute", tasks(TaskKind::Compute));
    add("repeat-iteration", tasks(TaskKind::Compute), [](Plan& plan, std::size_t id) {
      Task& task = plan.tasks[id];
      Box first = task.iter[0];
      for (Range& range : first) range.hi = range.lo + 1;
      task.iter.push_back(first);
      return true;
    });
    add("wrong-iteration", tasks(TaskKind::Compute), [this](Plan& plan, std::size_t id) {
      Task& task = plan.tasks[id];
      const std::vector<std::int32_t> extents = extents_of(plan, task.nest);
      Ids digits;
      for (std::size_t d = 0; d < extents.size(); ++d) {
        if (extents[d] > 1) digits.push_back(d);
      }
      if (digits.empty()) return false;
      std::vector<Box> points = split(task.iter);
      Range& range = points[0][digits[below(digits.size())]];
      const std::int32_t extent = extents[static_cast<std::size_t>(&range - points[0].data())];
      range.lo = (range.lo + 1) % extent;
      range.hi = range.lo + 1;
      task.iter = std::move(points);
      return true;
    });
  }

  static std::vector<std::int32_t> extents_of(const Plan& plan, const std::string& nest) {
    const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
    std::vector<std::int32_t> extents;
    for (const int digit :
         iteration_digits(plan.program, *blocks, *find_nest(plan.program, nest))) {
      extents.push_back(blocks->digits()[static_cast<std::size_t>(digit)].extent);
    }
    return extents;
  }

  static std::vector<Box> split(const std::vector<Box>& boxes) {
    std::vector<Box> points;
    for (const Box& box : boxes) {
      std::vector<Box> cut = {{}};
      for (const Range& range : box) {
        std::vector<Box> longer;
        for (const Box& head : cut) {
          for (std::int32_t v = range.lo; v < range.hi; ++v) {
            longer.push_back(head);
            longer.back().push_back({.lo = v, .hi = v + 1});
          }
        }
        cut = std::move(longer);
      }
      points.insert(points.end(), cut.begin(), cut.end());
    }
    return points;
  }

  void break_combinations() {
    drop("drop-fold", tasks(TaskKind::Fold));
    drop("drop-finalise", tasks(TaskKind::Finalise));
    drop("drop-init", tasks(TaskKind::Init));
    const Ids accumulating = tasks([](const Task& task) {
      return std::ranges::any_of(task.writes, [](const Ref& ref) {
        return ref.mode == WriteMode::Init || ref.mode == WriteMode::Add;
      });
    });
    add("flip-init", accumulating, [](Plan& plan, std::size_t id) {
      for (Ref& ref : plan.tasks[id].writes) {
        ref.mode = ref.mode == WriteMode::Init ? WriteMode::Add : WriteMode::Init;
      }
      return true;
    });
    add("drop-source", tasks(TaskKind::Finalise), [](Plan& plan, std::size_t id) {
      Task& task = plan.tasks[id];
      const std::size_t width = task.writes.size();
      if (task.reads.size() <= width) return false;
      task.reads.resize(task.reads.size() - width);
      return true;
    });
  }

  void break_groups() {
    const Ids members = tasks(TaskKind::Collective);
    add("wrong-collective-member", members, [this](Plan& plan, std::size_t id) {
      Ref& ref = plan.tasks[id].reads[below(plan.tasks[id].reads.size())];
      return redirect(plan, ref, [&](const Alloc& now, const Alloc& other) {
        return now.name == other.name && now.rank != other.rank;
      });
    });
    add("drop-collective-part", members, [this](Plan& plan, std::size_t id) {
      Task& task = plan.tasks[id];
      const std::size_t part = below(task.reads.size());
      task.reads[part].boxes.clear();
      if (part < task.writes.size() && task.writes.size() == task.reads.size()) {
        task.writes[part].boxes.clear();
      }
      return true;
    });
    add("leave-group", members, [](Plan& plan, std::size_t id) {
      plan.tasks[id].group = 1'000'000;
      return true;
    });
  }

  // Signals behind puts: without a fence, with the weakest fence, or raised behind a later put.
  void break_fences() {
    Ids words;
    for (std::size_t id = 0; id < plan_.syncs.size(); ++id) {
      if (plan_.syncs[id].fence) words.push_back(id);
    }
    add("drop-fence", words, [](Plan& plan, std::size_t id) {
      plan.syncs[id].fence.reset();
      return true;
    });
    add("weaken-fence", words, [](Plan& plan, std::size_t id) {
      const bool is_least =
          plan.syncs[id].fence == Fence::PerPut || plan.syncs[id].fence == Fence::Immediate;
      plan.syncs[id].fence = Fence::PerPut;
      return !is_least;
    });
    add("signal-behind-a-later-put", words, [](Plan& plan, std::size_t id) {
      const TaskId from = plan.syncs[id].from;
      for (std::size_t next = from.index() + 1; next < plan.tasks.size(); ++next) {
        if (plan.tasks[next].queue != plan.tasks[from.index()].queue) continue;
        plan.syncs[id].from = TaskId(static_cast<std::int64_t>(next));
        return true;
      }
      return false;
    });
  }

  // Launches: more SMs than their transfers leave free, or a different launch in the middle.
  void break_launches() {
    const Ids fused = count_to(plan_.form.fuses.size());
    add("larger-budget", fused, [](Plan& plan, std::size_t id) {
      plan.form.fuses[id].sm = 132;
      return plan.form.fuses[id].persistent;
    });
    add("another-kernel", tasks(TaskKind::Compute), [](Plan& plan, std::size_t id) {
      const Task& task = plan.tasks[id];
      const auto same = std::ranges::count_if(plan.tasks, [&](const Task& other) {
        return other.queue == task.queue && other.kernel == task.kernel;
      });
      plan.tasks[id].kernel = 1'000'000;
      return same > 2;
    });
  }

  // Homes: partial homes declared whole, and contributions written to another owner's memory.
  void break_homes() {
    Ids parts;
    for (std::size_t id = 0; id < plan_.form.places.size(); ++id) {
      if (!plan_.form.places[id].partial.empty()) parts.push_back(id);
    }
    add("close-partial-home", parts, [](Plan& plan, std::size_t id) {
      plan.form.places[id].partial.clear();
      return true;
    });
    const Ids wholes = count_to(plan_.form.places.size());
    add("open-whole-home", wholes, [](Plan& plan, std::size_t id) {
      Place& place = plan.form.places[id];
      const bool is_output = find_buffer(plan.program, place.buffer)->role == Role::Out;
      if (!is_output || !place.partial.empty() || !place.at.empty()) return false;
      place.partial.push_back(
          {.monoid = Monoid::Sum, .axes = {refined(plan.mesh, plan.form).axes.front().name}});
      return true;
    });
    const Ids givers = tasks([&](const Task& task) {
      return task.kind == TaskKind::Compute &&
             std::ranges::any_of(task.writes, [&](const Ref& ref) {
               return plan_.allocs[ref.alloc.index()].rank != plan_.queues[task.queue.index()].rank;
             });
    });
    add("wrong-owner", givers, [this](Plan& plan, std::size_t id) {
      Ref& ref = plan.tasks[id].writes[below(plan.tasks[id].writes.size())];
      return redirect(plan, ref, [&](const Alloc& now, const Alloc& other) {
        return now.name == other.name && now.rank != other.rank;
      });
    });
  }

  static constexpr std::size_t kBarrierStride = 1 << 20;

  const Plan& plan_;
  std::size_t per_kind_;
  std::mt19937_64& random_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> make_mutants(const Plan& plan, std::size_t per_kind, std::mt19937_64& random) {
  return Mutator(plan, per_kind, random).run();
}

}  // namespace harpe::test
