#include <algorithm>

#include "cli/flag_values.h"
#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compile/catalogue.h"
#include "compile/launches.h"
#include "report/draw.h"
#include "run/backend.h"

namespace harpe::cli {
namespace {

std::string name_stage(const CommandLine& line) {
  return line.value("stage").value_or(line.has("mesh") ? "schedule" : "op");
}

// A stage of the catalogue; none for launches.
Checked<std::optional<Stage>> stage_of(const CommandLine& line) {
  static const std::vector<std::string> kStages = {"op", "schedule", "plan", "launches"};
  const std::string stage = name_stage(line);
  const auto found = std::ranges::find(kStages, stage);
  if (stage == kStages.back()) return std::optional<Stage>();
  if (found != kStages.end()) return std::optional(static_cast<Stage>(found - kStages.begin()));
  return make_diag(DiagCode::U109,
                   {{"flag", "--stage"},
                    {"text", stage},
                    {"wanted", "op, schedule, plan or launches" + suggestion(stage, kStages)}});
}

// A drawing of what each rank holds, receives and computes at each step. Errors: also U121 more
// ranks than columns.
Checked<int> show_picture(const CommandLine& line, Session& session, const Request& request) {
  const std::string flag = line.has("svg") ? "--svg" : "--draw";
  const std::string stage = line.value("stage").value_or("plan");
  if (stage != "plan") {
    return make_diag(DiagCode::U120, {{"flag", flag}, {"stage", stage}});
  }
  HP_TRY(const Plan plan, session.plan(request));
  HP_TRY(const std::string picture,
         draw_plan(plan, line.has("svg") ? DrawingFormat::Svg : DrawingFormat::Text));
  HP_REQUIRE_OK(print_out(picture));
  return kDone;
}

// The target of the launches.
Checked<std::unique_ptr<launch::Target>> launch_target_of(const CommandLine& line) {
  HP_TRY(const Backend target, target_of(line, Backend::Cuda));
  return make_target(target);
}

// Explains the decisions of the launch plan's passes about a task.
Checked<int> show_decisions(const CommandLine& line, Session& session, const Request& request) {
  HP_TRY(const Plan plan, session.plan(request));
  const auto last = static_cast<std::int64_t>(plan.tasks.size()) - 1;
  HP_TRY(const std::int64_t task, parse_count("--task", *line.value("task"), 0, last));
  HP_TRY(const std::unique_ptr<launch::Target> target, launch_target_of(line));
  HP_TRY(const std::string text, explain_launch(plan, *target, TaskId(task)));
  HP_REQUIRE_OK(print_out(text));
  return kDone;
}

Checked<std::string> show_launches_of(const CommandLine& line, Session& session,
                                      const Request& request) {
  HP_TRY(const std::unique_ptr<launch::Target> target, launch_target_of(line));
  HP_TRY(const Plan plan, session.plan(request));
  if (session.is_paranoid() && target->facts().waits_inside) {
    HP_REQUIRE_OK(check_gpu_launches(plan));
  } else if (session.is_paranoid()) {
    HP_TRY(const std::unique_ptr<launch::Target> in_turns, make_target(Backend::Cpu, true));
    HP_REQUIRE_OK(show_launches(plan, *in_turns, true));
  }
  return show_launches(plan, *target, session.is_paranoid());
}

}  // namespace

Checked<int> show_text(const CommandLine& line, Session& session) {
  HP_TRY(const Request request, operator_request_of(line));
  if (line.has("draw") || line.has("svg")) return show_picture(line, session, request);
  HP_TRY(const std::optional<Stage> stage, stage_of(line));
  for (const std::string flag : {"target", "task"}) {
    if (!stage || !line.has(flag)) continue;
    return make_diag(DiagCode::U109, {{"flag", "--stage"},
                                      {"text", name_stage(line)},
                                      {"wanted", "launches, as `--" + flag + "` asks"}});
  }
  if (line.has("task")) return show_decisions(line, session, request);
  HP_TRY(const std::string text,
         stage ? show(session, request, *stage) : show_launches_of(line, session, request));
  HP_REQUIRE_OK(print_out(text));
  return kDone;
}

}  // namespace harpe::cli
