#pragma once

#include <string>

#include "cli/terminal.h"
#include "driver/agreement.h"
#include "driver/certify.h"
#include "driver/json.h"
#include "driver/summary.h"

namespace harpe::cli {

// "attention on cp=8, schedule ring\n"
[[nodiscard]] std::string print_title(const PlanSummary& plan);

[[nodiscard]] Rows rows_of(const PlanSummary& plan);
void add_plan(Json& json, const PlanSummary& plan);

[[nodiscard]] Rows rows_of(const Certificate& certificate);
[[nodiscard]] Json to_json(const Certificate& certificate);

[[nodiscard]] Json to_json(const Agreement& agreement);

}  // namespace harpe::cli
