#include <algorithm>

#include "verify/structure.h"
#include "verify/types.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

QueueKind queue_of(Via via) {
  switch (via) {
    case Via::Ce:
      return QueueKind::Ce;
    case Via::Sm:
      return QueueKind::Sm;
    case Via::Tma:
      return QueueKind::Tma;
    case Via::Nccl:
      return QueueKind::Nccl;
    case Via::Proxy:
      return QueueKind::Proxy;
    case Via::Ibgda:
      return QueueKind::Ibgda;
    case Via::Multimem:
      return QueueKind::Multimem;
  }
  return QueueKind::Host;
}

// The kind of queue on which a task of this kind runs.
QueueKind queue_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::Entry:
    case TaskKind::Exit:
      return QueueKind::Host;
    case TaskKind::Copy:
      return queue_of(task.via);
    case TaskKind::Collective:
      return QueueKind::Nccl;
    case TaskKind::Init:
    case TaskKind::Compute:
    case TaskKind::Pack:
    case TaskKind::Unpack:
    case TaskKind::Fold:
    case TaskKind::Finalise:
      return QueueKind::Sm;
  }
  return QueueKind::Host;
}

bool is_transfer(TaskKind kind) {
  return kind == TaskKind::Copy || kind == TaskKind::Pack || kind == TaskKind::Unpack;
}

class TaskCheck {
 public:
  TaskCheck(const Plan& plan, const Model& model, const Resolved& resolved)
      : plan_(plan),
        model_(model),
        resolved_(resolved),
        types_(types_of(plan.form, model)),
        words_(plan, model) {}

  // Checks for one Entry and one Exit per rank, around all other tasks on their queue (D11).
  Checked<Ok> check_boundary(TaskKind kind) const {
    std::vector<std::int64_t> found(static_cast<std::size_t>(model_.ranks), 0);
    std::vector<std::int64_t> first(plan_.queues.size(), -1);
    std::vector<std::int64_t> last(plan_.queues.size(), -1);
    for (std::size_t id = 0; id < plan_.tasks.size(); ++id) {
      const std::size_t queue = plan_.tasks[id].queue.index();
      if (first[queue] < 0) first[queue] = static_cast<std::int64_t>(id);
      last[queue] = static_cast<std::int64_t>(id);
      if (plan_.tasks[id].kind == kind) ++found[plan_.queues[queue].rank.index()];
    }
    const auto wrong = std::ranges::find_if(found, [](std::int64_t count) { return count != 1; });
    if (wrong != found.end()) {
      return make_diag(DiagCode::V221,
                       {{"rank", wrong - found.begin()}, {"count", *wrong}, {"kind", print(kind)}});
    }
    const bool entry = kind == TaskKind::Entry;
    for (std::size_t id = 0; id < plan_.tasks.size(); ++id) {
      const std::size_t queue = plan_.tasks[id].queue.index();
      const std::int64_t edge = entry ? first[queue] : last[queue];
      if (plan_.tasks[id].kind == kind && edge != static_cast<std::int64_t>(id)) {
        return make_diag(DiagCode::V222, {{"task", words_.task(static_cast<std::int64_t>(id))},
                                          {"place", entry ? "first" : "last"},
                                          {"other", words_.task(edge)},
                                          {"side", entry ? "before" : "after"}});
      }
    }
    return Ok{};
  }

  Checked<Ok> check(std::size_t id) const {
    const Task& task = plan_.tasks[id];
    HP_REQUIRE_OK(check_queue(id, task));
    HP_REQUIRE_OK(check_reach(id, task));
    HP_REQUIRE_OK(check_modes(id, task));
    if (task.kind == TaskKind::Compute) HP_REQUIRE_OK(check_compute(id));
    HP_REQUIRE_OK(check_levels(id, task));
    HP_REQUIRE_OK(check_wire(id, task));
    HP_REQUIRE_OK(check_kernel(id, task));
    if (is_transfer(task.kind)) return check_pairs(id, task);
    if (task.kind == TaskKind::Compute) return Ok{};
    if (resolved_.statements[id] >= 0) return check_combination(id, task);
    const bool boundary = task.kind == TaskKind::Entry || task.kind == TaskKind::Exit;
    if (boundary && !(task.reads.empty() && task.writes.empty())) {
      return malformed(id, "names blocks, and owns all slots of its rank as it is");
    }
    return Ok{};
  }

 private:
  [[nodiscard]] std::string name(std::size_t id) const {
    return words_.task(static_cast<std::int64_t>(id));
  }
  [[nodiscard]] const std::string& buffer_name(std::int32_t buffer) const {
    return model_.buffers[static_cast<std::size_t>(buffer)].name;
  }
  [[nodiscard]] Diag malformed(std::size_t id, const std::string& problem) const {
    return make_diag(DiagCode::V228, {{"task", name(id)}, {"problem", problem}});
  }
  [[nodiscard]] const Alloc& alloc(const Ref& ref) const { return plan_.allocs[ref.alloc.index()]; }

  [[nodiscard]] Checked<Ok> check_queue(std::size_t id, const Task& task) const {
    const QueueKind queue = plan_.queues[task.queue.index()].kind;
    const QueueKind wanted = queue_of(task);
    const bool strided = task.kind == TaskKind::Pack || task.kind == TaskKind::Unpack;
    if (queue == wanted || (strided && (queue == QueueKind::Ce || queue == QueueKind::Tma)))
      return Ok{};
    return make_diag(DiagCode::V220, {{"task", name(id)},
                                      {"lane", print(queue)},
                                      {"id", task.queue.value},
                                      {"expected", print(wanted)}});
  }

  // Whether the schedule lets the leaf access other ranks' memory for this buffer.
  [[nodiscard]] bool is_inline(const Task& task, const std::string& buffer, MoveKind kind) const {
    if (task.kind != TaskKind::Compute) return false;
    const auto nest = std::ranges::find(plan_.form.nests, task.nest, &NestForm::nest);
    if (nest == plan_.form.nests.end()) return false;
    return std::ranges::any_of(nest->items, [&](const NestItem& item) {
      const auto* const move = std::get_if<Move>(&item);
      return move != nullptr && move->kind == kind && move->how == How::Inline &&
             move->buffer == buffer;
    });
  }

  // Checks that only transfers and inline operands and targets access another rank's memory, and
  // that the source or the destination rank issues each copy.
  [[nodiscard]] Checked<Ok> check_reach(std::size_t id, const Task& task) const {
    const RankId rank = plan_.queues[task.queue.index()].rank;
    const auto refuse = [&](const Alloc& slot) {
      return make_diag(DiagCode::V223,
                       {{"task", name(id)}, {"alloc", slot.name}, {"rank", slot.rank.value}});
    };
    if (task.kind == TaskKind::Copy) {
      for (std::size_t i = 0; i < std::min(task.reads.size(), task.writes.size()); ++i) {
        const Alloc& to = alloc(task.writes[i]);
        if (alloc(task.reads[i]).rank != rank && to.rank != rank) return refuse(to);
      }
      return Ok{};
    }
    for (const Ref& ref : task.writes) {
      if (alloc(ref).rank == rank || is_inline(task, alloc(ref).buffer, MoveKind::Drain)) continue;
      return refuse(alloc(ref));
    }
    if (task.kind == TaskKind::Collective) return Ok{};
    for (const Ref& ref : task.reads) {
      if (alloc(ref).rank == rank || is_inline(task, alloc(ref).buffer, MoveKind::Stage)) continue;
      return refuse(alloc(ref));
    }
    return Ok{};
  }

  [[nodiscard]] Monoid monoid(std::size_t id) const {
    const std::int32_t statement = resolved_.statements[id];
    return statement < 0 ? Monoid::Store
                         : model_.statements[static_cast<std::size_t>(statement)].monoid;
  }

  [[nodiscard]] bool accumulates(std::size_t id) const {
    const TaskKind kind = plan_.tasks[id].kind;
    return kind == TaskKind::Fold || (kind == TaskKind::Compute && monoid(id) != Monoid::Store) ||
           (kind == TaskKind::Collective && resolved_.statements[id] >= 0);
  }

  [[nodiscard]] Checked<Ok> check_modes(std::size_t id, const Task& task) const {
    const bool accumulate = accumulates(id);
    const bool only_init = task.kind == TaskKind::Collective;
    for (const Ref& ref : task.writes) {
      const bool fits =
          accumulate ? ref.mode == WriteMode::Init || (ref.mode == WriteMode::Add && !only_init)
                     : ref.mode == WriteMode::Set;
      if (fits) continue;
      return make_diag(DiagCode::V225, {{"task", name(id)},
                                        {"alloc", "`" + alloc(ref).name + "`"},
                                        {"mode", mode_word(ref.mode)},
                                        {"expected", !accumulate ? "set"
                                                     : only_init ? "init"
                                                                 : "init or add"}});
    }
    return Ok{};
  }

  // The level that a slot must have for the task to write it; null if it has that level.
  [[nodiscard]] const char* level_fault(std::size_t id, const Task& task, const Alloc& slot,
                                        const BufferModel& buffer) const {
    const bool home = slot.level == Level::Home;
    const bool keeps_states =
        slot.level == Level::Acc || slot.level == Level::Drain || slot.level == Level::Sum;
    if (task.kind == TaskKind::Finalise || task.kind == TaskKind::Init) {
      return home ? nullptr : "a home";
    }
    if (task.kind == TaskKind::Pack) return slot.level == Level::Pack ? nullptr : "a pack slot";
    if (accumulates(id)) {
      if (home ? buffer.partial.empty() : !keeps_states) return "a slot for partial states";
    } else if (task.kind != TaskKind::Compute) {
      return keeps_states ? "a home or a slot of what is moved" : nullptr;
    }
    if (task.kind != TaskKind::Compute || home || !accumulates(id)) return nullptr;
    if (is_inline(task, slot.buffer, MoveKind::Drain)) {
      return slot.level == Level::Sum ? nullptr : "sum, as its drain is inline";
    }
    return slot.level == Level::Acc ? nullptr : "acc";
  }

  // Partial states stay out of homes, final values go into homes, and no task writes inputs.
  [[nodiscard]] Checked<Ok> check_levels(std::size_t id, const Task& task) const {
    for (std::size_t i = 0; i < task.writes.size(); ++i) {
      const Alloc& slot = alloc(task.writes[i]);
      const BufferModel& buffer = model_.buffers[static_cast<std::size_t>(
          resolved_.footprint(task.writes[i].alloc.value).buffer)];
      if (slot.level == Level::Home && buffer.role == Role::In) {
        return make_diag(DiagCode::V230, {{"task", name(id)},
                                          {"buffer", buffer.name},
                                          {"alloc", slot.name},
                                          {"rank", slot.rank.value}});
      }
      const char* expected = level_fault(id, task, slot, buffer);
      if (task.kind == TaskKind::Unpack && i < task.reads.size() &&
          alloc(task.reads[i]).level != Level::Pack) {
        expected = "read from a pack slot";
      }
      if (expected == nullptr) continue;
      return make_diag(DiagCode::V229, {{"task", name(id)},
                                        {"alloc", slot.name},
                                        {"level", print(slot.level)},
                                        {"expected", expected}});
    }
    return Ok{};
  }

  // A reduction rounds what it adds to the drain's type; every other transfer takes the type of the
  // destination slot.
  [[nodiscard]] Checked<Ok> check_wire(std::size_t id, const Task& task) const {
    const auto refuse = [&](const std::string& expected) {
      return make_diag(
          DiagCode::V234,
          {{"task", name(id)},
           {"wire", task.wire ? "`wire " + std::string(print(*task.wire)) + "`" : "no `wire`"},
           {"expected", expected}});
    };
    if (task.kind != TaskKind::Collective || resolved_.statements[id] < 0) {
      return task.wire ? Checked<Ok>(refuse("none")) : Ok{};
    }
    if (task.writes.empty()) return Ok{};  // check_combination refuses it
    const BufferModel& buffer = model_.buffers[static_cast<std::size_t>(
        resolved_.footprint(task.writes.front().alloc.value).buffer)];
    const BufferTypes& known = types_[static_cast<std::size_t>(&buffer - model_.buffers.data())];
    const std::vector<DType> types = types_at(Level::Inbox, buffer, known);
    if (task.wire && std::ranges::find(types, *task.wire) != types.end()) return Ok{};
    return refuse(print_types(types));
  }

  // The kernel of a Compute: the normal form's, or else the program's.
  [[nodiscard]] std::string kernel_for(const Task& task) const {
    const auto form = std::ranges::find(plan_.form.nests, task.nest, &NestForm::nest);
    if (form != plan_.form.nests.end() && form->leaf.kernel) return *form->leaf.kernel;
    const Nest* const nest = find_nest(plan_.program, task.nest);
    if (nest == nullptr || task.stmt < 0 || task.stmt >= std::ssize(nest->stmts)) return "";
    const Stmt& stmt = nest->stmts[static_cast<std::size_t>(task.stmt)];
    const LeafDecl* const declared = find_leaf(plan_.program, stmt.leaf);
    return declared == nullptr ? "" : declared->kernel.value_or("");
  }

  [[nodiscard]] Checked<Ok> check_kernel(std::size_t id, const Task& task) const {
    const std::string expected = task.kind == TaskKind::Compute ? kernel_for(task) : "";
    if (task.leaf_kernel == expected) return Ok{};
    const auto words = [](const std::string& kernel) {
      return kernel.empty() ? std::string("no named kernel") : "kernel `" + kernel + "`";
    };
    return make_diag(
        DiagCode::V235,
        {{"task", name(id)}, {"kernel", words(task.leaf_kernel)}, {"expected", words(expected)}});
  }

  [[nodiscard]] Checked<Ok> check_pairs(std::size_t id, const Task& task) const {
    if (task.reads.size() != task.writes.size() || task.reads.empty()) {
      return malformed(id, "has " + count_of(static_cast<std::int64_t>(task.reads.size()), "read") +
                               " and " +
                               count_of(static_cast<std::int64_t>(task.writes.size()), "write") +
                               ", and moves each read to the write beside it");
    }
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const Alloc& from = alloc(task.reads[i]);
      const Alloc& to = alloc(task.writes[i]);
      if (from.level == Level::Pack && from.dtype != to.dtype) {
        return make_diag(DiagCode::V233, {{"task", name(id)},
                                          {"from", from.name},
                                          {"from_type", print(from.dtype)},
                                          {"to", to.name},
                                          {"to_type", print(to.dtype)}});
      }
      const bool same = from.buffer == to.buffer && task.reads[i].boxes == task.writes[i].boxes;
      if (same) continue;
      return make_diag(DiagCode::V224,
                       {{"task", name(id)}, {"index", i}, {"from", from.name}, {"to", to.name}});
    }
    return Ok{};
  }

  [[nodiscard]] Diag stranger(std::size_t id, const std::string& verb, std::int32_t buffer,
                              const std::string& role) const {
    return make_diag(DiagCode::V227, {{"task", name(id)},
                                      {"verb", verb},
                                      {"buffer", buffer_name(buffer)},
                                      {"role", role},
                                      {"statement", words_.statement(resolved_.statements[id])}});
  }

  [[nodiscard]] Checked<Ok> check_compute(std::size_t id) const {
    const StatementModel& statement =
        model_.statements[static_cast<std::size_t>(resolved_.statements[id])];
    for (const ResolvedRef& ref : resolved_.reads(id)) {
      const bool known =
          std::ranges::count(statement.operands, ref.buffer, &AccessModel::buffer) > 0;
      if (!known) return stranger(id, "reads", ref.buffer, "operand");
    }
    for (const ResolvedRef& ref : resolved_.writes(id)) {
      const bool known =
          std::ranges::count(statement.targets, ref.buffer, &AccessModel::buffer) > 0;
      if (!known) return stranger(id, "writes", ref.buffer, "target");
    }
    return Ok{};
  }

  // A tied state needs one ref per target, in target order; otherwise all refs have one target.
  [[nodiscard]] Checked<Ok> check_width(std::size_t id, std::span<const ResolvedRef> refs,
                                        const std::string& verb) const {
    const StatementModel& statement =
        model_.statements[static_cast<std::size_t>(resolved_.statements[id])];
    const std::size_t width = statement.tied ? 2 : 1;
    if (refs.size() % width != 0) {
      return malformed(id, verb + " " + std::to_string(refs.size()) + " refs of a state with " +
                               std::to_string(width) + " targets");
    }
    const std::int32_t only = resolved_.writes(id).front().buffer;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      const std::int32_t wanted = statement.tied ? statement.targets[i % width].buffer : only;
      const bool known = std::ranges::count(statement.targets, wanted, &AccessModel::buffer) > 0;
      if (!known) return stranger(id, verb, wanted, "target");
      if (refs[i].buffer != wanted) {
        return malformed(id, verb + " `" + buffer_name(refs[i].buffer) + "` where `" +
                                 buffer_name(wanted) + "` belongs");
      }
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_combination(std::size_t id, const Task& task) const {
    if (task.writes.empty()) return malformed(id, "writes nothing");
    const bool init = task.kind == TaskKind::Init;
    if (init && monoid(id) == Monoid::Store) {
      return malformed(id, "writes an identity, and its statement has no monoid");
    }
    if (init != task.reads.empty()) {
      return malformed(id, init ? "reads, and writes an identity" : "has no source");
    }
    const bool tied = model_.statements[static_cast<std::size_t>(resolved_.statements[id])].tied;
    if (tied && task.kind == TaskKind::Collective) {
      return malformed(id, "reduces a state of two targets, which no collective can");
    }
    HP_REQUIRE_OK(check_width(id, resolved_.writes(id), "writes"));
    return check_width(id, resolved_.reads(id), "reads");
  }

  const Plan& plan_;
  const Model& model_;
  const Resolved& resolved_;
  std::vector<BufferTypes> types_;
  Words words_;
};

}  // namespace

Checked<Ok> check_tasks(const Plan& plan, const Model& model, const Resolved& resolved) {
  const TaskCheck check(plan, model, resolved);
  HP_REQUIRE_OK(check.check_boundary(TaskKind::Entry));
  HP_REQUIRE_OK(check.check_boundary(TaskKind::Exit));
  for (std::size_t id = 0; id < plan.tasks.size(); ++id) HP_REQUIRE_OK(check.check(id));
  return Ok{};
}

}  // namespace harpe::verifier
