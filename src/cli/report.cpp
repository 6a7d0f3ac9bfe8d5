#include "cli/report.h"

#include "driver/memory.h"

namespace harpe::cli {
namespace {

std::string_view print_level(VerifyLevel level) {
  return level == VerifyLevel::Full ? "full" : "reduced";
}

}  // namespace

std::string print_title(const PlanSummary& plan) {
  return plan.program + " on " + plan.mesh + ", schedule " + plan.schedule + "\n";
}

Rows rows_of(const PlanSummary& plan) {
  return {
      {"ranks", std::to_string(plan.ranks)},
      {"tasks", std::to_string(plan.tasks)},
      {"syncs", std::to_string(plan.syncs) + " and " + std::to_string(plan.barriers) + " barriers"},
      {"moved", print_bytes(plan.bytes_moved)},
      {"memory", print_bytes(plan.memory_bytes) + " a rank"}};
}

void add_plan(Json& json, const PlanSummary& plan) {
  json.set("operator", plan.program)
      .set("mesh", plan.mesh)
      .set("schedule", plan.schedule)
      .set("ranks", plan.ranks)
      .set("tasks", plan.tasks)
      .set("syncs", plan.syncs)
      .set("barriers", plan.barriers)
      .set("bytes_moved", plan.bytes_moved)
      .set("memory_bytes", plan.memory_bytes);
}

Rows rows_of(const Certificate& certificate) {
  return {{"level", std::string(print_level(certificate.level))},
          {"tasks", std::to_string(certificate.tasks)},
          {"edges", std::to_string(certificate.happens_before_edges)},
          {"blocks", std::to_string(certificate.blocks_checked) + " of outputs"},
          {"memory", print_bytes(certificate.peak_bytes) + " a rank"}};
}

Json to_json(const Certificate& certificate) {
  return Json::object()
      .set("level", print_level(certificate.level))
      .set("tasks", certificate.tasks)
      .set("edges", certificate.happens_before_edges)
      .set("blocks", certificate.blocks_checked)
      .set("memory_bytes", certificate.peak_bytes);
}

}  // namespace harpe::cli
