#include "compile/simulation.h"

#include <algorithm>
#include <cmath>

#include "compile/catalogue.h"
#include "compile/certify.h"
#include "compile/launches.h"
#include "compile/machines.h"
#include "compile/target.h"
#include "ir/text.h"
#include "sim/critical_path.h"

namespace harpe {
namespace {

// The row of one of several schedules; a refusal becomes the row.
TaxRow row_among(Request request, const std::string& schedule, const Machine& machine,
                 const TaxMaker& make) {
  request.schedule = schedule;
  Checked<TaxRow> found = make(request, machine);
  if (found.ok()) return *std::move(found);
  return {.schedule = schedule, .taxes = std::nullopt, .refusal = found.error()};
}

Checked<std::string> program_name_of(Session& session, const Request& request) {
  if (kind_of(request.target) == TargetKind::PlanFile) {
    HP_TRY(Plan plan, session.plan(request));
    return std::move(plan.program.name);
  }
  HP_TRY(Program program, session.program(request));
  return std::move(program.name);
}

bool is_faster(const TaxRow& a, const TaxRow& b) {
  if (a.taxes.has_value() != b.taxes.has_value()) return a.taxes.has_value();
  return a.taxes && a.taxes->total < b.taxes->total;
}

}  // namespace

Checked<FittedPlan> plan_for(Session& session, const Request& request, const Machine& machine) {
  if (kind_of(request.target) == TargetKind::PlanFile) {
    FittedPlan fitted;
    HP_TRY(fitted.plan, session.plan(request));
    HP_REQUIRE_OK(check_fits(fitted.plan, machine));
    return fitted;
  }
  HP_TRY(const Scheduled scheduled, session.schedule(request));
  return fit_plan(session, scheduled, machine);
}

Checked<FittedPlan> fit_plan(Session& session, const Scheduled& scheduled, const Machine& machine) {
  HP_REQUIRE_OK(check_ranks(scheduled.mesh, machine));
  FittedForm form = fit_transports(scheduled.form, scheduled.mesh, machine);
  if (!form.refits.empty()) {
    Scheduled other = scheduled;
    other.form = std::move(form.form);
    Checked<Plan> plan = session.lower(other);
    if (plan.ok()) {
      HP_REQUIRE_OK(check_fits(*plan, machine));
      return FittedPlan{.plan = std::move(plan).value(), .refits = std::move(form.refits)};
    }
    const bool is_too_large =
        plan.error().code == DiagCode::I503 || plan.error().code == DiagCode::I504;
    if (is_too_large) return plan.error();  // the form without replacements has the same size
  }
  FittedPlan fitted;
  HP_TRY(fitted.plan, session.lower(scheduled));
  HP_REQUIRE_OK(check_fits(fitted.plan, machine));
  return fitted;
}

Checked<Machine> machine_of(Session& session, const Request& request,
                            const std::optional<std::string>& name) {
  if (kind_of(request.target) == TargetKind::PlanFile) {
    HP_TRY(const Plan plan, session.plan(request));
    return machine_for(name, plan.mesh);
  }
  HP_TRY(const Mesh mesh, session.mesh(request));
  return name ? machine_for(name, mesh) : machine_for(request, mesh);
}

Checked<TaxRow> tax_row(const FittedPlan& fitted, const Machine& machine, Launch launch) {
  HP_TRY(const Taxes taxes, tax(fitted.plan, launches_on(fitted.plan, machine), machine, launch));
  return TaxRow{.schedule = fitted.plan.form.name,
                .taxes = taxes,
                .bound = name_of(machine, taxes.bound),
                .refits = fitted.refits};
}

TaxMaker simulated_taxes(Session& session, Launch launch) {
  return [&session, launch](const Request& request, const Machine& machine) -> Checked<TaxRow> {
    HP_TRY(const FittedPlan fitted, plan_for(session, request, machine));
    const bool is_given = kind_of(request.target) == TargetKind::PlanFile;
    if (is_given) HP_REQUIRE_OK(certify(fitted.plan, level_for(fitted.plan)));
    return tax_row(fitted, machine, launch);
  };
}

Checked<TaxList> list_taxes(Session& session, const Request& request,
                            const std::optional<std::string>& machine, const TaxMaker& make) {
  TaxList list;
  HP_TRY(list.machine, machine_of(session, request, machine));
  HP_TRY(list.program, program_name_of(session, request));
  const bool one = request.schedule || kind_of(request.target) == TargetKind::PlanFile;
  if (!one) {
    HP_TRY(const ScheduleList schedules, list_schedules(session, request));
    HP_REQUIRE_OK(check_ranks(schedules.mesh, list.machine));
    for (const ScheduleEntry& entry : schedules.entries) {
      if (entry.refusal) continue;
      list.rows.push_back(row_among(request, entry.name, list.machine, make));
    }
  }
  if (list.rows.empty()) {
    HP_TRY(TaxRow row, make(request, list.machine));
    list.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(list.rows, is_faster);
  return list;
}

std::string print(const Refit& refit) {
  return refit.buffer + " over " + print_mesh_ref(refit.over) + " by " +
         std::string(print(refit.to)) + " instead of " + std::string(print(refit.from));
}

std::string print_prediction_error(const Machine& machine, std::string_view family) {
  const PredictionError* const error = find_error(machine, family);
  if (error == nullptr) return "not known: no plan of " + std::string(family) + " was measured";
  const auto percent = [](double part) {
    const auto tenths = std::llround(1000 * part);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
  };
  return "median " + percent(error->median) + ", nine of ten within " +
         percent(error->nine_of_ten) + ", of " + std::to_string(error->plans) + " plans of " +
         error->family + " in " + error->from.note;
}

std::string_view print(Spending spending) {
  switch (spending) {
    case Spending::Compute:
      return "compute";
    case Spending::Memory:
      return "memory";
    case Spending::Link:
      return "link";
    case Spending::Message:
      return "message";
    case Spending::Launch:
      return "launch";
    case Spending::Signal:
      return "signal";
    case Spending::Barrier:
      return "barrier";
    case Spending::Fold:
      return "fold";
  }
  return "";
}

}  // namespace harpe
