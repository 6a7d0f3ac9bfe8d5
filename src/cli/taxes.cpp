#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/flag_values.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/verbs.h"
#include "compile/simulation.h"
#include "io/files.h"
#include "measure/taxes_on_gpus.h"
#include "report/report_page.h"
#include "run/gpus.h"

namespace harpe::cli {
namespace {

constexpr std::size_t kMostReported = 8;

// Measured rows have no skew, which is only simulated.
std::string print_rows_of(const std::vector<TaxRow>& rows, bool is_measured) {
  std::vector<std::vector<std::string>> lines = {
      {"schedule", "time", "roofline", "launch", "synchronization", "locality", "residual"}};
  if (!is_measured) lines.front().emplace_back("skew");
  std::string refused;
  for (const TaxRow& row : rows) {
    if (row.fault) {
      refused += "  " + row.schedule + "\n    fault: " + render(*row.fault) + "\n";
      continue;
    }
    if (row.refusal) {
      refused += "  " + row.schedule + "\n    " + print_diag(*row.refusal) + "\n";
      continue;
    }
    const Taxes& taxes = *row.taxes;
    lines.push_back({row.schedule, print_time(taxes.total), print_time(taxes.roofline),
                     print_time(taxes.launch), print_time(taxes.synchronization),
                     print_time(taxes.locality), print_time(taxes.residual)});
    if (!is_measured) lines.back().push_back(fmt::format("{:.2f}", taxes.skew_sensitivity));
  }
  std::string refitted;
  for (const TaxRow& row : rows) {
    for (const Refit& refit : row.refits)
      refitted += "  " + row.schedule + ": " + print(refit) + "\n";
  }
  std::string text;
  if (lines.size() > 1) text += print_table(lines);
  if (!refitted.empty()) text += "\nas the machine allows\n" + refitted;
  if (!refused.empty())
    text += (is_measured ? "\nnot measured\n" : "\nnot on this machine\n") + refused;
  return text;
}

Json to_json(const std::vector<Refit>& refits) {
  Json all = Json::array();
  for (const Refit& refit : refits) all.emplace_back(print(refit));
  return all;
}

Json to_json(const TaxRow& row) {
  Json json = Json::object();
  json["schedule"] = row.schedule;
  json["applies"] = row.taxes.has_value();
  if (row.fault) {
    json["fault"] = render(*row.fault);
    return json;
  }
  if (row.refusal) {
    json["code"] = info(row.refusal->code).name;
    json["reason"] = print_message(*row.refusal);
    return json;
  }
  const Taxes& taxes = *row.taxes;
  json["time_us"] = taxes.total.microseconds();
  json["roofline_us"] = taxes.roofline.microseconds();
  json["launch_us"] = taxes.launch.microseconds();
  json["synchronization_us"] = taxes.synchronization.microseconds();
  json["locality_us"] = taxes.locality.microseconds();
  json["residual_us"] = taxes.residual.microseconds();
  if (row.clock_uncertainty) {
    json["clock_uncertainty_us"] =
        std::chrono::duration<double, std::micro>(*row.clock_uncertainty).count();
  } else {
    json["skew_sensitivity"] = taxes.skew_sensitivity;
  }
  json["bound"] = row.bound;
  json["refits"] = to_json(row.refits);
  return json;
}

// The machine of a back end if none is named: on GPUs the default machine of the mesh.
Checked<std::optional<std::string>> machine_of(const CommandLine& line) {
  HP_TRY(const Backend backend, backend_of(line));
  if (backend == Backend::Cuda || line.has("machine")) return line.value("machine");
  return line.value("backend");
}

// How one schedule's taxes are made: simulated, or measured on GPUs.
Checked<TaxMaker> maker_of(const CommandLine& line, Session& session, Launch launch) {
  TaxRunRequest request;
  HP_TRY(request.backend, backend_request_of(line));
  if (request.backend.backend != Backend::Cuda) return simulated_taxes(session, launch);
  if (launch != Launch::Graph || line.has("report")) {
    return make_diag(DiagCode::I501, {{"missing",
                                       "taxes are measured of replayed graphs alone, and are not "
                                       "part of a page by `--report`"}});
  }
  if (const auto iterations = line.value("iters")) {
    HP_TRY(request.iterations, parse_count("--iters", *iterations, 1, kMostIterations));
  }
  if (const auto seed = line.value("seed")) {
    HP_TRY(const std::int64_t value,
           parse_count("--seed", *seed, 0, std::numeric_limits<std::int64_t>::max()));
    request.seed = static_cast<std::uint64_t>(value);
  }
  // A missing GPU is one error, not a refusal of each schedule.
  HP_TRY(const Gpus* const gpus, find_gpus());
  HP_REQUIRE_OK(gpus->count());
  return taxes_on_gpus(session, request);
}

// The page of the fastest schedule, compared with the next ones.
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
                                    " " + print_message(*row.refusal),
                                1});
    if (!row.taxes || source.plans.size() == kMostReported) continue;
    if (list.rows.size() > 1) request.schedule = row.schedule;
    HP_TRY(Plan plan, session.plan(request));
    source.title = plan.program.name + " on " + print_mesh_option(plan.mesh);
    HP_TRY(ReportedPlan reported,
           report_plan(row.schedule, std::move(plan), list.machine, options));
    source.plans.push_back(std::move(reported));
  }
  if (source.plans.empty()) return Ok{};
  HP_REQUIRE_OK(write_report(*path, source));
  announce(*path);
  return Ok{};
}

// The origin of the times.
struct Origin {
  Launch launch = Launch::Graph;
  bool is_measured = false;
};

std::string title_of(const Request& request, const TaxList& list, const Origin& origin) {
  std::string title = request.target;
  if (request.mesh) title += " on " + *request.mesh;
  if (!origin.is_measured) return title + ", machine " + list.machine.name + "\n";
  title += ", measured on GPUs, roofline of machine " + list.machine.name;
  std::chrono::nanoseconds uncertainty{0};
  for (const TaxRow& row : list.rows) {
    uncertainty = std::max(uncertainty, row.clock_uncertainty.value_or(uncertainty));
  }
  if (uncertainty.count() > 0) {
    title += ", clocks agree within " +
             print_seconds(std::chrono::duration<double>(uncertainty).count());
  }
  return title + "\n";
}

Checked<Ok> show_list(const CommandLine& line, const Request& request, const TaxList& list,
                      const Origin& origin) {
  Json all = Json::array();
  for (const TaxRow& row : list.rows) all.push_back(to_json(row));
  Json json = start_json(line);
  json["target"] = request.target;
  json["parameters"] = request.parameters;
  json["mesh"] = request.mesh ? Json(*request.mesh) : Json();
  json["machine"] = list.machine.name;
  json["inherited"] = list_inherited(list.machine);
  std::string error;
  if (origin.is_measured) {
    json["backend"] = "cuda";
  } else {
    json["error"] = error_to_json(list.machine, list.program);
    error = "error: " + print_prediction_error(list.machine, list.program) + "\n";
  }
  json["launch"] = origin.launch == Launch::Graph ? "graph" : "host";
  json["schedules"] = std::move(all);
  return show_results(line,
                      title_of(request, list, origin) + print_inherited(list.machine) + error +
                          print_rows_of(list.rows, origin.is_measured),
                      json);
}

}  // namespace

Checked<int> list_taxes_of(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(const std::optional<std::string> machine, machine_of(line));
  HP_TRY(const Launch launch, parse_launch(line.value("launch").value_or("graph")));
  HP_TRY(const TaxMaker make, maker_of(line, session, launch));
  HP_TRY(const Request request, request_of(line));
  HP_TRY(const Backend backend, backend_of(line));
  const bool is_measured = backend == Backend::Cuda;
  show_progress(is_measured ? "measuring" : "simulating");
  HP_TRY(const TaxList list, list_taxes(session, request, machine, make));
  HP_REQUIRE_OK(write_page(line, session, request, list, launch));
  HP_REQUIRE_OK(show_list(line, request, list, {.launch = launch, .is_measured = is_measured}));
  const bool has_fault =
      std::ranges::any_of(list.rows, [](const TaxRow& row) { return row.fault.has_value(); });
  return has_fault ? kFault : kDone;
}

}  // namespace harpe::cli
