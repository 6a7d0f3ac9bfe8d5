#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/launch.h"
#include "cli/library_price.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/run_library.h"
#include "cli/run_report.h"
#include "cli/verbs.h"
#include "measure/library_run.h"
#include "report/report_run.h"
#include "run/hosts.h"
#include "run/run.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostSeed = std::numeric_limits<std::uint32_t>::max();

// `lose=TASK`, `stray=TASK`, `delay=SEED`, or `bug`, which breaks an invariant to test its report.
Checked<Ok> inject(const std::string& text, const Plan& plan, BackendRequest& backend) {
  static const std::vector<std::string> kFaults = {"lose", "stray", "delay", "bug"};
  HP_CHECK(text != "bug", "injected");
  const std::size_t end = text.find('=');
  const std::string name = text.substr(0, end);
  const std::string value = end == std::string::npos ? "" : text.substr(end + 1);
  if ((name == "lose" || name == "stray") && end != std::string::npos) {
    HP_TRY(const std::int64_t task, parse_count("--inject " + name, value, 0,
                                                static_cast<std::int64_t>(plan.tasks.size()) - 1));
    if (name == "stray" && backend.backend != Backend::Cuda) {
      return make_diag(
          DiagCode::U109,
          {{"flag", "--inject"}, {"text", text}, {"wanted", "given with `--backend cuda`"}});
    }
    (name == "lose" ? backend.lose_at : backend.stray_at) = TaskId(task);
    return Ok{};
  }
  if (name == "delay" && end != std::string::npos) {
    HP_TRY(const std::int64_t seed, parse_count("--inject delay", value, 0, kMostSeed));
    backend.delay_seed = static_cast<std::uint32_t>(seed);
    return Ok{};
  }
  return make_diag(DiagCode::U117, {{"text", text}, {"hint", suggestion(name, kFaults)}});
}

Checked<bool> parse_cpu_kernels(const std::string& text) {
  static const std::vector<std::string> kKernels = {"libraries", "own"};
  if (text == kKernels[0] || text == kKernels[1]) return text == kKernels[0];
  return make_diag(DiagCode::U109, {{"flag", "--cpu-kernels"},
                                    {"text", text},
                                    {"wanted", "libraries or own" + suggestion(text, kKernels)}});
}

Checked<RunRequest> run_request_of(const CommandLine& line) {
  RunRequest request;
  HP_TRY(request.inputs, parse_named_files("--input", line.values("input")));
  HP_TRY(request.outputs, parse_named_files("--output", line.values("output")));
  if (const auto seed = line.value("seed")) {
    HP_TRY(const std::int64_t value,
           parse_count("--seed", *seed, 0, std::numeric_limits<std::int64_t>::max()));
    request.seed = static_cast<std::uint64_t>(value);
  }
  if (const auto iterations = line.value("iters")) {
    HP_TRY(request.iterations, parse_count("--iters", *iterations, 1, kMostIterations));
  }
  if (const auto wait = line.value("wait")) {
    HP_TRY(const std::int64_t value, parse_count("--wait", *wait, 1, kLongestWait));
    request.wait_limit = std::chrono::milliseconds(value);
  }
  HP_TRY(request.backend, backend_request_of(line));
  HP_TRY(request.backend.launch, launch_of_environment());
  if (request.backend.launch) {
    processes::Launch& launch = *request.backend.launch;
    if (!request.backend.interface.empty()) launch.interface = request.backend.interface;
    launch.arrival = std::max(launch.arrival, request.wait_limit);
  } else if (const auto hosts = line.value("hosts")) {
    return make_diag(DiagCode::U109,
                     {{"flag", "--hosts"}, {"text", *hosts}, {"wanted", "given with `--launch`"}});
  }
  request.backend.wait_limit = request.wait_limit;
  request.backend.warn = print_warning;
  if (const auto kernels = line.value("cpu-kernels")) {
    HP_TRY(request.backend.uses_libraries, parse_cpu_kernels(*kernels));
  }
  request.load = line.value("load");
  request.check = line.has("check");
  request.trace = line.value("trace");
  request.report = line.value("report");
  return request;
}

// On several hosts the request's plan sends by proxy what crosses hosts.
Checked<FittedPlan> plan_to_run(Session& session, const Request& subject,
                                const BackendRequest& backend) {
  if (backend.backend == Backend::Cpu && backend.launch && backend.launch->hosts() > 1) {
    return plan_for_hosts(session, subject, *backend.launch);
  }
  FittedPlan fitted;
  HP_TRY(fitted.plan, session.plan(subject));
  return fitted;
}

// Prints the result of a run without faults, in every requested form.
Checked<int> show_outcome(const CommandLine& line, const FittedPlan& fitted,
                          const RunRequest& request, const RunOutcome& outcome,
                          const std::optional<LibraryPrice>& libraries) {
  announce_files_of(line, "trace");
  announce_files_of(line, "output");
  const Plan& plan = fitted.plan;
  const PlanSummary summary = summarise(plan);
  Rows rows = plan_rows(summary);
  if (request.backend.target != request.backend.backend) {
    rows.emplace_back("launches", "of h200, on CPU ranks");
  }
  for (const Refit& refit : fitted.refits) rows.emplace_back("sent", print(refit));
  if (outcome.stats.bytes_moved != summary.bytes_moved) {
    rows.emplace_back("sent", print_bytes(outcome.stats.bytes_moved) + " under this routing");
  }
  add_times(outcome.stats, rows);
  add_libraries(libraries, rows);
  const auto uncertainty = outcome.stats.clock_uncertainty;
  if (uncertainty.count() > 0) {
    rows.emplace_back(
        "clocks",
        "agree within " + print_seconds(std::chrono::duration<double>(uncertainty).count()));
  }
  Json json = start_json(line);
  add_plan(json, summary);
  json["inputs"] = inputs_to_json(line, request);
  json["target"] = request.backend.target == Backend::Cuda ? "h200" : "cpu";
  json["time_us"] = times_to_json(outcome.stats);
  json["bytes_sent"] = outcome.stats.bytes_moved;
  json["library_price"] = price_to_json(libraries);
  if (uncertainty.count() > 0) {
    json["clock_uncertainty_us"] = std::chrono::duration<double, std::micro>(uncertainty).count();
  }
  if (outcome.stats.network) {
    add_network(*outcome.stats.network, request, plan, rows, json);
  }
  add_collectives(outcome.stats, rows, json);
  if (outcome.check) add_check(*outcome.check, rows, json);
  HP_REQUIRE_OK(show_results(line, print_title(summary) + print_rows(rows), json));
  if (request.report) {
    HP_REQUIRE_OK(
        write_run_report(*request.report, {.title = summary.program + " on " + summary.mesh,
                                           .command = print_command(line),
                                           .version = HARPE_VERSION,
                                           .plan = &plan,
                                           .outcome = &outcome,
                                           .backend = request.backend.backend}));
    announce(*request.report);
  }
  if (outcome.check && !outcome.check->passed()) return failure_of(*outcome.check);
  return kDone;
}

// Of several processes the first one reports, since it receives the others' reports. If it has
// exited, the others report what they know.
bool is_told_by_first(const FaultReport& report) {
  return std::ranges::none_of(report, [](const Fault& fault) {
    return fault.kind == FaultKind::PeerLost && fault.rank == RankId(0);
  });
}

// Other refusals are equal in every process, so the first one reports them.
bool is_of_one_process(DiagCode code) {
  switch (code) {
    case DiagCode::N002:
    case DiagCode::N010:
    case DiagCode::N011:
    case DiagCode::N012:
    case DiagCode::N013:
    case DiagCode::N014:
    case DiagCode::N020:
    case DiagCode::N021:
    case DiagCode::N022:
    case DiagCode::X018:
      return true;
    default:
      return false;
  }
}

void progress(const RunRequest& request, std::string_view text) {
  if (is_first(request.backend)) show_progress(text);
}

Checked<int> run_as_asked(const CommandLine& line, Session& session, RunRequest request) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(Request subject, request_of(line));
  subject.site = find_site(request.backend.backend);
  HP_TRY(const std::optional<int> status, run_by_libraries(line, session, subject, request));
  if (status) return *status;
  progress(request, "lowering");
  HP_TRY(const FittedPlan fitted, plan_to_run(session, subject, request.backend));
  const Plan& plan = fitted.plan;
  if (const auto fault = line.value("inject")) {
    HP_REQUIRE_OK(inject(*fault, plan, request.backend));
  }
  progress(request, "verifying");
  HP_REQUIRE_OK(certify(plan, level_for(plan)));
  HP_TRY(const TensorMap inputs, prepare_run(plan, request));
  progress(request, "running");
  request.progress = [&](std::int64_t done, std::int64_t of) {
    progress(request, fmt::format("running: {} of {} steps", done, of));
    return true;
  };
  HP_TRY(const RunOutcome outcome, run(plan, request, inputs));
  if (outcome.fault) {
    if (is_first(request.backend) || !is_told_by_first(*outcome.fault)) {
      print_error("fault: " + print_title(summarise(plan)) + render(*outcome.fault));
    }
    return kFault;
  }
  if (!is_first(request.backend)) return kDone;
  return show_outcome(line, fitted, request, outcome, price_beside(session, subject, plan));
}

}  // namespace

Checked<int> run_plan(const CommandLine& line, Session& session) {
  if (const auto ranks = line.value("launch")) {
    HP_REQUIRE_OK(check_launch_by_libraries(line));
    return launch_ranks(line, *ranks);
  }
  HP_TRY(const RunRequest request, run_request_of(line));
  Checked<int> status = run_as_asked(line, session, request);
  if (status.ok() || is_first(request.backend) || is_of_one_process(status.error().code)) {
    return status;
  }
  return exit_status_of(status.error());
}

}  // namespace harpe::cli
