#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compile/request.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// The stages from a command line to a verified plan, in order. The only code that uses them all.
class Session {
 public:
  // `warn` shows a warning at once. With `paranoid`, every program, script, form and plan is
  // printed, read back and compared; a difference is a bug of Harpe (HP_CHECK).
  explicit Session(
      bool paranoid, Warn warn = [](const Diag&) {})
      : paranoid_(paranoid), warn_(std::move(warn)) {}

  [[nodiscard]] bool is_paranoid() const { return paranoid_; }

  // Errors: load_program's; parse_mesh_option's; U110 without a mesh.
  [[nodiscard]] Checked<Program> program(const Request& request);
  [[nodiscard]] Checked<Mesh> mesh(const Request& request);

  // Errors: program's and mesh's; U113, I101, I103 to I105, T0xx, S0xx, F1xx of the schedule;
  // read_constraints', check_named's.
  [[nodiscard]] Checked<Scheduled> schedule(const Request& request);

  // Errors: I503; lower's.
  [[nodiscard]] Checked<Plan> lower(const Scheduled& scheduled, const LowerOptions& options = {});

  // The plan of a request, for any kind of target; a plan file determines everything else.
  // Errors: U114, I101, parse_plan_file's; schedule's and lower's.
  [[nodiscard]] Checked<Plan> plan(const Request& request);

  // Warns about something that is skipped rather than refused; each warning is shown once.
  void warn(const Diag& diag);

  // Everything made so far, as texts that read back, for a bug report.
  [[nodiscard]] const std::string& reproduction() const { return reproduction_; }

 private:
  [[nodiscard]] Checked<Plan> read_plan(const Request& request);
  void keep(const std::string& text) { reproduction_ += text; }

  bool paranoid_;
  Warn warn_;
  std::vector<Diag> warned_;
  std::string reproduction_;
};

}  // namespace harpe
