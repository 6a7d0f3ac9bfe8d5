#include "profile/profile_host.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "compile/session.h"
#include "exec/cpu/cpu_executor.h"
#include "support/check.h"

namespace harpe {
namespace {

// The number of cores in a list such as "0-3,8-11"; 1 if the text is no list.
std::int64_t count_cores(const std::string& list) {
  std::istringstream ranges(list);
  std::int64_t count = 0;
  for (std::string range; std::getline(ranges, range, ',');) {
    std::istringstream ends(range);
    std::int64_t first = 0;
    std::int64_t last = 0;
    char dash = 0;
    ends >> first;
    count += ends >> dash >> last ? last - first + 1 : 1;
  }
  return std::max<std::int64_t>(1, count);
}

// A plan of many small tasks, whose computation takes no time compared with starting them.
Plan small_plan() {
  Session session(false);
  const Checked<Plan> plan = session.plan({.target = "ag_gemm",
                                           .parameters = {"m=16", "n=16", "k=16", "dtype=f32"},
                                           .mesh = "x=4",
                                           .schedule = "ring"});
  HP_CHECK(plan.ok(), "the plan that tasks are timed on: " + render(plan.error()));
  return *plan;
}

}  // namespace

CopyRate profile_copies(const ProfileCrew& crew, std::int64_t largest) {
  std::vector<std::vector<char>> sources;
  for (std::int64_t rank = 0; rank < crew.ranks; ++rank) {
    sources.emplace_back(static_cast<std::size_t>(largest), '\1');
  }
  std::vector<std::pair<double, double>> points;
  for (std::int64_t bytes = 4096; bytes <= largest; bytes *= 16) {
    const double seconds = crew.seconds_per_call([&](std::int64_t rank) -> ProfileBody {
      const char* const from = sources[static_cast<std::size_t>((rank + 1) % crew.ranks)].data();
      const auto count = static_cast<std::size_t>(bytes);
      const auto to = std::make_shared<std::vector<char>>(count);
      return [=] { std::memcpy(to->data(), from, count); };
    });
    points.emplace_back(static_cast<double>(bytes), seconds);
  }
  return fit_line(points);
}

double seconds_between_tasks() {
  const Plan plan = small_plan();
  Checked<std::unique_ptr<Executor>> executor = make_cpu_executor(plan, {});
  HP_CHECK(executor.ok(), "the plan that tasks are timed on: " + render(executor.error()));
  for (const char* const input : {"a", "b"}) {
    const HostTensor drawn = random_tensor(DType::F32, {16, 16}, 1, input);
    HP_CHECK((*executor)->set_input(input, drawn).ok(), "CPU ranks take their inputs");
  }
  std::vector<double> gaps;
  for (int run = 0; run < 20; ++run) {
    const Result<RunStats, FaultReport> stats = (*executor)->run({.iterations = 5, .trace = true});
    if (!stats.ok()) break;
    std::vector<TraceEvent> events = stats->trace;
    std::ranges::sort(events, {}, &TraceEvent::start);
    std::map<std::int64_t, std::chrono::nanoseconds> ends;  // by queue
    for (const TraceEvent& event : events) {
      const auto queue = plan.tasks[static_cast<std::size_t>(event.task.value)].queue.value;
      if (const auto last = ends.find(queue); last != ends.end()) {
        gaps.push_back(std::chrono::duration<double>(event.start - last->second).count());
      }
      ends[queue] = event.end;
    }
  }
  if (gaps.empty()) return 1e-6;
  // Most of the longer gaps are waits for other ranks.
  const auto quarter = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 4);
  std::ranges::nth_element(gaps, quarter);
  return std::max(1e-8, *quarter);
}

double bytes_of_cache() {
  double largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::int64_t kibibytes = 0;
    std::string sharers;
    std::ifstream(folder + "size") >> kibibytes;
    std::ifstream(folder + "shared_cpu_list") >> sharers;
    const auto count = static_cast<double>(count_cores(sharers));
    largest = std::max(largest, 1024.0 * static_cast<double>(kibibytes) / count);
  }
  return std::floor(largest);
}

}  // namespace harpe
