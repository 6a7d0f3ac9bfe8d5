#pragma once

#include <string>
#include <string_view>

#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// What a question may ask for besides names of schedules: what a search chooses, and libraries in
// place of any.
constexpr std::string_view kAuto = "auto";
constexpr std::string_view kLibrary = "library";

// The operator whose named schedules fit: the program's own, or for a user's program those of the
// shipped operator that calls the same leaf.
[[nodiscard]] std::string schedule_family(const Program& program);

// Is there a schedule of this name for the operator, `auto` among them? Errors: U113.
[[nodiscard]] Checked<Ok> check_schedule_name(const std::string& family, const std::string& name);

// The schedule `library` is not possible here: U109.
[[nodiscard]] Diag no_library(const std::string& why);

}  // namespace harpe
