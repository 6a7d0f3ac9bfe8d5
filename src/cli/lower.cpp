#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "compile/plan_file.h"
#include "io/files.h"
#include "run/backend.h"

namespace harpe::cli {
namespace {

// Watches the stages of the lowering for `--print-after` and `--stop-after`.
class StageWatch {
 public:
  explicit StageWatch(const CommandLine& line)
      : print_after_(line.value("print-after")), stop_after_(line.value("stop-after")) {}

  [[nodiscard]] LowerOptions options() {
    LowerOptions options;
    if (!print_after_ && !stop_after_) return options;
    options.after_stage = [this](std::string_view stage, const std::function<std::string()>& text,
                                 std::chrono::nanoseconds time) {
      stages_.emplace_back(stage);
      if (print_after_ == stage || print_after_ == "all") {
        const double seconds = std::chrono::duration<double>(time).count();
        print_error("// after " + std::string(stage) + ", " + print_seconds(seconds) + "\n" +
                    text());
      }
      if (stop_after_ == stage) stopped_ = text();
    };
    return options;
  }

  // The draft that `--stop-after` requests. Errors: U109 if a flag names an unknown stage.
  [[nodiscard]] Checked<std::optional<std::string>> finish() const {
    if (!is_launch_pass()) HP_REQUIRE_OK(check("--print-after", print_after_, true));
    HP_REQUIRE_OK(check("--stop-after", stop_after_, false));
    return stopped_;
  }

  // Prints the GPUs' launch plan if `--print-after` names a pass over launch plans.
  // Errors: show_launches_after's.
  [[nodiscard]] Checked<Ok> print_launches(const Plan& plan) const {
    if (!is_launch_pass()) return Ok{};
    HP_TRY(const std::unique_ptr<launch::Target> target, make_target(Backend::Cuda));
    HP_TRY(const std::string text, show_launches_after(plan, *target, *print_after_));
    print_error("// after " + *print_after_ + "\n" + text);
    return Ok{};
  }

 private:
  [[nodiscard]] bool is_launch_pass() const {
    const std::vector<std::string> passes = launch_pass_names();
    return print_after_ && std::ranges::find(passes, *print_after_) != passes.end();
  }

  [[nodiscard]] Checked<Ok> check(std::string_view flag, const std::optional<std::string>& stage,
                                  bool or_all) const {
    if (!stage || (or_all && *stage == "all") ||
        std::ranges::find(stages_, *stage) != stages_.end()) {
      return Ok{};
    }
    std::string wanted = "one of";
    for (const std::string& name : stages_) wanted += " " + name;
    if (or_all) {
      wanted += " all, or of launch plans";
      for (const std::string& name : launch_pass_names()) wanted += " " + name;
    }
    return make_diag(DiagCode::U109, {{"flag", flag}, {"text", *stage}, {"wanted", wanted}});
  }

  std::optional<std::string> print_after_;
  std::optional<std::string> stop_after_;
  std::vector<std::string> stages_;
  std::optional<std::string> stopped_;
};

}  // namespace

Checked<int> lower_schedule(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(const Request request, operator_request_of(line));
  const std::optional<std::string> path = line.value("output-file");
  StageWatch watch(line);
  HP_TRY(const Scheduled scheduled, session.schedule(request));
  show_progress("lowering");
  HP_TRY(const Plan plan, session.lower(scheduled, watch.options()));
  HP_TRY(const std::optional<std::string> draft, watch.finish());
  if (draft) {
    HP_REQUIRE_OK(print_out(*draft));
    return kDone;
  }
  show_progress("verifying");
  HP_TRY(const Certificate certificate, certify(plan, level_for(plan)));
  HP_REQUIRE_OK(watch.print_launches(plan));
  const std::string text = print_plan_file(plan);
  HP_REQUIRE_OK(write_file_of(line, "output-file", text));
  const PlanSummary summary = summarise(plan);
  Json json = start_json(line);
  add_plan(json, summary);
  json["inputs"] = subject_to_json(line);
  json["certificate"] = certificate_to_json(certificate);
  json[path ? "file" : "plan"] = path ? *path : text;
  HP_REQUIRE_OK(show_results(
      line, path ? print_title(summary) + print_rows(plan_rows(summary)) : text, json));
  return kDone;
}

}  // namespace harpe::cli
