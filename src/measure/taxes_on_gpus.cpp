#include "measure/taxes_on_gpus.h"

#include <algorithm>

#include "compile/certify.h"
#include "compile/launches.h"
#include "measure/bench_inputs.h"
#include "measure/timeline_taxes.h"
#include "sim/critical_path.h"

namespace harpe {
namespace {

// The first executions wait for ranks that begin later.
constexpr std::int64_t kWarmUps = 5;

std::chrono::nanoseconds median_of(std::vector<std::chrono::nanoseconds> times) {
  times.erase(times.begin(), times.begin() + kWarmUps);
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

Checked<Result<RunStats, FaultReport>> run_traced(const Plan& plan, const TaxRunRequest& request) {
  BackendRequest backend = request.backend;
  backend.trace = true;
  HP_TRY(const std::unique_ptr<Executor> executor, make_executor(plan, backend));
  for (const auto& [name, tensor] : draw_bench_inputs(plan.program, request.seed)) {
    HP_REQUIRE_OK(executor->set_input(name, tensor));
  }
  return executor->run({.iterations = kWarmUps + request.iterations,
                        .wait_limit = backend.wait_limit,
                        .trace = true});
}

}  // namespace

TaxMaker taxes_on_gpus(Session& session, const TaxRunRequest& request) {
  return [&session, request](const Request& subject, const Machine& machine) -> Checked<TaxRow> {
    HP_TRY(const FittedPlan fitted, plan_for(session, subject, machine));
    HP_REQUIRE_OK(certify(fitted.plan, level_for(fitted.plan)));
    HP_TRY(const auto ran, run_traced(fitted.plan, request));
    TaxRow row{.schedule = fitted.plan.form.name, .taxes = std::nullopt, .refits = fitted.refits};
    if (!ran.ok()) {
      row.fault = ran.error();
      return row;
    }
    HP_TRY(const Taxes predicted,
           tax(fitted.plan, launches_on(fitted.plan, machine), machine, Launch::Graph));
    const Taxes taxes = measured_taxes(measured_path(fitted.plan, ran->trace, ran->kernels),
                                       median_of(ran->iterations), predicted);
    row.taxes = taxes;
    row.bound = name_of(machine, taxes.bound);
    row.clock_uncertainty = ran->clock_uncertainty;
    return row;
  };
}

}  // namespace harpe
