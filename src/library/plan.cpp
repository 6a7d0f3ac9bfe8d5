#include "harpe/plan.h"

#include <utility>

#include "compile/catalogue.h"
#include "compile/certify.h"
#include "compile/launches.h"
#include "compile/plan_file.h"
#include "compile/simulation.h"
#include "ir/text.h"
#include "library/boundary.h"
#include "library/plan_state.h"
#include "library/request.h"
#include "library/why.h"
#include "report/draw.h"
#include "report/page.h"
#include "report/report_page.h"
#include "run/backend.h"

namespace harpe::library {
namespace {

harpe::Checked<v1::Plan> plan_question(const v1::Question& question, Call& call) {
  HP_TRY(const Request request, make_request(question, call));
  HP_REQUIRE_OK(call.begin("choosing a schedule"));
  HP_TRY(Scheduled scheduled, call.session().schedule(request));
  HP_REQUIRE_OK(call.begin("lowering"));
  PlanParts parts{.plan = {}, .why = explain_choice(question, scheduled)};
  if (!request.machine) {
    HP_TRY(parts.plan, call.session().lower(scheduled));
  } else {
    HP_TRY(parts.machine, machine_for(request, scheduled.mesh));
    HP_TRY(FittedPlan fitted, fit_plan(call.session(), scheduled, *parts.machine));
    for (const Refit& refit : fitted.refits) parts.why.refits.push_back(print(refit));
    parts.plan = std::move(fitted.plan);
    if (scheduled.choice) parts.search = std::move(scheduled.choice->search);
  }
  if (parts.why.refits.empty()) parts.script = std::move(scheduled.script);
  return make_plan(std::move(parts), call);
}

harpe::Checked<v1::Plan> plan_text(const std::string& text, Call& call) {
  HP_REQUIRE_OK(call.begin("reading"));
  const std::string name = "text.plan";
  PlanParts parts;
  HP_TRY(parts.plan, parse_plan_file(text, name));
  // A large plan is proved through small plans of its schedule, so it must follow that schedule.
  if (level_for(parts.plan) == VerifyLevel::Reduced) HP_REQUIRE_OK(check_derived(parts.plan, name));
  parts.why.origin = v1::Origin::Text;
  parts.why.text = "the plan was read from a text";
  return make_plan(std::move(parts), call);
}

harpe::Checked<std::string> show_stage(const v1::Plan::State& state, v1::Stage stage) {
  const Plan& plan = state.plan;
  switch (stage) {
    case v1::Stage::Program:
      return print(plan.program);
    case v1::Stage::Schedule:
      return (state.script ? print(*state.script) : "") + print(plan.form);
    case v1::Stage::Plan:
      return print_plan_file(plan);
    case v1::Stage::Launches: {
      HP_TRY(const std::unique_ptr<launch::Target> target, make_target(Backend::Cuda));
      return show_launches(plan, *target, false);
    }
  }
  HP_CHECK(false, "a stage that is none");
}

harpe::Checked<std::string> print_report(const v1::Plan::State& state, const Machine& machine) {
  const Plan& plan = state.plan;
  ReportSource source{.title = state.facts.op + " on " + state.facts.mesh,
                      .command = "harpe::report",
                      .version = HARPE_VERSION,
                      .machine = &machine,
                      .plans = {}};
  if (state.search && machine == *state.machine) {
    source.search = &*state.search;
    HP_TRY(source.plans, report_search(plan.program, plan.mesh, machine, *state.search));
  } else {
    HP_TRY(ReportedPlan reported, report_plan(plan.form.name, plan, machine, {}));
    source.plans.push_back(std::move(reported));
  }
  return print_html(make_report_page(source));
}

}  // namespace
}  // namespace harpe::library

namespace harpe::v1 {

const PlanFacts& Plan::facts() const { return state_->facts; }
const std::vector<Buffer>& Plan::buffers() const { return state_->buffers; }
const std::optional<Prediction>& Plan::predicted() const { return state_->predicted; }
const Why& Plan::why() const { return state_->why; }
const Certificate& Plan::certificate() const { return state_->certificate; }

Checked<Plan> plan(const Question& question, const Options& options) {
  return library::enter<Plan>(
      options, [&](library::Call& call) { return library::plan_question(question, call); });
}

Checked<Plan> parse_plan(const std::string& text, const Options& options) {
  return library::enter<Plan>(options,
                              [&](library::Call& call) { return library::plan_text(text, call); });
}

Checked<std::string> show(const Plan& plan, Stage stage) {
  return library::enter<std::string>(
      {}, [&](library::Call&) { return library::show_stage(plan.state(), stage); });
}

Checked<std::string> draw(const Plan& plan, DrawingFormat format) {
  return library::enter<std::string>({}, [&](library::Call&) {
    return draw_plan(plan.state().plan, format == DrawingFormat::Svg ? harpe::DrawingFormat::Svg
                                                                     : harpe::DrawingFormat::Text);
  });
}

Checked<std::string> report(const Plan& plan, const std::string& machine) {
  return library::enter<std::string>({}, [&](library::Call&) -> harpe::Checked<std::string> {
    HP_TRY(const Machine found, library::machine_of(plan.state(), machine));
    return library::print_report(plan.state(), found);
  });
}

}  // namespace harpe::v1
