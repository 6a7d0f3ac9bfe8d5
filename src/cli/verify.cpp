#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/flag_values.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "compile/certify_launches.h"
#include "compile/check_form.h"
#include "compile/target.h"
#include "verify/verify_launches.h"

namespace harpe::cli {
namespace {

// `--level`; none for auto.
Checked<std::optional<VerifyLevel>> level_of(const CommandLine& line) {
  static const std::vector<std::string> kLevels = {"auto", "full", "reduced"};
  const std::string level = line.value("level").value_or("auto");
  if (level == "auto") return std::optional<VerifyLevel>();
  if (level == "full") return std::optional(VerifyLevel::Full);
  if (level == "reduced") return std::optional(VerifyLevel::Reduced);
  return make_diag(DiagCode::U109,
                   {{"flag", "--level"},
                    {"text", level},
                    {"wanted", "auto, full or reduced" + suggestion(level, kLevels)}});
}

Checked<VerifyOptions> options_of(const CommandLine& line) {
  VerifyOptions options;
  if (const std::optional<std::string> limit = line.value("memory")) {
    HP_TRY(options.memory_limit_bytes,
           parse_count("--memory", *limit, 1, std::numeric_limits<std::int64_t>::max()));
  }
  if (const std::optional<std::string> count = line.value("sms")) {
    HP_TRY(options.sm_count, parse_count("--sms", *count, 1, 1024));
  }
  return options;
}

// True if `--launches FILE` or `--stage launches` requests the proof of launches too.
Checked<bool> asks_launches(const CommandLine& line) {
  static const std::vector<std::string> kStages = {"plan", "launches"};
  const std::string stage = line.value("stage").value_or("plan");
  if (std::ranges::find(kStages, stage) == kStages.end()) {
    return make_diag(DiagCode::U109, {{"flag", "--stage"},
                                      {"text", stage},
                                      {"wanted", "plan or launches" + suggestion(stage, kStages)}});
  }
  return stage == "launches" || line.has("launches");
}

// The proof of a plan and, if requested, of its launches.
struct Proofs {
  Certificate plan;
  std::optional<LaunchCertificate> launches;
};

Checked<int> show(const CommandLine& line, const PlanSummary& summary, Json json,
                  const Proofs& proofs) {
  json["inputs"] = subject_to_json(line);
  json["certificate"] = certificate_to_json(proofs.plan);
  Rows rows = certificate_rows(proofs.plan);
  if (proofs.launches) {
    json["launches"] = launch_certificate_to_json(*proofs.launches);
    add_launches(rows, *proofs.launches);
  }
  HP_REQUIRE_OK(show_results(line, "verified: " + print_title(summary) + print_rows(rows), json));
  return kDone;
}

// The launches in the file, or else those of H200s.
Checked<launch::LaunchPlan> launches_of(const std::optional<std::string>& file, const Plan& plan) {
  if (file) return read_launches(*file, plan);
  return make_gpu_launches(plan);
}

Checked<LaunchCertificate> prove_small_launches(const Program& program, const Mesh& mesh,
                                                const NormalForm& form,
                                                const VerifyOptions& options) {
  return certify_small_launches(program, mesh, form, options);
}

// Proves a plan's launches if requested.
Checked<std::optional<LaunchCertificate>> prove_launches(const CommandLine& line, const Plan& plan,
                                                         VerifyLevel level,
                                                         const VerifyOptions& options) {
  HP_TRY(const bool asks, asks_launches(line));
  if (!asks) return std::optional<LaunchCertificate>();
  show_progress("verifying launches");
  const std::optional<std::string> file = line.value("launches");
  if (level == VerifyLevel::Reduced && !file) {
    HP_TRY(const LaunchCertificate small,
           prove_small_launches(plan.program, plan.mesh, plan.form, options));
    return std::optional(small);
  }
  HP_TRY(const launch::LaunchPlan launches, launches_of(file, plan));
  HP_TRY(const LaunchCertificate certificate, verify_launches(plan, launches, options));
  return std::optional(certificate);
}

// Verifies a schedule whose plan is too large to make.
Checked<int> verify_schedule(const CommandLine& line, const Scheduled& scheduled,
                             const VerifyOptions& options) {
  show_progress("verifying");
  Proofs proofs;
  HP_TRY(proofs.plan, certify_schedule(scheduled.program, scheduled.mesh, scheduled.form, options));
  HP_TRY(const bool asks, asks_launches(line));
  if (asks) {
    HP_TRY(proofs.launches,
           prove_small_launches(scheduled.program, scheduled.mesh, scheduled.form, options));
  }
  PlanSummary summary;
  summary.program = scheduled.program.name;
  summary.mesh = print_mesh_option(scheduled.mesh);
  summary.schedule = scheduled.form.name;
  summary.ranks = scheduled.mesh.ranks();
  Json json = start_json(line);
  json["operator"] = summary.program;
  json["mesh"] = summary.mesh;
  json["schedule"] = summary.schedule;
  json["ranks"] = summary.ranks;
  return show(line, summary, std::move(json), proofs);
}

}  // namespace

Checked<int> verify_plan(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(const VerifyOptions options, options_of(line));
  HP_REQUIRE_OK(asks_launches(line));
  HP_TRY(const Request request, request_of(line));
  HP_TRY(const std::optional<VerifyLevel> level, level_of(line));
  show_progress("lowering");
  std::optional<Plan> plan;
  if (kind_of(request.target) == TargetKind::PlanFile) {
    HP_TRY(plan, session.plan(request));
    if (level == VerifyLevel::Reduced) HP_REQUIRE_OK(check_derived(*plan, request.target));
  } else {
    HP_TRY(const Scheduled scheduled, session.schedule(request));
    const bool may_reduce = level.value_or(VerifyLevel::Reduced) == VerifyLevel::Reduced;
    // Without `--level`, a plan that is too large to check every block is not made.
    const std::int64_t most = level ? kMostTasks : kFullTasks;
    if (may_reduce && !check_steps(scheduled.mesh, scheduled.form, most).ok()) {
      return verify_schedule(line, scheduled, options);
    }
    HP_TRY(plan, session.lower(scheduled));
  }
  show_progress("verifying");
  const VerifyLevel chosen = level.value_or(level_for(*plan));
  Proofs proofs;
  HP_TRY(proofs.plan, certify(*plan, chosen, options));
  HP_TRY(proofs.launches, prove_launches(line, *plan, chosen, options));
  const PlanSummary summary = summarise(*plan);
  Json json = start_json(line);
  add_plan(json, summary);
  return show(line, summary, std::move(json), proofs);
}

}  // namespace harpe::cli
