#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/flag_values.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "compile/launches.h"
#include "compile/simulation.h"
#include "compile/tune.h"
#include "io/files.h"
#include "io/trace.h"
#include "report/report_page.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

constexpr std::size_t kMostShown = 6;  // resources in a table

double percent(Picoseconds part, Picoseconds whole) {
  return whole.value == 0 ? 0 : 100 * part.seconds() / whole.seconds();
}

std::string_view print_launch(Launch launch) { return launch == Launch::Graph ? "graph" : "host"; }

std::int64_t most_in_use(const Simulation& simulation) {
  std::int64_t bytes = 0;
  for (const MemoryPoint& point : simulation.memory) bytes = std::max(bytes, point.bytes);
  return bytes;
}

Rows rows_of(const PlanSummary& plan, const Machine& machine, const SimulateOptions& options,
             const std::vector<Refit>& refits, const Simulation& simulation) {
  Rows rows = {{"machine", machine.name + ": " + machine.summary}};
  add_inherited(rows, machine);
  rows.emplace_back("time", fmt::format("{}, launched by {}", print_time(simulation.total),
                                        print_launch(options.launch)));
  add_error(rows, machine, plan.program);
  if (plan.flops > 0 && simulation.total.value > 0) {
    rows.emplace_back(
        "rate", fmt::format("{:.1f} TFLOP/s a rank", plan.flops / static_cast<double>(plan.ranks) /
                                                         simulation.total.seconds() * 1e-12));
  }
  rows.emplace_back(
      "exposed",
      fmt::format("{} of communication, {:.1f} %", print_time(simulation.exposed_communication),
                  percent(simulation.exposed_communication, simulation.total)));
  rows.emplace_back("memory",
                    fmt::format("{} a rank, {} in use at most", print_bytes(simulation.peak_bytes),
                                print_bytes(most_in_use(simulation))));
  for (std::size_t level = 0; level < simulation.bytes_per_level.size(); ++level) {
    rows.emplace_back(machine.levels[level].name,
                      print_bytes(simulation.bytes_per_level[level]) + " cross it");
  }
  for (const Refit& refit : refits) rows.emplace_back("sent", print(refit));
  rows.emplace_back("simulated", fmt::format("{} activities of {} ranks", simulation.activities,
                                             simulation.ranks_simulated));
  return rows;
}

std::string print_path(const Simulation& simulation) {
  const PathSums path = sum_path(simulation);
  std::vector<std::vector<std::string>> lines;
  for (const auto& [spending, time] : path.spent) {
    lines.push_back({std::string(print(spending)), print_time(time),
                     fmt::format("{:.1f} %", percent(time, simulation.total))});
  }
  return "\ncritical path\n" + print_table(lines);
}

std::string print_shares(const Simulation& simulation) {
  std::vector<std::vector<std::string>> lines;
  for (const ResourceShare& share : simulation.shares) {
    if (lines.size() == kMostShown) break;
    lines.push_back({share.name, fmt::format("{:.1f} %", 100 * share.utilisation)});
  }
  return "\nbusiest\n" + print_table(lines);
}

Json path_to_json(const Simulation& simulation) {
  Json segments = Json::array();
  for (const Segment& segment : simulation.critical_path) {
    segments.push_back(Json{{"spent_on", print(segment.spending)},
                            {"begin_us", segment.begin.microseconds()},
                            {"end_us", segment.end.microseconds()},
                            {"task", segment.task.value},
                            {"what", segment.what}});
  }
  return segments;
}

Json to_json(const Machine& machine, const Simulation& simulation) {
  const PathSums path = sum_path(simulation);
  Json sums = Json::object();
  for (const auto& [spending, time] : path.spent) {
    sums[std::string(print(spending))] = time.microseconds();
  }
  Json shares = Json::array();
  for (const ResourceShare& share : simulation.shares) {
    shares.push_back(Json{{"resource", share.name}, {"utilisation", share.utilisation}});
  }
  Json memory = Json::array();
  for (const MemoryPoint& point : simulation.memory) {
    memory.push_back(Json{{"time_us", point.time.microseconds()}, {"bytes", point.bytes}});
  }
  Json levels = Json::object();
  for (std::size_t level = 0; level < simulation.bytes_per_level.size(); ++level) {
    levels[machine.levels[level].name] = simulation.bytes_per_level[level];
  }
  return {{"time_us", simulation.total.microseconds()},
          {"exposed_communication_us", simulation.exposed_communication.microseconds()},
          {"spent_us", std::move(sums)},
          {"critical_path", path_to_json(simulation)},
          {"utilisation", std::move(shares)},
          {"level_bytes", std::move(levels)},
          {"peak_bytes", simulation.peak_bytes},
          {"memory", std::move(memory)},
          {"activities", simulation.activities},
          {"ranks_simulated", simulation.ranks_simulated}};
}

}  // namespace

Checked<int> simulate_plan(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  const std::optional<std::string> report = line.value("report");
  SimulateOptions options;
  HP_TRY(options.launch, parse_launch(line.value("launch").value_or("graph")));
  HP_TRY(const Request request, request_of(line));
  HP_TRY(const Machine machine, machine_of(session, request, line.value("machine")));
  show_progress("lowering");
  HP_TRY(const FittedPlan fitted, plan_for(session, request, machine));
  const Plan& plan = fitted.plan;
  if (const auto delay = line.value("delay")) {
    HP_TRY(options.delay, parse_delay(*delay, plan.mesh.ranks()));
  }
  show_progress("verifying");
  HP_REQUIRE_OK(certify(plan, level_for(plan)));
  show_progress("simulating");
  HP_TRY(const Simulation simulation, simulate(plan, launches_on(plan, machine), machine, options));
  if (const auto trace = line.value("trace")) {
    HP_REQUIRE_OK(write_trace(*trace, plan, simulation));
    announce(*trace);
  }
  if (report) {
    HP_TRY(ReportedPlan reported, report_plan(plan.form.name, plan, machine, options));
    const ReportSource source{.title = plan.program.name + " on " + print_mesh_option(plan.mesh),
                              .command = print_command(line),
                              .version = HARPE_VERSION,
                              .machine = &machine,
                              .plans = {std::move(reported)}};
    HP_REQUIRE_OK(write_report(*report, source));
    announce(*report);
  }
  const PlanSummary summary = summarise(plan);
  Json json = start_json(line);
  add_plan(json, summary);
  Json refits = Json::array();
  for (const Refit& refit : fitted.refits) refits.emplace_back(print(refit));
  json["inputs"] = subject_to_json(line);
  json["machine"] = machine.name;
  json["inherited"] = list_inherited(machine);
  json["refits"] = std::move(refits);
  json["error"] = error_to_json(machine, summary.program);
  json["launch"] = print_launch(options.launch);
  json["simulation"] = to_json(machine, simulation);
  HP_REQUIRE_OK(
      show_results(line,
                   print_title(summary) +
                       print_rows(rows_of(summary, machine, options, fitted.refits, simulation)) +
                       print_path(simulation) + print_shares(simulation),
                   json));
  return kDone;
}

}  // namespace harpe::cli
