#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/session.h"
#include "exec/fault.h"
#include "machine/machine.h"
#include "schedule/fit.h"
#include "sim/simulate.h"
#include "sim/taxes.h"
#include "support/diag.h"

namespace harpe {

// A plan made for a machine.
struct FittedPlan {
  Plan plan;
  std::vector<Refit> refits;  // moves whose transports the machine lacks
};
// A schedule's plan, with transports that the machine has, if it lowers with them (schedule/fit.h).
// Errors: Session::lower's; check_fits'.
[[nodiscard]] Checked<FittedPlan> fit_plan(Session& session, const Scheduled& scheduled,
                                           const Machine& machine);
// The request's plan; for an operator, with transports that the machine has, if it lowers with them
// (schedule/fit.h). Errors: Session's; check_fits'.
[[nodiscard]] Checked<FittedPlan> plan_for(Session& session, const Request& request,
                                           const Machine& machine);
// The machine of a request, by its plan file's mesh or its own. Errors: Session's, machine_for's.
[[nodiscard]] Checked<Machine> machine_of(Session& session, const Request& request,
                                          const std::optional<std::string>& name);
// "k over node by proxy instead of ce"
[[nodiscard]] std::string print(const Refit& refit);

// How one schedule's time divides, or why it does not apply or does not fit the machine.
struct TaxRow {
  std::string schedule;
  std::optional<Taxes> taxes;
  std::string bound = {};  // the name of Taxes::bound
  std::vector<Refit> refits = {};
  std::optional<Diag> refusal = {};
  std::optional<FaultReport> fault = {};  // of a measured run
  // If times are measured: the uncertainty between the clocks of two ranks.
  std::optional<std::chrono::nanoseconds> clock_uncertainty = {};
};
// For a verified plan that fits the machine. Errors: tax's.
[[nodiscard]] Checked<TaxRow> tax_row(const FittedPlan& fitted, const Machine& machine,
                                      Launch launch);
// Makes the row of one schedule. Errors: why there is none.
using TaxMaker = std::function<Checked<TaxRow>(const Request& request, const Machine& machine)>;
// Errors of the result: plan_for's.
[[nodiscard]] TaxMaker simulated_taxes(Session& session, Launch launch);

struct TaxList {
  Machine machine;
  std::string program;  // the operator
  std::vector<TaxRow> rows;
};
// The taxes of the schedule that the request or its plan file names. Without one: of every named
// schedule that applies, fastest first, then those that do not fit the machine. Errors: Session's;
// machine_for's; list_schedules'; M117; those of `make` if only one schedule is requested.
[[nodiscard]] Checked<TaxList> list_taxes(Session& session, const Request& request,
                                          const std::optional<std::string>& machine,
                                          const TaxMaker& make);

// The text beside predictions that states the operator's error: "median 8.8 %, nine of ten within
// 27.0 %, of 35 plans of ag_gemm in bench/h200x4".
[[nodiscard]] std::string print_prediction_error(const Machine& machine, std::string_view family);

// "compute", "link", …
[[nodiscard]] std::string_view print(Spending spending);

}  // namespace harpe
