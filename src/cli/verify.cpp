#include <limits>

#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "driver/target.h"

namespace harpe::cli {
namespace {

Checked<VerifyLevel> level_of(const CommandLine& line, const Plan& plan) {
  static const std::vector<std::string> kLevels = {"auto", "full", "reduced"};
  const std::string level = line.value("level").value_or("auto");
  if (level == "auto") return level_for(plan);
  if (level == "full") return VerifyLevel::Full;
  if (level == "reduced") return VerifyLevel::Reduced;
  return make_diag(DiagCode::U109,
                   {{"flag", "--level"},
                    {"text", level},
                    {"wanted", "auto, full or reduced" + suggestion(level, kLevels)}});
}

}  // namespace

Checked<int> verify_plan(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_json(line));
  VerifyOptions options;
  if (const std::optional<std::string> limit = line.value("memory")) {
    HP_TRY(options.memory_limit_bytes,
           parse_count("--memory", *limit, 1, std::numeric_limits<std::int64_t>::max()));
  }
  HP_TRY(const Request request, request_of(line));
  show_progress("lowering");
  HP_TRY(const Plan plan, session.plan(request));
  HP_TRY(const VerifyLevel level, level_of(line, plan));
  show_progress("verifying");
  HP_TRY(const Certificate certificate, certify(plan, level, options));
  const PlanSummary summary = summarise(plan);
  Json json = start_json(line);
  add_plan(json, summary);
  json.set("certificate", to_json(certificate));
  HP_REQUIRE_OK(show_results(
      line, "verified: " + print_title(summary) + print_rows(rows_of(certificate)), json));
  return kDone;
}

}  // namespace harpe::cli
