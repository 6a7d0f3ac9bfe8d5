#include "library/plan_state.h"

#include <memory>
#include <utility>

#include "compile/certify.h"
#include "compile/launches.h"
#include "compile/simulation.h"
#include "compile/summary.h"
#include "compile/tune.h"
#include "library/homes.h"
#include "library/request.h"

namespace harpe::library {
namespace {

v1::PlanFacts to_facts(const PlanSummary& summary, const Plan& plan) {
  return {.op = summary.program,
          .mesh = summary.mesh,
          .schedule = summary.schedule,
          .steps = summary.steps,
          .ranks = summary.ranks,
          .tasks = summary.tasks,
          .bytes_moved = summary.bytes_moved,
          .memory_bytes = summary.memory_bytes,
          .flops = summary.flops,
          .balance = summary.balance,
          .layout = list_layouts(plan)};
}

v1::Certificate to_public(const Certificate& certificate) {
  return {.covers = coverage_of(certificate),
          .tasks = certificate.tasks,
          .order_edges = certificate.happens_before_edges,
          .blocks_checked = certificate.blocks_checked,
          .peak_bytes = certificate.peak_bytes};
}

}  // namespace

v1::Prediction to_prediction(const Machine& machine, const std::string& family,
                             const Simulation& simulation) {
  v1::Prediction out{.machine = machine.name,
                     .time_us = simulation.total.microseconds(),
                     .median_error = std::nullopt,
                     .error_90 = std::nullopt,
                     .critical_path = {},
                     .exposed_communication_us = simulation.exposed_communication.microseconds(),
                     .peak_bytes = simulation.peak_bytes};
  if (const PredictionError* const error = find_error(machine, family)) {
    out.median_error = error->median;
    out.error_90 = error->nine_of_ten;
  }
  for (const auto& [spending, time] : sum_path(simulation).spent) {
    out.critical_path.push_back({std::string(print(spending)), time.microseconds()});
  }
  return out;
}

harpe::Checked<v1::Plan> make_plan(PlanParts parts, Call& call) {
  if (!parts.certificate) {
    HP_REQUIRE_OK(call.begin("proving"));
    HP_TRY(parts.certificate, prove(parts.plan, call.limit("proving")));
  }
  const auto state = std::make_shared<v1::Plan::State>();
  if (parts.machine) {
    HP_REQUIRE_OK(call.begin("simulating"));
    HP_TRY(const Simulation simulation,
           harpe::simulate(parts.plan, launches_on(parts.plan, *parts.machine), *parts.machine));
    state->predicted = to_prediction(*parts.machine, parts.plan.program.name, simulation);
  }
  state->facts = to_facts(summarise(parts.plan), parts.plan);
  state->buffers = list_buffers(parts.plan);
  state->certificate = to_public(*parts.certificate);
  state->why = std::move(parts.why);
  state->script = std::move(parts.script);
  state->machine = std::move(parts.machine);
  state->search = std::move(parts.search);
  state->plan = std::move(parts.plan);
  return v1::Plan(state);
}

harpe::Checked<Machine> machine_of(const v1::Plan::State& state, const std::string& given) {
  if (given.empty() && state.machine) return *state.machine;
  Request request{.target = "", .parameters = {}, .mesh = {}, .schedule = {}};
  set_machine(request, given);
  HP_TRY(Machine machine, machine_for(request, state.plan.mesh));
  HP_REQUIRE_OK(check_fits(state.plan, machine));
  return machine;
}

}  // namespace harpe::library
