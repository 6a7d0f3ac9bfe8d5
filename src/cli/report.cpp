#include "cli/report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "compile/simulation.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

std::string_view print_level(VerifyLevel level) {
  return level == VerifyLevel::Full ? "full" : "reduced";
}

std::string print_flops(double flops) {
  constexpr std::array kUnits = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  std::size_t unit = 0;
  while (flops >= 1000 && unit + 1 < kUnits.size()) {
    flops /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", flops, kUnits[unit]);
}

constexpr double kUneven = 1.005;         // as PlanSummary::balance
constexpr std::int64_t kMostListed = 16;  // ranks that fit into a line

// The work of each rank relative to the mean.
std::string print_shares(const PlanSummary& plan) {
  std::string out;
  for (const double work : plan.work) {
    const double share = work * static_cast<double>(plan.ranks) / plan.flops;
    out += (out.empty() ? "" : " ") + fmt::format("{:.2f}", share);
  }
  return out;
}

}  // namespace

std::string print_title(const PlanSummary& plan) {
  return plan.program + " on " + plan.mesh + ", schedule " + plan.schedule + "\n";
}

Rows plan_rows(const PlanSummary& plan) {
  Rows rows = {
      {"ranks", std::to_string(plan.ranks)},
      {"tasks", std::to_string(plan.tasks)},
      {"syncs", std::to_string(plan.syncs) + " and " + std::to_string(plan.barriers) + " barriers"},
      {"moved", print_bytes(plan.bytes_moved)},
      {"memory", print_bytes(plan.memory_bytes) + " a rank"}};
  for (const std::string& step : plan.steps) rows.emplace_back("steps", step);
  if (plan.flops > 0) {
    rows.emplace_back("work", print_flops(plan.flops) +
                                  fmt::format(", busiest rank {:.2f} of the mean", plan.balance));
    if (plan.balance > kUneven && plan.ranks <= kMostListed) {
      rows.emplace_back("by rank", print_shares(plan));
    }
  }
  return rows;
}

void add_plan(Json& json, const PlanSummary& plan) {
  json["operator"] = plan.program;
  json["mesh"] = plan.mesh;
  json["schedule"] = plan.schedule;
  json["steps"] = plan.steps;
  json["ranks"] = plan.ranks;
  json["tasks"] = plan.tasks;
  json["syncs"] = plan.syncs;
  json["barriers"] = plan.barriers;
  json["bytes_moved"] = plan.bytes_moved;
  json["memory_bytes"] = plan.memory_bytes;
  json["flops"] = plan.flops;
  json["work"] = plan.work;
  json["balance"] = plan.balance;
}

Rows certificate_rows(const Certificate& certificate) {
  Rows rows = {{"level", std::string(print_level(certificate.level))},
               {"covers", coverage_of(certificate)}};
  if (certificate.has_plan) {
    rows.emplace_back("tasks", std::to_string(certificate.tasks));
    rows.emplace_back("edges", std::to_string(certificate.happens_before_edges));
  }
  rows.emplace_back("blocks", std::to_string(certificate.blocks_checked) + " of outputs");
  if (certificate.peak_bytes > 0) {
    rows.emplace_back("memory", print_bytes(certificate.peak_bytes) + " a rank");
  }
  return rows;
}

Json certificate_to_json(const Certificate& certificate) {
  return {{"level", print_level(certificate.level)},
          {"covers", coverage_of(certificate)},
          {"tasks", certificate.tasks},
          {"edges", certificate.happens_before_edges},
          {"blocks", certificate.blocks_checked},
          {"memory_bytes", certificate.peak_bytes}};
}

void add_launches(Rows& rows, const LaunchCertificate& certificate) {
  rows.emplace_back("launches", std::to_string(certificate.launches) + ", of " +
                                    std::to_string(certificate.steps) + " steps, over " +
                                    std::to_string(certificate.signals) + " signals");
}

Json launch_certificate_to_json(const LaunchCertificate& certificate) {
  return {{"launches", certificate.launches},
          {"steps", certificate.steps},
          {"signals", certificate.signals},
          {"blocks", certificate.blocks_checked}};
}

void add_inherited(Rows& rows, const Machine& machine) {
  std::string inherited = list_inherited(machine);
  if (!inherited.empty()) rows.emplace_back("inherited", std::move(inherited));
}

std::string print_inherited(const Machine& machine) {
  const std::string inherited = list_inherited(machine);
  return inherited.empty() ? "" : "inherited: " + inherited + "\n";
}

void add_error(Rows& rows, const Machine& machine, const std::string& family) {
  rows.emplace_back("error", print_prediction_error(machine, family));
}

Json error_to_json(const Machine& machine, const std::string& family) {
  const PredictionError* const error = find_error(machine, family);
  if (error == nullptr) return {};
  return {{"family", error->family},
          {"plans", error->plans},
          {"median", error->median},
          {"nine_of_ten", error->nine_of_ten},
          {"from", error->from.note}};
}

Json agreement_to_json(const Agreement& agreement) {
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  return {{"family", agreement.family},
          {"counts", agreement.counts},
          {"cases", agreement.count},
          {"median_error", agreement.median_error},
          {"error_90", agreement.error_90},
          {"mean_ratio", agreement.mean_ratio},
          {"spearman", agreement.spearman},
          {"kendall", agreement.kendall},
          {"regret_1", number(agreement.regret_1)},
          {"regret_8", number(agreement.regret_8)}};
}

}  // namespace harpe::cli
