#pragma once

#include <string>
#include <string_view>

#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// Schedules that a request may name besides the named ones: the search's choice, and libraries in
// place of a schedule.
constexpr std::string_view kAuto = "auto";
constexpr std::string_view kLibrary = "library";

// The operator whose named schedules apply: the program's own or, for a user's program, the shipped
// operator that calls the same leaf.
[[nodiscard]] std::string schedule_family(const Program& program);

// Checks that the operator has a schedule of this name; `auto` counts. Errors: U113.
[[nodiscard]] Checked<Ok> check_schedule_name(const std::string& family, const std::string& name);

// The refusal of the schedule `library` here: U109.
[[nodiscard]] Diag no_library(const std::string& why);

}  // namespace harpe
