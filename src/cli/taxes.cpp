#include <fmt/format.h>

#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "driver/files.h"
#include "driver/report_page.h"
#include "driver/simulation.h"

namespace harpe::cli {
namespace {

constexpr std::size_t kMostReported = 8;

std::string print_time(Picoseconds time) { return print_seconds(time.seconds()); }

std::string print_rows_of(const std::vector<TaxRow>& rows) {
  std::vector<std::vector<std::string>> lines = {{"schedule", "time", "roofline", "launch",
                                                  "synchronization", "locality", "residual",
                                                  "skew"}};
  std::string refused;
  for (const TaxRow& row : rows) {
    if (row.refusal) {
      refused += "  " + row.schedule + "\n    " + render(*row.refusal) + "\n";
      continue;
    }
    const Taxes& taxes = *row.taxes;
    lines.push_back({row.schedule, print_time(taxes.total), print_time(taxes.roofline),
                     print_time(taxes.launch), print_time(taxes.synchronization),
                     print_time(taxes.locality), print_time(taxes.residual),
                     fmt::format("{:.2f}", taxes.skew_sensitivity)});
  }
  std::string refitted;
  for (const TaxRow& row : rows) {
    for (const Refit& refit : row.refits)
      refitted += "  " + row.schedule + ": " + print(refit) + "\n";
  }
  std::string text;
  if (lines.size() > 1) text += print_table(lines);
  if (!refitted.empty()) text += "\nas the machine allows\n" + refitted;
  if (!refused.empty()) text += "\nnot on this machine\n" + refused;
  return text;
}

Json to_json(const std::vector<Refit>& refits) {
  Json::Array all;
  for (const Refit& refit : refits) all.emplace_back(print(refit));
  return {std::move(all)};
}

Json to_json(const TaxRow& row) {
  Json json = Json::object();
  json.set("schedule", row.schedule).set("applies", row.taxes.has_value());
  if (row.refusal) {
    return json.set("code", info(row.refusal->code).name)
        .set("reason", render_message(*row.refusal));
  }
  const Taxes& taxes = *row.taxes;
  return json.set("time_us", taxes.total.microseconds())
      .set("roofline_us", taxes.roofline.microseconds())
      .set("launch_us", taxes.launch.microseconds())
      .set("synchronization_us", taxes.synchronization.microseconds())
      .set("locality_us", taxes.locality.microseconds())
      .set("residual_us", taxes.residual.microseconds())
      .set("skew_sensitivity", taxes.skew_sensitivity)
      .set("bound", row.bound)
      .set("refits", to_json(row.refits));
}

// The machine that stands for a back end, where none is named. Times are simulated all the same.
Checked<std::optional<std::string>> machine_of(const CommandLine& line) {
  HP_TRY(const Backend backend, backend_of(line));
  if (backend == Backend::Cuda) {
    return make_diag(DiagCode::I501, {{"missing", "this version measures no taxes on GPUs"}});
  }
  if (const auto machine = line.value("machine")) return machine;
  return line.value("backend");
}

// The fastest in full, and the next ones beside it.
Checked<Ok> write_page(const CommandLine& line, Session& session, Request request,
                       const TaxList& list, Launch launch) {
  const auto path = line.value("report");
  if (!path) return Ok{};
  SimulateOptions options;
  options.launch = launch;
  ReportSource source{.title = "",
                      .command = print_command(line),
                      .version = HARPE_VERSION,
                      .machine = &list.machine,
                      .plans = {}};
  for (const TaxRow& row : list.rows) {
    if (row.refusal)
      source.refused.push_back({row.schedule + ": " + std::string(info(row.refusal->code).name) +
                                    " " + render_message(*row.refusal),
                                1});
    if (row.refusal || source.plans.size() == kMostReported) continue;
    if (list.rows.size() > 1) request.schedule = row.schedule;
    HP_TRY(Plan plan, session.plan(request));
    source.title = plan.program.name + " on " + print_mesh_option(plan.mesh);
    HP_TRY(ReportedPlan reported,
           report_plan(row.schedule, std::move(plan), list.machine, options));
    source.plans.push_back(std::move(reported));
  }
  if (source.plans.empty()) return Ok{};
  return write_report(*path, source);
}

}  // namespace

Checked<int> list_taxes_of(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_json(line));
  if (const auto path = line.value("report")) HP_REQUIRE_OK(check_writable(*path));
  HP_TRY(const std::optional<std::string> machine, machine_of(line));
  HP_TRY(const Launch launch, parse_launch(line.value("launch").value_or("graph")));
  HP_TRY(const Request request, request_of(line));
  show_progress("simulating");
  HP_TRY(const TaxList list, list_taxes(session, request, machine, launch));
  HP_REQUIRE_OK(write_page(line, session, request, list, launch));
  Json::Array all;
  for (const TaxRow& row : list.rows) all.push_back(to_json(row));
  Json json = start_json(line);
  json.set("target", request.target)
      .set("parameters", Json::Array(request.parameters.begin(), request.parameters.end()))
      .set("mesh", request.mesh ? Json(*request.mesh) : Json())
      .set("machine", list.machine.name)
      .set("launch", launch == Launch::Graph ? "graph" : "host")
      .set("schedules", std::move(all));
  std::string title = request.target;
  if (request.mesh) title += " on " + *request.mesh;
  title += ", machine " + list.machine.name + "\n";
  HP_REQUIRE_OK(show_results(line, title + print_rows_of(list.rows), json));
  return kDone;
}

}  // namespace harpe::cli
