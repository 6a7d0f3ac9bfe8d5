// The overhead of spreading an operator over P ranks: the total CPU time of the plan over that of
// the same operator on one rank, with the same tile kernels, measured alternately in one process.
// Also the time to make a plan: lowering, the launch plan for GPUs, and the proofs of both.
//
//   plan_bench [--rounds N] [--json FILE] [--planned TEXT]
//
// With --planned it makes plans only: those whose operator, parameters, mesh and schedule contain
// TEXT, such as "x=64 ulysses".
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compile/catalogue.h"
#include "compile/certify_launches.h"
#include "compile/launches.h"
#include "compile/session.h"
#include "exec/cpu/cpu_executor.h"
#include "run/run.h"
#include "verify/verify.h"

namespace harpe {
namespace {

struct Case {
  std::string target;
  std::vector<std::string> parameters;
  std::vector<std::string> schedules;
  double limit;  // the goal
};

const std::vector<Case> kCases = {
    {"attention",
     {"seq=4096", "heads=8", "kv_heads=8", "head_dim=128"},
     {"allgather", "ring", "ulysses"},
     1.15},
    {"attention",
     {"seq=4096", "heads=8", "kv_heads=8", "head_dim=128", "causal=true"},
     {"zigzag_ring", "allgather"},
     1.15},
    {"ag_gemm", {"m=2048", "n=2048", "k=2048"}, {"bulk", "ring", "fetch"}, 1.15},
    {"gemm_rs", {"m=2048", "n=2048", "k=2048"}, {"bulk", "ring", "push"}, 1.35},
    {"gemm_ar", {"m=2048", "n=2048", "k=2048"}, {"bulk"}, 1.35},
};

template <class T>
T expect(Checked<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", render(result.error()));
    std::exit(1);
  }
  return std::move(result).value();
}

class Runner {
 public:
  explicit Runner(const Request& request) {
    Session session(false);
    const Plan plan = expect(session.plan(request));
    expect(verify(plan));
    executor_ = expect(make_cpu_executor(plan, {.runner = QueueRunner::Pool, .workers = 1}));
    for (const auto& [name, tensor] : expect(prepare_run(plan, RunRequest()))) {
      (void)executor_->set_input(name, tensor).value();
    }
    run();  // warm caches and scratch
  }

  void run() {
    const auto stats = executor_->run({.iterations = 1, .wait_limit = std::chrono::minutes(5)});
    if (!stats.ok()) {
      fmt::print(stderr, "{}\n", render(stats.error()));
      std::exit(3);
    }
    seconds_.push_back(std::chrono::duration<double>(stats->cpu_time).count());
  }

  [[nodiscard]] double median() const {
    std::vector<double> sorted(seconds_.begin() + 1, seconds_.end());
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }

 private:
  std::unique_ptr<Executor> executor_;
  std::vector<double> seconds_;
};

std::string words(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

nlohmann::json compare(const Case& shape, const std::string& dtype, int rounds) {
  nlohmann::json rows = nlohmann::json::array();
  std::vector<std::string> parameters = shape.parameters;
  parameters.push_back("dtype=" + dtype);
  Request one{.target = shape.target, .parameters = parameters, .mesh = "x=1", .schedule = "auto"};
  for (const std::string& schedule : shape.schedules) {
    for (const int ranks : {2, 4, 8}) {
      Request many = one;
      many.mesh = fmt::format("x={}", ranks);
      many.schedule = schedule;
      Runner alone(one);
      Runner spread(many);
      for (int round = 0; round < rounds; ++round) {
        alone.run();
        spread.run();
      }
      const double ratio = spread.median() / alone.median();
      fmt::print("{:10} {:62} {:12} {} ranks  {:8.1f} ms / {:8.1f} ms = {:.3f}  {}\n", shape.target,
                 words(parameters), schedule, ranks, spread.median() * 1e3, alone.median() * 1e3,
                 ratio, ratio <= shape.limit ? "" : fmt::format("above {}", shape.limit));
      rows.push_back({{"operator", shape.target},
                      {"parameters", words(parameters)},
                      {"schedule", schedule},
                      {"ranks", ranks},
                      {"cpu_ms", spread.median() * 1e3},
                      {"one_rank_ms", alone.median() * 1e3},
                      {"ratio", ratio},
                      {"goal", shape.limit}});
    }
  }
  return rows;
}

// The minimum over several rounds, in milliseconds of this process's CPU time, so that other
// programs do not count.
struct PlanningTimes {
  double lower = 1e30;
  double verify = 1e30;
  double launches = 1e30;
  double verify_launches = 1e30;
};

template <class Make>
auto time_least(double& least, const Make& make) {
  const std::clock_t start = std::clock();
  auto made = expect(make());
  least = std::min(least, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  return made;
}

nlohmann::json time_planning(const Request& request, const std::string& name, int rounds) {
  Session session(false);
  const Scheduled scheduled = expect(session.schedule(request));
  PlanningTimes times;
  std::size_t tasks = 0;
  for (int round = 0; round < rounds; ++round) {
    const Plan plan = time_least(times.lower, [&] { return session.lower(scheduled); });
    time_least(times.verify, [&] { return verify(plan); });
    const launch::LaunchPlan launches =
        time_least(times.launches, [&] { return make_gpu_launches(plan); });
    time_least(times.verify_launches, [&] { return prove_if_modelled(plan, launches); });
    tasks = plan.tasks.size();
  }
  fmt::print(
      "plan {:76} {:6} tasks  lower {:7.2f} ms  verify {:7.2f} ms  launches {:7.2f} ms  "
      "verify {:7.2f} ms\n",
      name, tasks, times.lower, times.verify, times.launches, times.verify_launches);
  std::fflush(stdout);
  return {{"operator", request.target},
          {"parameters", words(request.parameters)},
          {"mesh", *request.mesh},
          {"schedule", *request.schedule},
          {"tasks", tasks},
          {"lower_ms", times.lower},
          {"verify_ms", times.verify},
          {"launches_ms", times.launches},
          {"verify_launches_ms", times.verify_launches}};
}

struct Planned {
  const char* target;
  std::vector<std::string> parameters;
};

const std::vector<Planned> kPlanned = {
    {"gemm", {"m=65536", "n=65536", "k=65536"}},
    {"ag_gemm", {"m=65536", "n=65536", "k=8192"}},
    {"gemm_rs", {"m=65536", "n=8192", "k=65536"}},
    {"gemm_ar", {"m=65536", "n=8192", "k=65536"}},
    {"attention", {"seq=65536", "heads=64", "kv_heads=64"}},
    {"attention", {"seq=65536", "heads=64", "kv_heads=64", "causal=true"}},
    {"attention_bwd", {"seq=65536", "heads=64", "kv_heads=64", "causal=true"}},
    {"decode", {"kv=65536", "heads=64", "kv_heads=64"}},
    {"moe", {"tokens=4096", "experts=64"}},
};

// Every named schedule that applies, on 8 and on 64 ranks.
nlohmann::json time_all_planning(int rounds, const std::string& filter) {
  nlohmann::json rows = nlohmann::json::array();
  Session session(false);
  for (const int ranks : {8, 64}) {
    for (const auto& [target, parameters] : kPlanned) {
      Request request{.target = target,
                      .parameters = parameters,
                      .mesh = fmt::format("x={}", ranks),
                      .schedule = {}};
      for (const ScheduleEntry& entry : expect(list_schedules(session, request)).entries) {
        const std::string name =
            fmt::format("{} {} {} {}", target, words(parameters), *request.mesh, entry.name);
        if (entry.refusal || name.find(filter) == std::string::npos) continue;
        request.schedule = entry.name;
        rows.push_back(time_planning(request, name, rounds));
      }
    }
  }
  return rows;
}

int run_all(int rounds, const std::string& json_file, const std::optional<std::string>& planned) {
  nlohmann::json out = {{"schema", 1}, {"rounds", rounds}};
  out["planning"] = time_all_planning(rounds, planned.value_or(""));
  for (const Case& shape : kCases) {
    if (planned) break;
    for (const char* dtype : {"bf16", "f32"}) {
      for (const auto& row : compare(shape, dtype, rounds)) out["spreading"].push_back(row);
    }
  }
  if (!json_file.empty()) std::ofstream(json_file) << out.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace harpe

int main(int argc, char** argv) {
  int rounds = 5;
  std::string json_file;
  std::optional<std::string> planned;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
    if (std::string(argv[i]) == "--json") json_file = argv[i + 1];
    if (std::string(argv[i]) == "--planned") planned = argv[i + 1];
  }
  return harpe::run_all(rounds, json_file, planned);
}
