#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compile/request.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// The stages from a command line to a verified plan, in order. The one place that knows them all.
class Session {
 public:
  // `warn`: shows it at once. `paranoid`: every program, script, form and plan that passes is
  // printed, read back and compared; a difference is a bug of ours (HP_CHECK).
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

  // The plan of a request, whichever kind of target it has; a file fixes everything else.
  // Errors: U114, I101, parse_plan_file's; schedule's and lower's.
  [[nodiscard]] Checked<Plan> plan(const Request& request);

  // Of what is passed over and not refused; once, however often it is met.
  void warn(const Diag& diag);

  // What had been made so far, as texts that read back: goes into the report of a bug.
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
