#pragma once

#include <string>

#include "cli/terminal.h"
#include "compile/certify.h"
#include "compile/certify_launches.h"
#include "compile/machines.h"
#include "compile/summary.h"
#include "io/json.h"
#include "measure/agreement.h"

namespace harpe::cli {

// "attention on cp=8, schedule ring\n"
[[nodiscard]] std::string print_title(const PlanSummary& plan);

[[nodiscard]] Rows plan_rows(const PlanSummary& plan);
void add_plan(Json& json, const PlanSummary& plan);

[[nodiscard]] Rows certificate_rows(const Certificate& certificate);
[[nodiscard]] Json certificate_to_json(const Certificate& certificate);
void add_launches(Rows& rows, const LaunchCertificate& certificate);
[[nodiscard]] Json launch_certificate_to_json(const LaunchCertificate& certificate);

[[nodiscard]] Json agreement_to_json(const Agreement& agreement);

// Beside a prediction: the lines that the machine inherits from another one. Adds nothing if there
// are none.
void add_inherited(Rows& rows, const Machine& machine);
[[nodiscard]] std::string print_inherited(const Machine& machine);

// The same for the error of the operator's predictions (print_prediction_error). Null if no plan of
// it was measured.
void add_error(Rows& rows, const Machine& machine, const std::string& family);
[[nodiscard]] Json error_to_json(const Machine& machine, const std::string& family);

}  // namespace harpe::cli
