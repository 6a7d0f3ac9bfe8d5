#include <algorithm>

#include "cli/flag_values.h"
#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "driver/catalogue.h"
#include "driver/launches.h"

namespace harpe::cli {
namespace {

Checked<Stage> stage_of(const CommandLine& line) {
  static const std::vector<std::string> kStages = {"op", "schedule", "plan", "launches"};
  const std::string otherwise = line.has("mesh") ? "schedule" : "op";
  const std::string stage = line.value("stage").value_or(otherwise);
  const auto found = std::ranges::find(kStages, stage);
  if (found != kStages.end()) return static_cast<Stage>(found - kStages.begin());
  return make_diag(DiagCode::U109,
                   {{"flag", "--stage"},
                    {"text", stage},
                    {"wanted", "op, schedule, plan or launches" + suggestion(stage, kStages)}});
}

Checked<int> show_picture(const CommandLine& line, Session& session, const Request& request) {
  const std::string flag = line.has("svg") ? "--svg" : "--draw";
  const std::string stage = line.value("stage").value_or("plan");
  if (stage != "plan") {
    return make_diag(DiagCode::U120, {{"flag", flag}, {"stage", stage}});
  }
  const DrawingFormat format = line.has("svg") ? DrawingFormat::Svg : DrawingFormat::Text;
  HP_TRY(const std::string text, show_drawing(session, request, format));
  HP_REQUIRE_OK(print_out(text));
  return kDone;
}

// Why the passes over launch plans did what they did with a task.
Checked<int> show_decisions(const CommandLine& line, Session& session, const Request& request) {
  HP_TRY(const Scheduled scheduled, session.schedule(request));
  HP_TRY(const Plan plan, session.lower(scheduled));
  const auto last = static_cast<std::int64_t>(plan.tasks.size()) - 1;
  HP_TRY(const std::int64_t task, parse_count("--task", *line.value("task"), 0, last));
  HP_TRY(const std::string text, explain_launch(plan, TaskId(task)));
  HP_REQUIRE_OK(print_out(text));
  return kDone;
}

}  // namespace

Checked<int> show_text(const CommandLine& line, Session& session) {
  HP_TRY(const Request request, operator_request_of(line));
  if (line.has("draw") || line.has("svg")) return show_picture(line, session, request);
  HP_TRY(const Stage stage, stage_of(line));
  if (line.has("task")) {
    if (stage == Stage::Launches) return show_decisions(line, session, request);
    return make_diag(DiagCode::U109, {{"flag", "--stage"},
                                      {"text", line.value("stage").value_or("schedule")},
                                      {"wanted", "launches, as `--task` asks"}});
  }
  HP_TRY(const std::string text, show(session, request, stage));
  HP_REQUIRE_OK(print_out(text));
  return kDone;
}

}  // namespace harpe::cli
