#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/backend.h"
#include "ir/form.h"
#include "ir/program.h"
#include "lower/lower.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "plan/plan.h"
#include "schedule/script.h"
#include "support/diag.h"

namespace harpe {

// What a command line asks for: an operator or file, sizes, ranks and a schedule, as written.
struct Request {
  std::string target;                       // operator, FILE.op or FILE.plan
  std::vector<std::string> parameters;      // "seq=4096"
  std::vector<std::string> inputs = {};     // that files give: what they depend on is turned on
  std::optional<std::string> mesh;          // "node=2,gpu=4"
  std::optional<std::string> schedule;      // a name, FILE.sched or "auto"; none is "auto"
  std::optional<std::string> machine = {};  // that `auto` searches for; none: by the mesh
  // Folder of earlier searches' answers, of this version of Harpe, that `auto` takes where it asks
  // the same; none: it always searches.
  std::optional<std::string> cache = {};
  std::string version = {};
  // The text of a `.sched` file in place of one; `schedule` is then only its name.
  std::optional<std::string> schedule_text = {};
  // Where the plan will run: what was measured there comes first for `auto`; none: as predicted.
  std::optional<Backend> backend = {};
  // What the plan will run on where that is no machine of one's choice: `auto` offers only what
  // runs there, and without `machine` searches for it.
  std::optional<Machine> runs_on = {};
  // How long a search for `auto` may take; without an end it is given up (I505). None: any time.
  std::optional<std::chrono::seconds> patience = {};
};

// A program with its schedule on a mesh: everything above the plan.
struct Scheduled {
  Program program;  // ground
  Mesh mesh;
  std::optional<Script> script;  // none where a file holds the normal form alone
  NormalForm form;
};

// The operator whose named schedules fit: the program's own, or for a user's program those of the
// shipped operator that calls the same leaf.
[[nodiscard]] std::string schedule_family(const Program& program);

// Is there a schedule of this name for the operator, `auto` among them? Errors: U113.
[[nodiscard]] Checked<Ok> check_schedule_name(const std::string& family, const std::string& name);

// Larger plans are not made: there is no room for them.
constexpr std::int64_t kMostTasks = 4'000'000;

// The stages from a command line to a verified plan, in order. The one place that knows them all.
class Session {
 public:
  // Shown at once, as a warning.
  using Warn = std::function<void(const Diag&)>;

  // `paranoid`: every program, script, form and plan that passes is printed, read back and
  // compared; a difference is a bug of ours (HP_CHECK).
  explicit Session(
      bool paranoid, Warn warn = [](const Diag&) {})
      : paranoid_(paranoid), warn_(std::move(warn)) {}

  [[nodiscard]] bool is_paranoid() const { return paranoid_; }

  // Errors: load_program's; parse_mesh_option's; U110 without a mesh.
  [[nodiscard]] Checked<Program> program(const Request& request);
  [[nodiscard]] Checked<Mesh> mesh(const Request& request);

  // Errors: program's and mesh's; U113, I101, I103 to I105, T0xx, S0xx, F1xx of the schedule.
  [[nodiscard]] Checked<Scheduled> schedule(const Request& request);

  // May its plan be made? Errors: I503 more than so many tasks.
  [[nodiscard]] static Checked<Ok> check_steps(const Scheduled& scheduled,
                                               std::int64_t most = kMostTasks);

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
