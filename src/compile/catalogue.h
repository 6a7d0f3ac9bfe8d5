#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/describe.h"
#include "compile/session.h"
#include "support/diag.h"

namespace harpe {

// Lists of operators and schedules, and the text of every stage.

[[nodiscard]] std::vector<Description> describe_operators();
// Errors: load_template's.
[[nodiscard]] Checked<Description> describe_target(const std::string& target);

struct ScheduleEntry {
  std::string name;
  std::string summary;
  std::optional<Diag> refusal;  // why it does not apply; none if it does
};
struct ScheduleList {
  std::string program;
  Mesh mesh;
  std::vector<ScheduleEntry> entries;
};
// Errors: Session::program's and Session::mesh's; read_constraints'.
[[nodiscard]] Checked<ScheduleList> list_schedules(Session& session, const Request& request);

// The schedule that `auto` selects for a request, in `run` and the other commands.
struct AutoChoice {
  std::string name;
  std::vector<std::string> steps;  // print_steps, if the schedule has no name
};
// Errors: Session::program's and Session::mesh's; choose_schedule's.
[[nodiscard]] Checked<AutoChoice> find_auto(Session& session, const Request& request);

enum class Stage : std::uint8_t { Operator, Schedule, Plan };
// The text of a stage, which reads back. Without parameter values an operator is shown as written,
// as a template. Errors: Session's, up to the stage.
[[nodiscard]] Checked<std::string> show(Session& session, const Request& request, Stage stage);

}  // namespace harpe
