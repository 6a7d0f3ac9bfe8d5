#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>

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
  Json::Array outputs;
  for (const Comparison& one : report.outputs) {
    outputs.push_back(Json::object()
                          .set("buffer", one.buffer)
                          .set("error", one.error)
                          .set("bound", one.bound)
                          .set("passed", one.passed())
                          .set("rows", one.rows)
                          .set("checked", one.checked)
                          .set("at", Json::Array(one.at.begin(), one.at.end())));
  }
  return Json::object()
      .set("passed", report.passed())
      .set("sampled", report.sampled)
      .set("outputs", std::move(outputs));
}

}  // namespace

Json inputs_to_json(const CommandLine& line, const RunRequest& request) {
  Json files = Json::object();
  for (const NamedFile& file : request.inputs) files.set(file.name, file.path);
  Json inputs = subject_to_json(line);
  inputs.set("backend", print(request.backend.backend));
  if (request.backend.backend == Backend::Cpu) {
    inputs.set("cpu_kernels", request.backend.uses_libraries ? "libraries" : "own");
  }
  return inputs.set("seed", static_cast<std::int64_t>(request.seed))
      .set("iterations", request.iterations)
      .set("files", std::move(files));
}

void add_times(const RunStats& stats, Rows& rows) { rows.emplace_back("time", print_times(stats)); }

Json times_to_json(const RunStats& stats) {
  Json::Array times;
  for (const auto time : stats.iterations) {
    times.emplace_back(std::chrono::duration<double, std::micro>(time).count());
  }
  return {std::move(times)};
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
  json.set("network",
           Json::object()
               .set("hosts", hosts)
               .set("provider", request.backend.provider.value_or("tcp;ofi_rxm"))
               .set("puts", stats.puts)
               .set("bytes", stats.bytes)
               .set("planned_bytes", saturating_multiply(planned.bytes, request.iterations))
               .set("planned_bytes_of_busiest_rank",
                    saturating_multiply(planned.busiest_rank, request.iterations))
               .set("signals", stats.signals)
               .set("nic_fences", stats.nic_fences)
               .set("drains", stats.quiets)
               .set("stalled_us", stalled * 1e6));
}

void add_collectives(const RunStats& stats, Rows& rows, Json& json) {
  Json::Array uses;
  for (const CollectiveUse& use : stats.collectives) {
    const std::string operation(print(use.operation));
    rows.emplace_back(uses.empty() ? "collectives" : "",
                      fmt::format("{} {} by {}{}", use.count, operation, use.engine,
                                  use.reason.empty() ? "" : ": " + use.reason));
    uses.push_back(Json::object()
                       .set("operation", operation)
                       .set("engine", use.engine)
                       .set("reason", use.reason)
                       .set("count", use.count)
                       .set("bytes", use.bytes));
  }
  if (!uses.empty()) json.set("collectives", std::move(uses));
}

void add_check(const CheckReport& report, Rows& rows, Json& json) {
  for (const Comparison& one : report.outputs) {
    rows.emplace_back("check " + one.buffer, print_comparison(one));
  }
  json.set("check", to_json(report));
}

}  // namespace harpe::cli
