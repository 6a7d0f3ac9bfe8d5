#include "compile/catalogue.h"

#include "compile/choose_schedule.h"
#include "compile/plan_file.h"
#include "compile/read_constraints.h"
#include "compile/schedule_names.h"
#include "compile/target.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "search/search.h"

namespace harpe {
namespace {

Checked<Ok> check_applies(const Program& program, const Mesh& mesh, const Applicability& schedule,
                          const Constraints& constraints) {
  if (!schedule.script.ok()) return schedule.script.error();
  if (constraints.empty()) return Ok{};
  HP_TRY(const NormalForm form, replay(program, mesh, *schedule.script));
  return check_constraints(program, mesh, form, constraints);
}

}  // namespace

std::vector<Description> describe_operators() {
  std::vector<Description> all;
  for (const Operator& op : all_operators()) all.push_back(describe(template_of(op)));
  return all;
}

Checked<Description> describe_target(const std::string& target) {
  HP_TRY(const Program program, load_template(target));
  return describe(program);
}

Checked<ScheduleList> list_schedules(Session& session, const Request& request) {
  HP_TRY(const Program program, session.program(request));
  HP_TRY(Mesh mesh, session.mesh(request));
  HP_TRY(const Constraints constraints, read_constraints(program, mesh, request));
  const std::string family = schedule_family(program);
  ScheduleList out;
  out.program = program.name;
  for (const Applicability& each : find_applicable(family, program, mesh)) {
    ScheduleEntry& entry = out.entries.emplace_back();
    entry.name = each.name;
    entry.summary = each.summary;
    const Checked<Ok> applies = check_applies(program, mesh, each, constraints);
    if (!applies.ok()) entry.refusal = applies.error();
  }
  out.mesh = std::move(mesh);
  return out;
}

Checked<AutoChoice> find_auto(Session& session, const Request& request) {
  HP_TRY(const Program program, session.program(request));
  HP_TRY(const Mesh mesh, session.mesh(request));
  HP_TRY(const AutoForm chosen,
         choose_schedule(program, mesh, request, [&](const Diag& diag) { session.warn(diag); }));
  AutoChoice choice{.name = chosen.form.name, .steps = {}};
  if (chosen.form.name == kSearched) choice.steps = print_steps(chosen.form);
  return choice;
}

Checked<std::string> show(Session& session, const Request& request, Stage stage) {
  if (stage == Stage::Operator) {
    HP_TRY(const Program program,
           request.parameters.empty() ? load_template(request.target) : session.program(request));
    return print(program);
  }
  HP_TRY(const Scheduled scheduled, session.schedule(request));
  if (stage == Stage::Schedule) {
    return (scheduled.script ? print(*scheduled.script) : "") + print(scheduled.form);
  }
  HP_TRY(const Plan plan, session.lower(scheduled));
  return print_plan_file(plan);
}

}  // namespace harpe
