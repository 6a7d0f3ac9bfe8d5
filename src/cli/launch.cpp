#include "cli/launch.h"

#include <algorithm>
#include <cstring>

#include "cli/flag_values.h"
#include "cli/processes.h"
#include "cli/request.h"
#include "cli/terminal.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostLaunched = 1024;
constexpr std::int64_t kUsualWait = 10'000;  // milliseconds; the default of RunRequest
// Time after the last wait has expired. With the time between SIGTERM and SIGKILL, no process
// outlives its waits by more than 2 s.
constexpr std::chrono::milliseconds kToReport{1'500};

// The command line without the flags that start processes.
std::vector<std::string> arguments_of(const CommandLine& line) {
  std::vector<std::string> arguments = {line.verb};
  arguments.insert(arguments.end(), line.words.begin(), line.words.end());
  for (const auto& [flag, values] : line.flags) {
    if (flag == "launch" || flag == "hosts") continue;
    for (const std::string& value : values) arguments.push_back("--" + flag + "=" + value);
  }
  return arguments;
}

std::string tell(const ProcessEnd& end) {
  const std::string who = "the process of rank " + std::to_string(end.rank);
  if (end.was_stopped) return who + " did not end by itself, and was stopped";
  return who + " ended first: killed by signal " + std::to_string(*end.signal) + " (" +
         ::strsignal(*end.signal) + ")";
}

// The exit status of the first process that failed. A fault comes first, because failures of other
// processes may follow from it.
int status_of(const std::vector<ProcessEnd>& ends) {
  const auto is_fault = [](const ProcessEnd& end) { return end.signal || end.status == kFault; };
  if (std::ranges::any_of(ends, is_fault)) return kFault;
  const auto bad =
      std::ranges::find_if(ends, [](const ProcessEnd& end) { return end.status != 0; });
  return bad == ends.end() ? kDone : bad->status;
}

}  // namespace

Checked<int> launch_ranks(const CommandLine& line, const std::string& ranks) {
  LaunchRequest request{.arguments = arguments_of(line)};
  HP_TRY(const std::int64_t count, parse_count("--launch", ranks, 1, kMostLaunched));
  const std::string hosts = line.value("hosts").value_or("1");
  HP_TRY(const std::int64_t host_count, parse_count("--hosts", hosts, 1, count));
  if (count % host_count != 0) {
    return make_diag(DiagCode::U109, {{"flag", "--hosts"},
                                      {"text", hosts},
                                      {"wanted", "a divisor of `--launch`, which is " + ranks}});
  }
  request.hosts = static_cast<int>(host_count);
  const std::string limit = line.value("wait").value_or(std::to_string(kUsualWait));
  HP_TRY(const std::int64_t wait, parse_count("--wait", limit, 1, kLongestWait));
  request.ranks = static_cast<int>(count);
  request.grace = std::chrono::milliseconds(wait) + kToReport;
  HP_TRY(const std::vector<ProcessEnd> ends, start_processes(request));
  bool is_told = false;  // only the first killed process is reported; others end because of it
  for (const ProcessEnd& end : ends) {
    if (!end.was_stopped && (!end.signal || is_told)) continue;
    is_told = true;
    print_error("fault: " + tell(end) + "\n");
  }
  return status_of(ends);
}

}  // namespace harpe::cli
