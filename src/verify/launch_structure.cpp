#include "verify/launch_structure.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leaves/leaf.h"
#include "plan/launch_signals.h"
#include "plan/launch_text.h"
#include "plan/refs.h"
#include "verify/clocks.h"
#include "verify/step_builder.h"

namespace harpe::verifier {
namespace {

using launch::Kernel;
using launch::LaunchPlan;
using launch::SignalId;

// Kernels that state panels; all others do their tasks whole.
constexpr std::array<std::string_view, 3> kWithPanels = {"gemm_sm90", "grouped_gemm",
                                                         "fa_fwd_sm90"};
// Those of them that apply maps.
constexpr std::array<std::string_view, 1> kWithMaps = {"gemm_sm90"};
// Kernels that state panels for the rest of a task beside another kernel of the launch with panels.
constexpr std::array<std::string_view, 1> kWithRests = {"gemm"};
constexpr std::array<std::string_view, 2> kLibraries = {"cublaslt_gemm", "cudnn_fa_fwd"};

bool is_one_of(const std::string& name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

class LaunchCheck {
 public:
  LaunchCheck(const Plan& plan, const LaunchPlan& launches, const Words& words)
      : plan_(plan), launches_(launches), words_(words), done_(plan.tasks.size()) {}

  Checked<Ok> run() {
    for (const launch::Signal& signal : launches_.signals) {
      if (signal.rank.valid() && signal.rank.value < words_.model().ranks) continue;
      return make_diag(DiagCode::V703, {{"id", &signal - launches_.signals.data()},
                                        {"what", std::string(launch::print(signal.kind))},
                                        {"arrivals", signal.arrivals},
                                        {"problem", "lies in the page of no rank"}});
    }
    for (id_ = 0; id_ < launches_.launches.size(); ++id_) {
      HP_REQUIRE_OK(check_launch(launches_.launches[id_]));
    }
    for (const AllocId id : launches_.partials16) HP_REQUIRE_OK(check_narrowed(id));
    return check_done();
  }

 private:
  [[nodiscard]] Diag misfit(const std::string& problem) const {
    return make_diag(
        DiagCode::V702,
        {{"launch", id_}, {"rank", launches_.launches[id_].rank.value}, {"problem", problem}});
  }

  Checked<Ok> check_launch(const launch::Launch& launch) {
    if (launch.lands) {
      return make_diag(DiagCode::V202, {{"what", "launch " + std::to_string(id_) +
                                                     ", which lands a put of another host,"}});
    }
    const bool has_queue = launch.queue.valid() && launch.queue.index() < plan_.queues.size();
    if (!has_queue || plan_.queues[launch.queue.index()].rank != launch.rank) {
      return misfit("is issued to queue " + std::to_string(launch.queue.value) +
                    ", which its rank lacks");
    }
    HP_REQUIRE_OK(check_tasks(launch));
    for (const auto* const list : {&launch.after, &launch.begun}) {
      for (const launch::LaunchId other : *list) HP_REQUIRE_OK(check_other(launch, other));
    }
    HP_REQUIRE_OK(check_signals(launch));
    if (launch.reserved_sms < 0) return misfit("reserves fewer than no SMs");
    if (launch.is_skipped && !launch.kernels.empty()) return misfit("is skipped and has kernels");
    for (const Kernel& kernel : launch.kernels) HP_REQUIRE_OK(check_kernel(launch, kernel));
    return check_kinds(launch);
  }

  Checked<Ok> check_tasks(const launch::Launch& launch) {
    if (launch.does.empty()) return misfit("does no task");
    for (const TaskId id : launch.does) {
      if (!id.valid() || id.index() >= plan_.tasks.size()) {
        return misfit("does task " + std::to_string(id.value) + ", which the plan lacks");
      }
      done_[id.index()].push_back(id_);
      if (words_.rank_of(id.value) == launch.rank) continue;
      return misfit("does " + words_.task(id));
    }
    return Ok{};
  }

  Checked<Ok> check_other(const launch::Launch& launch, launch::LaunchId other) const {
    if (!other.valid() || other.index() >= launches_.launches.size()) {
      return misfit("waits for launch " + std::to_string(other.value) + ", which is not there");
    }
    if (launches_.launches[other.index()].rank == launch.rank) return Ok{};
    return misfit("waits for launch " + std::to_string(other.value) + " of rank " +
                  std::to_string(launches_.launches[other.index()].rank.value) +
                  ": other ranks are known by signals");
  }

  Checked<Ok> check_awaited(const launch::Launch& launch, SignalId signal) const {
    HP_REQUIRE_OK(check_raised(signal));
    if (launches_.signals[signal.index()].rank == launch.rank) return Ok{};
    return misfit("awaits signal " + std::to_string(signal.value) +
                  ", which is in the page of rank " +
                  std::to_string(launches_.signals[signal.index()].rank.value));
  }

  Checked<Ok> check_raised(SignalId signal) const {
    if (signal.valid() && signal.index() < launches_.signals.size()) return Ok{};
    return misfit("names signal " + std::to_string(signal.value) + ", which is not there");
  }

  Checked<Ok> check_signals(const launch::Launch& launch) const {
    for (const SignalId signal : launch.awaits) HP_REQUIRE_OK(check_awaited(launch, signal));
    for (const auto& signal : {launch.all_ready, launch.all_pulled}) {
      if (signal) HP_REQUIRE_OK(check_awaited(launch, *signal));
    }
    for (const auto* const raises : {&launch.ready, &launch.pulled, &launch.raises}) {
      for (const launch::Raise& raise : *raises) HP_REQUIRE_OK(check_raised(raise.signal));
    }
    for (const Kernel& kernel : launch.kernels) {
      for (const launch::Raise& raise : kernel.fused_stores) {
        HP_REQUIRE_OK(check_raised(raise.signal));
      }
      for (const launch::FusedCopy& copy : kernel.fused_copies) {
        if (copy.raises) HP_REQUIRE_OK(check_raised(*copy.raises));
      }
      for (const launch::Arrival& arrival : kernel.arrivals) {
        if (arrival.when) HP_REQUIRE_OK(check_awaited(launch, *arrival.when));
      }
      for (const launch::Panel& panel : kernel.panels) {
        for (const launch::Addend& addend : panel.addends) {
          if (addend.when) HP_REQUIRE_OK(check_awaited(launch, *addend.when));
        }
      }
    }
    return Ok{};
  }

  [[nodiscard]] Diag cannot(const Kernel& kernel, const std::string& problem) const {
    return make_diag(DiagCode::V704, {{"kernel", kernel.name},
                                      {"launch", id_},
                                      {"rank", launches_.launches[id_].rank.value},
                                      {"problem", problem}});
  }

  [[nodiscard]] bool reads_other_ranks(TaskId id) const {
    return std::ranges::any_of(plan_.tasks[id.index()].reads, [&](const Ref& read) {
      return plan_.allocs[read.alloc.index()].rank != rank_of(plan_, id);
    });
  }

  Checked<Ok> check_kernel(const launch::Launch& launch, const Kernel& kernel) const {
    const bool is_library = is_one_of(kernel.name, kLibraries);
    const bool has_rest =
        is_one_of(kernel.name, kWithRests) && std::ranges::any_of(launch.kernels, has_panels);
    if (has_panels(kernel) != (is_library || has_rest || is_one_of(kernel.name, kWithPanels))) {
      return cannot(kernel, has_panels(kernel) ? "states panels or copies, which it has not"
                                               : "does not state its panels");
    }
    const auto moves = [&](TaskId id) {
      const TaskKind kind = plan_.tasks[id.index()].kind;
      return kind == TaskKind::Copy || kind == TaskKind::Pack || kind == TaskKind::Unpack ||
             kind == TaskKind::Collective;
    };
    const bool is_mover = kernel.name == "copy_engine" || kernel.name == "nccl";
    if (is_mover && !std::ranges::all_of(launch.does, moves)) {
      return cannot(kernel, "is to do more than move data");
    }
    if (kernel.name == "copy_engine" && !std::ranges::all_of(launch.does, [&](TaskId id) {
          return keeps_types(plan_.tasks[id.index()]);
        })) {
      return cannot(kernel, "is to convert or add up what it moves");
    }
    if (kernel.name == "copy_engine" && !launch.lands &&
        std::ranges::any_of(launch.does, [&](TaskId id) { return reads_other_ranks(id); })) {
      return cannot(kernel, "is to read what lies on another rank");
    }
    if ((is_library || has_rest) && launch::names_signals(kernel)) {
      return cannot(kernel, "waits or raises inside, which it cannot");
    }
    if (kernel.fused_copies.empty() != (kernel.copy_blocks == 0)) {
      return cannot(kernel, "has " + std::to_string(kernel.copy_blocks) +
                                " thread blocks for its fused copies, of which it has " +
                                std::to_string(kernel.fused_copies.size()));
    }
    HP_REQUIRE_OK(check_indices(kernel));
    HP_REQUIRE_OK(check_maps(kernel));
    return check_allocs(kernel);
  }

  [[nodiscard]] bool renames(const launch::Map& map) const {
    const Nest& nest = *find_nest(plan_.program, map.nest);
    const Stmt& stmt = nest.stmts[static_cast<std::size_t>(map.stmt)];
    const auto has_renames = [](const Access& access) { return !access.renames.empty(); };
    return std::ranges::any_of(stmt.targets, has_renames) ||
           std::ranges::any_of(stmt.operands, has_renames);
  }

  Checked<Ok> check_maps(const Kernel& kernel) const {
    for (const launch::Panel& panel : kernel.panels) {
      if (panel.maps.empty()) continue;
      if (!is_one_of(kernel.name, kWithMaps)) {
        return cannot(kernel, "applies maps, which it cannot");
      }
      if (panel.adds) return cannot(kernel, "adds what a map makes to what is there");
      for (const launch::Map& map : panel.maps) {
        const Nest* const nest = find_nest(plan_.program, map.nest);
        const bool is_known =
            nest != nullptr && map.stmt >= 0 && std::cmp_less(map.stmt, nest->stmts.size());
        const LeafContract* const leaf =
            is_known ? find_leaf_contract(nest->stmts[static_cast<std::size_t>(map.stmt)].leaf)
                     : nullptr;
        const std::string name = "`" + map.nest + "." + std::to_string(map.stmt) + "`";
        if (leaf == nullptr || !leaf->pointwise || renames(map)) {
          return cannot(kernel,
                        "applies " + name + ", which is no pointwise statement, or renames axes");
        }
        for (const launch::Place& place : map.reads) {
          if (std::ranges::count(map.reads, place) == 1) continue;
          return cannot(kernel, "gives " + name + " an operand twice");
        }
      }
    }
    return Ok{};
  }

  [[nodiscard]] DType dtype_of(const Ref& ref) const {
    const Alloc& alloc = plan_.allocs[ref.alloc.index()];
    const bool is_narrowed = std::ranges::count(launches_.partials16, ref.alloc) > 0;
    return is_narrowed ? find_buffer(plan_.program, alloc.buffer)->dtype : alloc.dtype;
  }

  [[nodiscard]] bool keeps_types(const Task& task) const {
    if (task.reads.size() != task.writes.size()) return false;
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      if (dtype_of(task.reads[i]) != dtype_of(task.writes[i])) return false;
    }
    return true;
  }

  Checked<Ok> check_indices(const Kernel& kernel) const {
    std::vector<bool> is_met(kernel.arrivals.size(), false);
    std::vector<bool> is_stored(kernel.fused_stores.size(), false);
    for (const launch::Panel& panel : kernel.panels) {
      for (const std::int32_t arrival : panel.meets) {
        if (arrival < 0 || static_cast<std::size_t>(arrival) >= is_met.size()) {
          return cannot(kernel, "meets arrival " + std::to_string(arrival) + ", which it has not");
        }
        is_met[static_cast<std::size_t>(arrival)] = true;
      }
      if (!panel.fused_store) continue;
      const auto store = static_cast<std::size_t>(*panel.fused_store);
      if (*panel.fused_store < 0 || store >= is_stored.size()) {
        return cannot(kernel, "names fused store " + std::to_string(*panel.fused_store) +
                                  ", which it has not");
      }
      is_stored[store] = true;
    }
    if (std::ranges::count(is_met, false) > 0)
      return cannot(kernel, "has an arrival that no panel meets");
    if (std::ranges::count(is_stored, false) > 0) {
      return cannot(kernel, "has a fused store that no panel is for");
    }
    return Ok{};
  }

  Checked<Ok> check_allocs(const Kernel& kernel) const {
    const std::size_t allocs = plan_.allocs.size() + launches_.boxes.size();
    const auto fits = [&](const launch::Place& place) {
      return place.alloc.valid() && place.alloc.index() < allocs;
    };
    bool all = true;
    for (const launch::Arrival& arrival : kernel.arrivals) {
      if (arrival.reads.empty()) return cannot(kernel, "has an arrival without operands");
      all = all && std::ranges::all_of(arrival.reads, fits);
    }
    for (const launch::Panel& panel : kernel.panels) {
      all =
          all && std::ranges::all_of(panel.reads, fits) && std::ranges::all_of(panel.stores, fits);
      for (const launch::Addend& addend : panel.addends) {
        all = all && std::ranges::all_of(addend.reads, fits);
      }
      for (const launch::Map& map : panel.maps) all = all && std::ranges::all_of(map.reads, fits);
    }
    for (const launch::FusedCopy& copy : kernel.fused_copies) {
      all = all && fits(copy.from) && fits(copy.to);
    }
    return all ? Checked<Ok>(Ok{}) : cannot(kernel, "names an allocation that is not there");
  }

  // Entries and Exits have no kernel; every other launch needs a kernel or is skipped.
  Checked<Ok> check_kinds(const launch::Launch& launch) const {
    const auto is_boundary = [&](TaskId id) {
      const TaskKind kind = plan_.tasks[id.index()].kind;
      return kind == TaskKind::Entry || kind == TaskKind::Exit;
    };
    const TaskKind first = plan_.tasks[launch.does.front().index()].kind;
    const bool has_boundary = std::ranges::any_of(launch.does, is_boundary);
    if (has_boundary && (launch.does.size() > 1 || !launch.kernels.empty() || launch.is_skipped)) {
      return misfit("does an entry or an exit and something else");
    }
    if (launch.begins_epoch != (first == TaskKind::Entry)) {
      return misfit(launch.begins_epoch ? "begins an execution and does no entry"
                                        : "does an entry and begins no execution");
    }
    if (has_boundary || launch.is_skipped || !launch.kernels.empty()) return Ok{};
    const auto touches = [&](TaskId id) {
      const Task& task = plan_.tasks[id.index()];
      const auto has_blocks = [](const Ref& ref) { return !ref.boxes.empty(); };
      return std::ranges::any_of(task.reads, has_blocks) ||
             std::ranges::any_of(task.writes, has_blocks);
    };
    const auto found = std::ranges::find_if(launch.does, touches);
    if (found == launch.does.end()) return Ok{};
    return make_diag(DiagCode::V706,
                     {{"launch", id_}, {"rank", launch.rank.value}, {"task", words_.task(*found)}});
  }

  Checked<Ok> check_narrowed(AllocId id) const {
    const bool is_known = id.valid() && id.index() < plan_.allocs.size();
    if (is_known && plan_.allocs[id.index()].level != Level::Home &&
        plan_.allocs[id.index()].dtype == DType::F32) {
      return Ok{};
    }
    return make_diag(
        DiagCode::V708,
        {{"alloc", is_known ? words_.alloc(id.value) : "allocation " + std::to_string(id.value)}});
  }

  Checked<Ok> check_done() const {
    for (std::size_t task = 0; task < done_.size(); ++task) {
      if (done_[task].size() == 1) continue;
      std::string found = "no launch";
      if (!done_[task].empty()) {
        found =
            "launches " + std::to_string(done_[task][0]) + " and " + std::to_string(done_[task][1]);
      }
      return make_diag(DiagCode::V701,
                       {{"task", words_.task(static_cast<std::int64_t>(task))}, {"found", found}});
    }
    return Ok{};
  }

  const Plan& plan_;
  const LaunchPlan& launches_;
  const Words& words_;
  std::size_t id_ = 0;                          // of the current launch
  std::vector<std::vector<std::size_t>> done_;  // per task: the launches that do it
};

}  // namespace

Checked<Ok> check_launches(const Plan& plan, const LaunchPlan& launches, const Words& words) {
  return LaunchCheck(plan, launches, words).run();
}

Checked<Ok> check_raises(const LaunchPlan& launches, const Steps& steps) {
  for (std::size_t id = 0; id < launches.signals.size(); ++id) {
    const launch::Signal& signal = launches.signals[id];
    const SignalUse& use = steps.signals[id];
    const bool is_unused = use.raised.empty() && use.awaited.empty();
    if (is_unused || use.adds == signal.arrivals) continue;
    return make_diag(DiagCode::V703, {{"id", id},
                                      {"what", std::string(launch::print(signal.kind)) + " " +
                                                   std::to_string(signal.index)},
                                      {"arrivals", signal.arrivals},
                                      {"problem", "is given " + std::to_string(use.adds)}});
  }
  return Ok{};
}

CounterCheck::CounterCheck(const LaunchPlan& launches, const Steps& steps, const Order& order,
                           const Words& words)
    : launches_(launches),
      steps_(steps),
      order_(order),
      words_(words),
      raised_by_(steps.scope.tasks) {
  const auto launch_of = [&](std::int32_t step) {
    return steps.origins[static_cast<std::size_t>(step)].launch;
  };
  for (std::size_t id = 0; id < steps.signals.size(); ++id) {
    const std::vector<std::int32_t>& raised = steps.signals[id].raised;
    const bool by_one = std::ranges::all_of(
        raised, [&](std::int32_t step) { return launch_of(step) == launch_of(raised.front()); });
    if (by_one) continue;
    for (const std::int32_t step : raised) {
      raised_by_[static_cast<std::size_t>(step)].push_back(id);
    }
  }
}

Checked<Ok> CounterCheck::check(std::int32_t step, const Row& over) const {
  if (step < static_cast<std::int32_t>(steps_.scope.tasks)) return Ok{};
  for (const std::size_t id : raised_by_[steps_.scope.task(step)]) {
    for (const std::int32_t earlier : steps_.signals[id].raised) {
      if (over.at(order_.strand_of(earlier)) >= order_.strand_position_of(earlier)) continue;
      return make_diag(DiagCode::V707,
                       {{"id", id},
                        {"what", std::string(launch::print(launches_.signals[id].kind))},
                        {"early", words_.task(std::int64_t{step})},
                        {"late", words_.task(std::int64_t{earlier})}});
    }
  }
  return Ok{};
}

}  // namespace harpe::verifier
