#include <algorithm>
#include <limits>

#include "verify/structure.h"
#include "verify/types.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

// Names an item as "task 5"; formatted only for a finding.
struct Where {
  const char* kind;
  std::size_t id;
  [[nodiscard]] std::string text() const { return kind + (" " + std::to_string(id)); }
};

// Names the owner of a box: "buffer `K`".
struct Owner {
  const char* kind;
  const std::string& name;
  const Radix& radix;
};

class IdCheck {
 public:
  IdCheck(const Plan& plan, const Model& model)
      : plan_(plan), model_(model), types_(types_of(plan.form, model)) {}

  Checked<Ok> check_allocs() {
    for (std::size_t id = 0; id < plan_.allocs.size(); ++id) {
      const Alloc& alloc = plan_.allocs[id];
      const Where where{"alloc", id};
      HP_REQUIRE_OK(check_rank(where, alloc.rank));
      const int buffer = model_.find_buffer(alloc.buffer);
      if (buffer < 0)
        return bad_alloc(id, "is for buffer `" + alloc.buffer + "`, which is unknown");
      const BufferModel& model = model_.buffers[static_cast<std::size_t>(buffer)];
      HP_REQUIRE_OK(check_alloc(id, model));
      buffers_.push_back(buffer);
    }
    return Ok{};
  }

  Checked<Ok> check_tasks() const {
    for (std::size_t id = 0; id < plan_.queues.size(); ++id) {
      HP_REQUIRE_OK(check_rank(Where{"lane", id}, plan_.queues[id].rank));
    }
    for (std::size_t id = 0; id < plan_.tasks.size(); ++id) {
      const Task& task = plan_.tasks[id];
      const Where where{"task", id};
      HP_REQUIRE_OK(check_id(where, "lane", task.queue.value, plan_.queues.size()));
      HP_REQUIRE_OK(check_statement(where, task));
      HP_REQUIRE_OK(check_refs(where, task, task.reads));
      HP_REQUIRE_OK(check_refs(where, task, task.writes));
    }
    return Ok{};
  }

  Checked<Ok> check_edges() const {
    for (std::size_t id = 0; id < plan_.syncs.size(); ++id) {
      const Where where{"sync", id};
      HP_REQUIRE_OK(check_id(where, "task", plan_.syncs[id].from.value, plan_.tasks.size()));
      HP_REQUIRE_OK(check_id(where, "task", plan_.syncs[id].to.value, plan_.tasks.size()));
    }
    for (std::size_t id = 0; id < plan_.barriers.size(); ++id) {
      const Where where{"barrier", id};
      for (const auto* const side : {&plan_.barriers[id].from, &plan_.barriers[id].to}) {
        for (const TaskId task : *side) {
          HP_REQUIRE_OK(check_id(where, "task", task.value, plan_.tasks.size()));
        }
      }
    }
    return Ok{};
  }

 private:
  static Checked<Ok> check_id(const Where& where, const char* kind, std::int64_t id,
                              std::size_t count) {
    if (id >= 0 && id < static_cast<std::int64_t>(count)) return Ok{};
    return make_diag(DiagCode::V204,
                     {{"where", where.text()}, {"kind", kind}, {"id", id}, {"count", count}});
  }

  [[nodiscard]] Checked<Ok> check_rank(const Where& where, RankId rank) const {
    return check_id(where, "rank", rank.value, static_cast<std::size_t>(model_.ranks));
  }

  [[nodiscard]] Diag bad_alloc(std::size_t id, const std::string& problem) const {
    return make_diag(DiagCode::V207, {{"alloc", id},
                                      {"name", plan_.allocs[id].name},
                                      {"rank", plan_.allocs[id].rank.value},
                                      {"problem", problem}});
  }

  [[nodiscard]] Checked<Ok> check_alloc(std::size_t id, const BufferModel& buffer) const {
    const Alloc& alloc = plan_.allocs[id];
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;
    if (alloc.holds.size() != buffer.radix.digits.size()) {
      return bad_alloc(id, "speaks of " + std::to_string(alloc.holds.size()) + " digits, and `" +
                               buffer.name + "` has " + std::to_string(buffer.radix.digits.size()));
    }
    if (alloc.offset < 0 || alloc.bytes < 0 || alloc.offset > kMost || alloc.bytes > kMost ||
        alloc.offset % size_in_bytes(alloc.dtype) != 0) {
      return bad_alloc(id, "cannot lie at offset " + std::to_string(alloc.offset) + " with " +
                               std::to_string(alloc.bytes) + " bytes of " +
                               std::string(print(alloc.dtype)));
    }
    const BufferTypes& known = types_[static_cast<std::size_t>(&buffer - model_.buffers.data())];
    const std::vector<DType> types = types_at(alloc.level, buffer, known);
    if (std::ranges::find(types, alloc.dtype) == types.end()) {
      return bad_alloc(id, "is a slot of level " + std::string(print(alloc.level)) + " and dtype " +
                               std::string(print(alloc.dtype)) + ", and `" + buffer.name +
                               "` has " + print_types(types) + " there");
    }
    if (alloc.level != Level::Home) return Ok{};
    for (std::size_t i = 0; i < buffer.home.size(); ++i) {
      if (buffer.radix.extents[i] > 1 && alloc.holds[i] != buffer.home[i].empty()) {
        const DigitModel& digit = model_.digits[static_cast<std::size_t>(buffer.radix.digits[i])];
        return bad_alloc(id, "holds " + std::string(alloc.holds[i] ? "all values" : "one value") +
                                 " of `" + digit.name + "`, and a home of `" + buffer.name +
                                 "` holds " + (alloc.holds[i] ? "one" : "all"));
      }
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_box(const Where& where, const Owner& owner,
                                      const Box& box) const {
    const Radix& radix = owner.radix;
    if (box.size() != radix.digits.size()) {
      return make_diag(DiagCode::V205, {{"where", where.text()},
                                        {"owner", owner.kind + (" `" + owner.name + "`")},
                                        {"found", box.size()},
                                        {"expected", radix.digits.size()}});
    }
    for (std::size_t i = 0; i < box.size(); ++i) {
      if (box[i].lo >= 0 && box[i].lo < box[i].hi && box[i].hi <= radix.extents[i]) continue;
      return make_diag(DiagCode::V206,
                       {{"where", where.text()},
                        {"owner", owner.kind + (" `" + owner.name + "`")},
                        {"digit", model_.digits[static_cast<std::size_t>(radix.digits[i])].name},
                        {"lo", box[i].lo},
                        {"hi", box[i].hi},
                        {"extent", radix.extents[i]}});
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_statement(const Where& where, const Task& task) const {
    const bool combines =
        task.kind == TaskKind::Collective && task.collective == CollectiveOp::ReduceScatter;
    const bool needs = combines || task.kind == TaskKind::Init || task.kind == TaskKind::Compute ||
                       task.kind == TaskKind::Fold || task.kind == TaskKind::Finalise;
    const bool iterates = task.kind == TaskKind::Compute;
    const int nest = model_.find_nest(task.nest);
    const auto bad = [&](const std::string& problem) {
      return make_diag(DiagCode::V226, {{"where", where.text()},
                                        {"kind", print(task.kind)},
                                        {"statement", task.nest + "." + std::to_string(task.stmt)},
                                        {"problem", problem}});
    };
    if (!needs) {
      if (!task.nest.empty() || !task.iter.empty()) return bad("a task of this kind has none");
      return Ok{};
    }
    if (nest < 0) return bad("the program has no such nest");
    const NestModel& model = model_.nests[static_cast<std::size_t>(nest)];
    if (task.stmt < 0 || task.stmt >= model.statement_count) {
      return bad("the nest has " + count_of(model.statement_count, "statement"));
    }
    if (iterates == task.iter.empty())
      return bad(iterates ? "it runs over no iteration" : "a task of this kind does not iterate");
    for (const Box& box : task.iter) {
      HP_REQUIRE_OK(check_box(where, {"nest", model.name, model.space}, box));
    }
    return Ok{};
  }

  // Why this reference cannot have this cut; "" if it can.
  [[nodiscard]] std::string cut_problem(const Task& task, const Ref& ref) const {
    const bool operand = task.kind == TaskKind::Compute && ref.mode == WriteMode::Read;
    const bool moved =
        task.kind != TaskKind::Collective && ref.mode == WriteMode::Set && task.nest.empty();
    if (!operand && !moved) return "only operands read and blocks copied can be cut";
    const int digit = model_.find_digit(ref.when->digit);
    if (digit < 0) return "the form has no such digit";
    const DigitModel& model = model_.digits[static_cast<std::size_t>(digit)];
    if (ref.when->value < 0 || ref.when->value >= model.extent) {
      return "the digit has " + count_of(model.extent, "value");
    }
    if (moved) {
      const auto routes = std::ranges::count_if(model_.routes, [&](const RouteModel& route) {
        return model.axis == route.expert || model.axis == route.slot || model.axis == route.token;
      });
      return routes == 1 ? "" : count_of(routes, "route") + " could mean it";
    }
    const NestModel& nest = model_.nests[static_cast<std::size_t>(model_.find_nest(task.nest))];
    const StatementModel& statement =
        model_.statements[static_cast<std::size_t>(nest.first_statement + task.stmt)];
    if (std::ranges::count(nest.space.digits, digit) == 0) {
      return "nest `" + nest.name + "` does not run over the digit";
    }
    const bool routed = std::ranges::any_of(statement.operands, [&](const AccessModel& access) {
      return access.routed && access.buffer == buffers_[ref.alloc.index()];
    });
    return routed ? "" : "the statement does not read the buffer through a route";
  }

  [[nodiscard]] Checked<Ok> check_refs(const Where& where, const Task& task,
                                       const std::vector<Ref>& refs) const {
    const bool reads = &refs == &task.reads;
    for (const Ref& ref : refs) {
      HP_REQUIRE_OK(check_id(where, "alloc", ref.alloc.value, plan_.allocs.size()));
      const Alloc& alloc = plan_.allocs[ref.alloc.index()];
      if (reads != (ref.mode == WriteMode::Read)) {
        return make_diag(DiagCode::V225, {{"task", where.text()},
                                          {"alloc", "`" + alloc.name + "`"},
                                          {"mode", mode_word(ref.mode)},
                                          {"expected", reads ? "read" : "init, add or set"}});
      }
      const BufferModel& buffer =
          model_.buffers[static_cast<std::size_t>(buffers_[ref.alloc.index()])];
      if (const std::string problem = ref.when ? cut_problem(task, ref) : ""; !problem.empty()) {
        return make_diag(DiagCode::V215, {{"task", where.text()},
                                          {"alloc", alloc.name},
                                          {"digit", ref.when->digit},
                                          {"value", ref.when->value},
                                          {"problem", problem}});
      }
      for (const Box& box : ref.boxes) {
        HP_REQUIRE_OK(check_box(where, {"buffer", buffer.name, buffer.radix}, box));
      }
    }
    return Ok{};
  }

  const Plan& plan_;
  const Model& model_;
  std::vector<BufferTypes> types_;
  std::vector<int> buffers_;  // per alloc
};

}  // namespace

Checked<Ok> check_ids(const Plan& plan, const Model& model) {
  IdCheck check(plan, model);
  HP_REQUIRE_OK(check.check_allocs());
  HP_REQUIRE_OK(check.check_tasks());
  return check.check_edges();
}

}  // namespace harpe::verifier
