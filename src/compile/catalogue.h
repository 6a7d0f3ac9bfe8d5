#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/describe.h"
#include "compile/session.h"
#include "support/diag.h"

namespace harpe {

// What there is to ask for: operators, schedules, and the text of every stage.

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

// What `auto` means for a request: the schedule that `run` and the others take.
struct AutoChoice {
  std::string name;
  std::vector<std::string> steps;  // where it has no name of the list: print_steps
};
// Errors: Session::program's and Session::mesh's; choose_schedule's.
[[nodiscard]] Checked<AutoChoice> find_auto(Session& session, const Request& request);

enum class Stage : std::uint8_t { Operator, Schedule, Plan };
// The text of a stage, which reads back. Without values an operator is shown as it is written,
// parameters and all. Errors: Session's, up to the stage.
[[nodiscard]] Checked<std::string> show(Session& session, const Request& request, Stage stage);

}  // namespace harpe
