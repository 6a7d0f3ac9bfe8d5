#include "compile/session.h"

#include <algorithm>

#include "compile/check_form.h"
#include "compile/choose_schedule.h"
#include "compile/plan_file.h"
#include "compile/read_constraints.h"
#include "compile/schedule_file.h"
#include "compile/schedule_names.h"
#include "compile/target.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "plan/text.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "support/whole_file.h"

namespace harpe {
namespace {

// Checks that parse(print(value)) == value.
template <class Value, class Parse>
void check_round_trip(const Value& value, const std::string& text, const Parse& parse) {
  Checked<Cursor> cursor = Cursor::open(text);
  HP_CHECK(cursor.ok(), "does not read back: " + render(cursor.error()) + "\n" + text);
  const Checked<Value> again = parse(*cursor);
  HP_CHECK(again.ok(), "does not read back: " + render(again.error()) + "\n" + text);
  HP_CHECK(*again == value && cursor->at_end(), "reads back as another value:\n" + text);
}

void check_plan_round_trip(const Plan& plan) {
  const Checked<Plan> again = parse_plan_file(print_plan_file(plan), "");
  HP_CHECK(again.ok(), "the plan does not read back: " + render(again.error()));
  HP_CHECK(*again == plan, "the plan reads back as another one");
}

}  // namespace

Checked<Program> Session::program(const Request& request) {
  HP_TRY(const Program templated, request.program_text
                                      ? parse_operator(*request.program_text, request.target)
                                      : load_template(request.target));
  HP_TRY(Program program, bind_program(templated, request.parameters, request.inputs));
  const std::string text = print(program);
  keep(text);
  if (paranoid_)
    check_round_trip(program, text, [](Cursor& cursor) { return parse_program(cursor); });
  return program;
}

Checked<Mesh> Session::mesh(const Request& request) {
  if (!request.mesh) {
    return make_diag(DiagCode::U110,
                     {{"verb", request.target},
                      {"option:what", "ranks to run on: `{option:mesh=NAME=SIZE,...}`"}});
  }
  HP_TRY(Mesh mesh, parse_mesh_option(*request.mesh));
  const std::string text = print(mesh);
  keep(text);
  if (paranoid_) check_round_trip(mesh, text, [](Cursor& cursor) { return parse_mesh(cursor); });
  return mesh;
}

Checked<Scheduled> Session::schedule(const Request& request) {
  Scheduled out;
  HP_TRY(out.program, program(request));
  HP_TRY(out.mesh, mesh(request));
  HP_TRY(const Constraints constraints, read_constraints(out.program, out.mesh, request));
  const std::string name = request.schedule.value_or(std::string(kAuto));
  if (request.schedule_text || name.ends_with(".sched")) {
    HP_TRY(ScheduleFile file, request.schedule_text
                                  ? parse_schedule_file(*request.schedule_text, name)
                                  : read_schedule_file(name));
    if (!file.script) HP_REQUIRE_OK(check_subject(file, out.program, name));  // else replay does
    out.mesh.name = file.mesh();
    out.script = std::move(file.script);
    if (!out.script) out.form = std::move(*file.form);
    if (out.script && file.form) {
      HP_TRY(const NormalForm made, replay(out.program, out.mesh, *out.script));
      if (made != *file.form) return make_diag(DiagCode::I105, {{"path", name}});
    }
  } else if (parse_schedule_name(name).base == kAuto) {
    HP_TRY(out.choice, choose_schedule(out.program, out.mesh, request,
                                       [this](const Diag& diag) { warn(diag); }));
    out.script = derive_script(out.program, out.mesh, out.choice->form);
    patch_kernels(*out.script, name, out.program);
  } else if (name == kLibrary) {
    return no_library("libraries have no plan");
  } else {
    const std::string family = schedule_family(out.program);
    HP_REQUIRE_OK(check_schedule_name(family, name));
    HP_TRY(out.script, generate_schedule(family, name, out.program, out.mesh));
  }
  if (out.script) {
    const std::string text = print(*out.script);
    keep(text);
    if (paranoid_) {
      check_round_trip(*out.script, text, [](Cursor& cursor) { return parse_script(cursor); });
    }
    HP_TRY(out.form, replay(out.program, out.mesh, *out.script));
  }
  HP_REQUIRE_OK(check_named(out.program, out.mesh, out.form, constraints));
  const std::string text = print(out.form);
  keep(text);
  if (paranoid_)
    check_round_trip(out.form, text, [](Cursor& cursor) { return parse_form(cursor); });
  return out;
}

void Session::warn(const Diag& diag) {
  if (std::ranges::find(warned_, diag) != warned_.end()) return;
  warned_.push_back(diag);
  warn_(diag);
}

Checked<Plan> Session::lower(const Scheduled& scheduled, const LowerOptions& options) {
  HP_REQUIRE_OK(check_steps(scheduled.mesh, scheduled.form));
  HP_TRY(Plan plan, harpe::lower(scheduled.program, scheduled.mesh, scheduled.form, options));
  if (paranoid_) check_plan_round_trip(plan);
  return plan;
}

Checked<Plan> Session::plan(const Request& request) {
  if (kind_of(request.target) == TargetKind::PlanFile) return read_plan(request);
  HP_TRY(const Scheduled scheduled, schedule(request));
  return lower(scheduled);
}

Checked<Plan> Session::read_plan(const Request& request) {
  const auto fixed = [&](const DiagArg& what) {
    return make_diag(DiagCode::U114, {what, {"path", request.target}});
  };
  if (!request.parameters.empty()) return fixed({"what", request.parameters.front()});
  if (request.mesh) return fixed({"option:what", "{option:mesh}"});
  if (request.schedule) return fixed({"option:what", "{option:schedule}"});
  if (!request.homes.empty()) return fixed({"option:what", "{option:homes}"});
  if (request.layout != "any") return fixed({"option:what", "{option:layout}"});
  HP_TRY(const std::string text, read_whole(request.target));
  HP_TRY(Plan plan, parse_plan_file(text, request.target));
  keep(print(plan.program) + print(plan.mesh) + print(plan.form));
  if (paranoid_) check_plan_round_trip(plan);
  return plan;
}

}  // namespace harpe
