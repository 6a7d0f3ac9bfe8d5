#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "run/hosts.h"
#include "support/print_bytes.h"
#include "support/units.h"

namespace harpe::cli {
namespace {

std::string print_times(const RunStats& stats) {
  std::vector<double> seconds;
  for (const auto time : stats.iterations) {
    seconds.push_back(std::chrono::duration<double>(time).count());
  }
  std::ranges::sort(seconds);
  if (seconds.size() == 1) return print_seconds(seconds.front());
  return fmt::format("{} median of {}, {} to {}", print_seconds(seconds[seconds.size() / 2]),
                     seconds.size(), print_seconds(seconds.front()), print_seconds(seconds.back()));
}

std::string print_comparison(const Comparison& one) {
  return fmt::format("error {:.2e}, bound {:.2e}{}", one.error, one.bound,
                     one.checked == one.rows
                         ? ""
                         : fmt::format(", {} of {} rows sampled, block borders among them",
                                       one.checked, one.rows));
}

Json to_json(const CheckReport& report) {
  Json outputs = Json::array();
  for (const Comparison& one : report.outputs) {
    outputs.push_back(Json{{"buffer", one.buffer},
                           {"error", one.error},
                           {"bound", one.bound},
                           {"passed", one.passed()},
                           {"rows", one.rows},
                           {"checked", one.checked},
                           {"at", one.at}});
  }
  return {
      {"passed", report.passed()}, {"sampled", report.sampled}, {"outputs", std::move(outputs)}};
}

}  // namespace

Json inputs_to_json(const CommandLine& line, const RunRequest& request) {
  Json files = Json::object();
  for (const NamedFile& file : request.inputs) files[file.name] = file.path;
  Json inputs = subject_to_json(line);
  inputs["backend"] = print(request.backend.backend);
  if (request.backend.backend == Backend::Cpu) {
    inputs["cpu_kernels"] = request.backend.uses_libraries ? "libraries" : "own";
  }
  inputs["seed"] = static_cast<std::int64_t>(request.seed);
  inputs["iterations"] = request.iterations;
  inputs["files"] = std::move(files);
  return inputs;
}

void add_times(const RunStats& stats, Rows& rows) { rows.emplace_back("time", print_times(stats)); }

Json times_to_json(const RunStats& stats) {
  Json times = Json::array();
  for (const auto time : stats.iterations) {
    times.emplace_back(std::chrono::duration<double, std::micro>(time).count());
  }
  return times;
}

void add_network(const NetworkStats& stats, const RunRequest& request, const Plan& plan, Rows& rows,
                 Json& json) {
  const int hosts = request.backend.launch->hosts();
  const HostTraffic planned = traffic_between(plan, hosts);
  const double stalled = std::chrono::duration<double>(stats.stalled).count();
  rows.emplace_back("hosts",
                    fmt::format("{}; {} between them in an execution, planned {}, of the "
                                "busiest rank {}",
                                hosts, print_bytes(stats.bytes / request.iterations),
                                print_bytes(planned.bytes), print_bytes(planned.busiest_rank)));
  rows.emplace_back("network",
                    fmt::format("{} puts, {} signals, {} ordering points, {} by the NIC; "
                                "proxies waited {}",
                                stats.puts, stats.signals, stats.quiets, stats.nic_fences,
                                print_seconds(stalled)));
  json["network"] = Json{{"hosts", hosts},
                         {"provider", request.backend.provider.value_or("tcp;ofi_rxm")},
                         {"puts", stats.puts},
                         {"bytes", stats.bytes},
                         {"planned_bytes", saturating_multiply(planned.bytes, request.iterations)},
                         {"planned_bytes_of_busiest_rank",
                          saturating_multiply(planned.busiest_rank, request.iterations)},
                         {"signals", stats.signals},
                         {"nic_fences", stats.nic_fences},
                         {"drains", stats.quiets},
                         {"stalled_us", stalled * 1e6}};
}

void add_collectives(const RunStats& stats, Rows& rows, Json& json) {
  Json uses = Json::array();
  for (const CollectiveUse& use : stats.collectives) {
    const std::string operation(print(use.operation));
    rows.emplace_back(uses.empty() ? "collectives" : "",
                      fmt::format("{} {} by {}{}", use.count, operation, use.engine,
                                  use.reason.empty() ? "" : ": " + use.reason));
    uses.push_back(Json{{"operation", operation},
                        {"engine", use.engine},
                        {"reason", use.reason},
                        {"count", use.count},
                        {"bytes", use.bytes}});
  }
  if (!uses.empty()) json["collectives"] = std::move(uses);
}

void add_check(const CheckReport& report, Rows& rows, Json& json) {
  for (const Comparison& one : report.outputs) {
    rows.emplace_back("check " + one.buffer, print_comparison(one));
  }
  json["check"] = to_json(report);
}

}  // namespace harpe::cli
