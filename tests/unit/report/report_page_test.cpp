#include "report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compile/machines.h"
#include "compile/tune.h"
#include "report/report_run.h"
#include "report/report_timeline.h"
#include "tests/support/plans.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kSizes = {"seq=4096", "heads=8", "causal=true"};

Machine h200() { return load_machine("h200x8").value(); }

ReportedPlan reported(const Machine& machine, const std::string& schedule) {
  return report_plan(schedule, make_plan("attention", kSizes, "cp=4", schedule), machine, {})
      .value();
}

ReportPage page_of(const Machine& machine, const std::vector<std::string>& schedules) {
  ReportSource source{.title = "attention on cp=4", .machine = &machine};
  for (const std::string& schedule : schedules) {
    source.plans.push_back(reported(machine, schedule));
  }
  return make_report_page(source);
}

Tuned tuned(const std::optional<std::string>& cache = std::nullopt) {
  Session session(false, [](const Diag& diag) { ADD_FAILURE() << render(diag); });
  TuneRequest request;
  request.subject = {.target = "attention", .parameters = kSizes, .mesh = "cp=4", .cache = cache};
  return tune(session, request).value();
}

TEST(ReportPageOfPlans, has_every_task_where_it_ran) {
  const Machine machine = h200();
  const ReportedPlan plan = reported(machine, "ring");
  const ReportPage page = page_of(machine, {"ring"});
  ASSERT_EQ(page.timeline->tasks.size(), plan.plan.tasks.size());
  std::set<std::int32_t> ids;
  for (const PageTask& task : page.timeline->tasks) {
    const Span& span = plan.simulation.tasks[static_cast<std::size_t>(task.id)];
    EXPECT_EQ(task.begin, span.begin);
    EXPECT_EQ(task.end, span.end);
    EXPECT_EQ(page.timeline->queues[static_cast<std::size_t>(task.queue)].rank,
              plan.plan.queues[plan.plan.tasks[static_cast<std::size_t>(task.id)].queue.index()]
                  .rank.value);
    if (task.cause >= 0) {
      EXPECT_EQ(page.timeline->tasks[static_cast<std::size_t>(task.cause)].id, span.cause);
    }
    ids.insert(task.id);
  }
  EXPECT_EQ(ids.size(), plan.plan.tasks.size());
}

TEST(ReportPageOfPlans, names_tasks_by_what_they_work_on) {
  const Machine machine = h200();
  const ReportPage page = page_of(machine, {"ring"});
  std::set<std::string> names;
  for (const PageTask& task : page.timeline->tasks) names.insert(task.name);
  EXPECT_TRUE(names.contains("fwd q0=3 k0=1"));
  EXPECT_TRUE(names.contains("finalise o, lse q0=2"));
  EXPECT_TRUE(names.contains("k k0=1 < 1") || names.contains("k, v k0=1 < 1"));
}

TEST(ReportPageOfPlans, divides_all_of_each_plans_time) {
  const Machine machine = h200();
  const ReportPage page = page_of(machine, {"zigzag_ring", "ulysses", "allgather"});
  ASSERT_EQ(page.taxes.size(), 3U);
  EXPECT_TRUE(page.taxes[0].winner);
  EXPECT_FALSE(page.taxes[1].winner);
  for (const PageTaxes& taxes : page.taxes) {
    const Picoseconds sum =
        taxes.roofline + taxes.launch + taxes.synchronization + taxes.locality + taxes.residual;
    EXPECT_EQ(sum, reported(machine, taxes.label).simulation.total) << taxes.label;
  }
  EXPECT_THAT(page.verdict, HasSubstr("less than `ulysses`, the next best."));
}

TEST(ReportPageOfPlans, keeps_every_rate_under_its_roof) {
  const Machine machine = h200();
  const ReportPage page = page_of(machine, {"zigzag_ring", "ring", "allgather"});
  ASSERT_TRUE(page.roofline.has_value());
  EXPECT_NEAR(page.roofline->peak, 776.25e12, 1e9);
  EXPECT_GE(page.roofline->points.size(), 4U);
  for (const PageRoofPoint& point : page.roofline->points) {
    const double slope =
        page.roofline->slopes[static_cast<std::size_t>(point.slope)].bandwidth * point.intensity;
    EXPECT_LE(point.rate, 1.001 * std::min(page.roofline->peak, slope)) << point.label;
  }
}

// Puts of one queue overlap, so each rank has as many rows as it has puts in flight.
TEST(ReportPageOfPlans, has_rows_for_puts_side_by_side) {
  Plan plan = make_plan("gemm", {"m=64", "n=64", "k=64"}, "x=4", "ring");
  for (Queue& queue : plan.queues) {
    if (queue.kind == QueueKind::Ce) queue.kind = QueueKind::Proxy;
  }
  std::vector<Span> spans(plan.tasks.size());
  std::map<std::int32_t, std::int64_t> puts;  // by queue
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (!is_put(plan, plan.tasks[i])) continue;
    const Picoseconds start(10 * puts[plan.tasks[i].queue.value]++);
    spans[i].ready = spans[i].begin = start;
    spans[i].end = start + Picoseconds(15);
  }
  const PageTimeline timeline = make_timeline(plan, Picoseconds(100), spans, {});
  EXPECT_EQ(puts.size(), 4U);
  EXPECT_EQ(std::ranges::count(timeline.queues, "puts", &PageQueue::name), 8);
  std::vector<Picoseconds> free(timeline.queues.size());
  for (const PageTask& task : timeline.tasks) {
    Picoseconds& end = free[static_cast<std::size_t>(task.queue)];
    EXPECT_GE(task.ready, end) << task.name;
    end = task.end;
  }
}

TEST(ReportPageOfASearch, shows_each_schedule_once_and_one_as_chosen) {
  const Tuned found = tuned();
  const std::vector<ReportedPlan> plans =
      report_search(found.program, found.mesh, found.machine, found.result).value();
  const ReportPage page = make_report_page({.title = "attention on cp=4",
                                            .machine = &found.machine,
                                            .plans = plans,
                                            .search = &found.result});
  std::set<std::string> schedules;
  std::int64_t winners = 0;
  std::int64_t named = 0;
  for (const PageCandidate& candidate : page.candidates) {
    EXPECT_TRUE(schedules.insert(candidate.schedule).second) << candidate.label;
    winners += candidate.winner ? 1 : 0;
    named += candidate.named ? 1 : 0;
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(named, std::ssize(found.result.baselines));
  EXPECT_TRUE(std::ranges::is_sorted(page.candidates, {}, &PageCandidate::time));
  EXPECT_EQ(page.taxes.size(), plans.size());
  EXPECT_GT(plans.size(), 1U);
}

TEST(ReportPageOfASearch, without_a_plan_is_about_the_search_alone) {
  Tuned found = tuned();
  found.result.top.front().simulated.reset();
  EXPECT_TRUE(
      report_search(found.program, found.mesh, found.machine, found.result).value().empty());
  const ReportPage page =
      make_report_page({.machine = &found.machine, .plans = {}, .search = &found.result});
  EXPECT_FALSE(page.timeline.has_value());
  EXPECT_FALSE(page.candidates.empty());
  EXPECT_EQ(page.figures.front().name, "estimated time");
}

TEST(ReportPageOfARun, says_what_tasks_waited_for) {
  const Plan plan = make_plan("gemm", {"m=64", "n=64", "k=64"}, "x=2", "ring");
  const RunRequest request{.check = true, .report = "page.html"};
  const TensorMap inputs = prepare_run(plan, request).value();
  const RunOutcome outcome = run(plan, request, inputs).value();
  const ReportPage page =
      make_run_page({.title = "gemm on x=2", .plan = &plan, .outcome = &outcome});
  ASSERT_EQ(page.timeline->tasks.size(), plan.tasks.size());
  std::set<WaitKind> waits;
  for (const PageTask& task : page.timeline->tasks) {
    EXPECT_LE(task.ready, task.begin);
    EXPECT_LE(task.begin, task.end);
    if (task.cause >= 0) waits.insert(task.wait);
  }
  EXPECT_TRUE(waits.contains(WaitKind::Event));
  EXPECT_THAT(page.verdict, HasSubstr("within the bounds of rounding"));
  EXPECT_THAT(page.verdict, HasSubstr("2 CPU ranks"));
  EXPECT_THAT(print_html(page), Not(HasSubstr("nan")));
  const ReportPage of_gpus =
      make_run_page({.title = "", .plan = &plan, .outcome = &outcome, .backend = Backend::Cuda});
  EXPECT_THAT(of_gpus.verdict, HasSubstr("2 GPUs"));
  EXPECT_THAT(of_gpus.machine, HasSubstr("GPUs"));
}

TEST(Tune, begins_with_what_it_found_before) {
  const Scratch scratch;
  const std::string folder = scratch.path("cache");
  const Tuned first = tuned(folder);
  EXPECT_EQ(first.seeds, 0);
  EXPECT_FALSE(first.known_since.has_value());
  const Tuned second = tuned(folder);
  EXPECT_EQ(second.seeds, 1);
  EXPECT_TRUE(second.known_since.has_value());
  EXPECT_EQ(second.result.top.front().time(), first.result.top.front().time());
  EXPECT_EQ(second.result.duplicates, 0);
}

}  // namespace
}  // namespace harpe
