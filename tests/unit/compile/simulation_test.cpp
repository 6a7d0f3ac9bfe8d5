#include "compile/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "compile/launches.h"
#include "compile/machines.h"
#include "exec/describe.h"
#include "io/trace.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

Request request(const std::string& target, const std::vector<std::string>& parameters,
                const std::string& mesh, const std::optional<std::string>& schedule) {
  return {
      .target = target, .parameters = parameters, .inputs = {}, .mesh = mesh, .schedule = schedule};
}

struct Slice {
  double begin = 0;
  double end = 0;
};

// Slices by process and thread, in order.
std::map<std::pair<int, int>, std::vector<Slice>> slices_of(const nlohmann::json& trace) {
  std::map<std::pair<int, int>, std::vector<Slice>> slices;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"].get<double>();
    slices[{event["pid"].get<int>(), event["tid"].get<int>()}].push_back(
        {begin, begin + event["dur"].get<double>()});
  }
  for (auto& [thread, all] : slices) std::ranges::sort(all, {}, &Slice::begin);
  return slices;
}

// Puts of one proxy overlap in time, but a viewer shows only one slice of a thread at a time.
TEST(SimulationTrace, no_two_slices_of_a_thread_overlap) {
  Session session(false);
  const Machine machine = *load_machine("h200x8x2");
  const Checked<FittedPlan> fitted = plan_for(
      session,
      request("attention", {"seq=65536", "heads=8", "batch=2"}, "node=2,gpu=8", "double_ring"),
      machine);
  ASSERT_TRUE(fitted.ok()) << render(fitted.error());
  const Simulation simulation =
      *simulate(fitted->plan, launches_on(fitted->plan, machine), machine);
  const Scratch scratch;
  ASSERT_TRUE(write_trace(scratch.path("t.json"), fitted->plan, simulation).ok());
  const nlohmann::json trace = nlohmann::json::parse(scratch.read("t.json"));
  std::size_t tasks = 0;
  for (const auto& [thread, slices] : slices_of(trace)) {
    tasks += slices.size();
    for (std::size_t i = 1; i < slices.size(); ++i) {
      EXPECT_LE(slices[i - 1].end, slices[i].begin + 1e-6);
    }
  }
  EXPECT_EQ(tasks, fitted->plan.tasks.size());
}

TEST(SimulationTrace, every_arrow_leads_from_a_slice_to_a_slice) {
  Session session(false);
  const Machine machine = *load_machine("h200x8");
  const Checked<FittedPlan> fitted =
      plan_for(session, request("attention", {"seq=65536", "heads=8"}, "cp=8", "ulysses"), machine);
  ASSERT_TRUE(fitted.ok()) << render(fitted.error());
  const Scratch scratch;
  const Simulation simulation =
      *simulate(fitted->plan, launches_on(fitted->plan, machine), machine);
  ASSERT_TRUE(write_trace(scratch.path("t.json"), fitted->plan, simulation).ok());
  const nlohmann::json trace = nlohmann::json::parse(scratch.read("t.json"));
  const auto slices = slices_of(trace);
  std::map<int, int> ends;  // of arrows, by id
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    ends[event["id"].get<int>()] += event["ph"] == "s" ? 1 : 10;
    const double time = event["ts"].get<double>();
    const auto& thread = slices.at({event["pid"].get<int>(), event["tid"].get<int>()});
    EXPECT_TRUE(std::ranges::any_of(thread, [&](const Slice& slice) {
      return slice.begin <= time + 1e-6 && time <= slice.end + 1e-6;
    }));
  }
  EXPECT_FALSE(ends.empty());
  for (const auto& [id, count] : ends) EXPECT_EQ(count, 11) << id;
}

// A task's waiting ends where the task begins, on the task's own thread.
TEST(RunTrace, shows_waiting_as_a_slice_before_the_task) {
  Session session(false);
  const Checked<Plan> plan = session.plan(request("gemm", {"m=64", "n=64", "k=64"}, "x=2", "ring"));
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  using std::chrono::nanoseconds;
  const std::vector<TraceEvent> events = {
      {.task = TaskId(0), .start = nanoseconds(0), .end = nanoseconds(500)},
      {.task = TaskId(1),
       .start = nanoseconds(4000),
       .end = nanoseconds(9000),
       .waited = nanoseconds(3000)}};
  const Scratch scratch;
  ASSERT_TRUE(write_trace(scratch.path("t.json"), *plan, events).ok());
  const nlohmann::json trace = nlohmann::json::parse(scratch.read("t.json"));
  std::vector<nlohmann::json> slices;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices.push_back(event);
  }
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[1]["name"], "wait");
  EXPECT_EQ(slices[1]["ts"], 1.0);
  EXPECT_EQ(slices[1]["dur"], 3.0);
  EXPECT_EQ(slices[2]["ts"], 4.0);
  EXPECT_EQ(slices[1]["tid"], slices[2]["tid"]);
  EXPECT_EQ(slices[1]["args"]["task"], slices[2]["args"]["task"]);
}

TEST(RunTrace, counts_blocks_that_stand_still_by_rank) {
  Session session(false);
  const Checked<Plan> plan = session.plan(request("gemm", {"m=64", "n=64", "k=64"}, "x=2", "ring"));
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  const auto of_rank = [&](std::int64_t rank) {
    std::int64_t task = 0;
    while (rank_of(*plan, TaskId(task)) != RankId(rank)) ++task;
    return TaskId(task);
  };
  using std::chrono::nanoseconds;
  const auto stand = [&](std::int64_t rank, int start, int end) {
    return KernelEvent{.kernel = of_rank(rank),
                       .part = KernelPart::Stand,
                       .copies = false,
                       .start = nanoseconds(start),
                       .end = nanoseconds(end)};
  };
  const Scratch scratch;
  ASSERT_TRUE(write_trace(scratch.path("t.json"), *plan, {},
                          {stand(1, 2000, 5000), stand(0, 1000, 4000), stand(1, 3000, 5000)})
                  .ok());
  const nlohmann::json trace = nlohmann::json::parse(scratch.read("t.json"));
  std::vector<std::string> counts;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "blocks standing still");
    EXPECT_EQ(event["args"]["copying"], 0);
    counts.push_back(event["pid"].dump() + " " + event["ts"].dump() + " " +
                     event["args"]["multiplying"].dump());
  }
  EXPECT_EQ(counts,
            (std::vector<std::string>{"0 1.0 1", "0 4.0 0", "1 2.0 1", "1 3.0 2", "1 5.0 0"}));
}

TEST(Taxes, of_all_schedules_are_listed_fastest_first) {
  Session session(false);
  const Checked<TaxList> list = list_taxes(
      session, request("attention", {"seq=65536", "heads=8"}, "node=2,gpu=4", std::nullopt),
      "h200x8x2", simulated_taxes(session, Launch::Graph));
  ASSERT_TRUE(list.ok()) << render(list.error());
  ASSERT_GT(list->rows.size(), 5U);
  for (std::size_t i = 1; i < list->rows.size(); ++i) {
    const auto& before = list->rows[i - 1];
    const auto& after = list->rows[i];
    if (!after.taxes) continue;
    ASSERT_TRUE(before.taxes.has_value());
    EXPECT_LE(before.taxes->total, after.taxes->total);
  }
}

TEST(PlanFor, moves_between_hosts_go_as_the_machine_allows) {
  Session session(false);
  const Checked<FittedPlan> fitted = plan_for(
      session, request("attention", {"seq=65536", "heads=8"}, "node=2,gpu=8", "double_ring"),
      *load_machine("h200x8x2"));
  ASSERT_TRUE(fitted.ok()) << render(fitted.error());
  ASSERT_EQ(fitted->refits.size(), 2U);
  EXPECT_EQ(print(fitted->refits[0]), "k over node by proxy instead of ce");
  std::int64_t puts = 0;
  for (const Task& task : fitted->plan.tasks) puts += is_put(fitted->plan, task) ? 1 : 0;
  EXPECT_GT(puts, 0);
}

}  // namespace
}  // namespace harpe
