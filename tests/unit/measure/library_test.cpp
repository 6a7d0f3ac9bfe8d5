#include <gtest/gtest.h>

#include <algorithm>

#include "compile/plan_cache.h"
#include "io/npy.h"
#include "measure/library_run.h"
#include "measure/tune_by_runs.h"
#include "tests/support/scratch.h"
#include "tests/unit/measure/fake_library.h"

namespace harpe {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

MeasuredTuned tune_beside(const std::vector<FakeLibrary>& libraries,
                          const std::string& cache = "") {
  MeasuredTuneRequest request;
  request.subject = {
      .target = "gemm", .parameters = {"m=64", "n=32", "k=32", "dtype=f32"}, .mesh = "x=2"};
  if (!cache.empty()) request.subject.cache = cache;
  request.search.top = 3;
  request.measure = MeasureRequest{.iterations = 2};
  request.measure->libraries = find_fakes(libraries);
  Session session(true);
  Checked<MeasuredTuned> tuned = tune(session, request);
  HP_CHECK(tuned.ok(), render(tuned.error()));
  return std::move(tuned).value();
}

TEST(Measure, has_libraries_beside_the_schedules_in_every_round) {
  const MeasuredTuned tuned =
      tune_beside({{.name = "slow", .time = hours(1)}, {.name = "fast", .time = nanoseconds(3)}});
  const Measured& measured = *tuned.measured;
  ASSERT_EQ(measured.baselines.size(), 2U);
  for (const MeasuredBaseline& one : measured.baselines) {
    EXPECT_EQ(one.outcome, MeasuredAs::Timed) << one.reason;
    EXPECT_EQ(one.rounds, measured.rounds);
    EXPECT_EQ(one.executions, 3 * 2 * one.rounds);
  }
  ASSERT_NE(measured.baseline(), nullptr);
  EXPECT_EQ(measured.baseline()->name, "fast");
  EXPECT_EQ(measured.baselines.front().name, "fast") << "fastest first, like schedules";
  EXPECT_DOUBLE_EQ(measured.baseline()->median_us, 3e-3);
  ASSERT_NE(measured.winner(), nullptr);
  EXPECT_DOUBLE_EQ(*measured.baseline_ratio(), 3e-3 / measured.winner()->median_us);
  EXPECT_TRUE(measured.is_baseline_fastest());
  EXPECT_TRUE(std::ranges::none_of(measured.all, [](const MeasuredSchedule& one) {
    return one.schedule.label == "fast" || one.schedule.label == "slow";
  })) << "libraries are no schedules";
}

TEST(Measure, chooses_a_schedule_where_libraries_are_slower) {
  const MeasuredTuned tuned = tune_beside({{.name = "slow", .time = hours(1)}});
  EXPECT_GT(*tuned.measured->baseline_ratio(), 1);
  EXPECT_FALSE(tuned.measured->is_baseline_fastest());
}

TEST(Measure, has_no_time_of_libraries_that_are_wrong_or_do_not_run) {
  const MeasuredTuned tuned =
      tune_beside({{.name = "wrong", .time = nanoseconds(3), .factor = 1.5},
                   {.name = "missing", .is_missing = true},
                   {.name = "faulty", .time = nanoseconds(3), .ends_in_fault = true}});
  const std::vector<MeasuredBaseline>& all = tuned.measured->baselines;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].outcome, MeasuredAs::Wrong);
  EXPECT_EQ(all[1].outcome, MeasuredAs::Refused);
  EXPECT_EQ(all[1].code, "G081");
  EXPECT_EQ(all[2].outcome, MeasuredAs::Faulted);
  EXPECT_EQ(tuned.measured->baseline(), nullptr);
  EXPECT_FALSE(tuned.measured->baseline_ratio().has_value());
  EXPECT_FALSE(tuned.measured->is_baseline_fastest());
  EXPECT_NE(tuned.measured->winner(), nullptr) << "schedules are measured all the same";
}

TEST(PlanCache, remembers_that_libraries_were_faster) {
  const Scratch scratch;
  const std::string cache = scratch.path("cache");
  const MeasuredTuned tuned = tune_beside({{.name = "fast", .time = nanoseconds(3)}}, cache);
  Session session(true);
  Request again{
      .target = "gemm", .parameters = {"m=64", "n=32", "k=32", "dtype=f32"}, .mesh = "x=2"};
  again.cache = cache;
  EXPECT_FALSE(recall_slower_schedule(session, again).has_value()) << "nothing will run";
  again.site = find_site(Backend::Cpu);
  const std::optional<CachedSchedule> known = recall_slower_schedule(session, again);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->form, tuned.measured->winner()->schedule.form);
  EXPECT_EQ(known->measured->baseline->name, "fast");
  EXPECT_EQ(known->measured->baseline->time, from_microseconds(3e-3));
  again.site = find_site(Backend::Cuda);
  EXPECT_FALSE(recall_slower_schedule(session, again).has_value()) << "measured elsewhere";
  again.site = find_site(Backend::Cpu);
  again.schedule = "ring";
  EXPECT_FALSE(recall_slower_schedule(session, again).has_value()) << "nobody asked";
}

TEST(PlanCache, does_not_speak_of_libraries_that_were_slower) {
  const Scratch scratch;
  tune_beside({{.name = "slow", .time = hours(1)}}, scratch.path("cache"));
  Session session(true);
  Request again{
      .target = "gemm", .parameters = {"m=64", "n=32", "k=32", "dtype=f32"}, .mesh = "x=2"};
  again.cache = scratch.path("cache");
  again.site = find_site(Backend::Cpu);
  EXPECT_FALSE(recall_slower_schedule(session, again).has_value());
}

Request small_subject() {
  return {.target = "ag_gemm", .parameters = {"m=32", "n=16", "k=16"}, .mesh = "tp=2"};
}

Checked<LibraryOutcome> run_fakes(const std::vector<FakeLibrary>& libraries, RunRequest request) {
  request.backend.backend = Backend::Cuda;
  Session session(true);
  return run_library(session, small_subject(), request, find_fakes(libraries));
}

TEST(LibraryRun, takes_the_fastest_and_checks_and_writes_what_it_makes) {
  const Scratch scratch;
  const Checked<LibraryOutcome> ran =
      run_fakes({{.name = "slow", .time = nanoseconds(900)},
                 {.name = "missing", .is_missing = true},
                 {.name = "fast", .time = nanoseconds(200)}},
                {.outputs = {{"c", scratch.path("c.npy")}}, .iterations = 2'500, .check = true});
  ASSERT_TRUE(ran.ok()) << render(ran.error());
  EXPECT_EQ(ran->name, "fast");
  EXPECT_FALSE(ran->outcome.fault.has_value());
  EXPECT_EQ(ran->outcome.stats.iterations.size(), 2'500U);
  ASSERT_TRUE(ran->outcome.check.has_value());
  EXPECT_TRUE(ran->outcome.check->passed());
  EXPECT_TRUE(read_npy(scratch.path("c.npy")).ok());
  EXPECT_DOUBLE_EQ(*ran->candidates[0].median_us, 0.9);
  EXPECT_NE(ran->candidates[1].reason.find("nothing is there"), std::string::npos);
}

TEST(LibraryRun, finds_wrong_results) {
  const Checked<LibraryOutcome> ran = run_fakes({{.name = "only", .factor = 1.5}}, {.check = true});
  ASSERT_TRUE(ran.ok());
  EXPECT_FALSE(ran->outcome.check->passed());
  EXPECT_FALSE(ran->candidates[0].median_us.has_value()) << "there was nothing to choose";
}

TEST(LibraryRun, says_why_nothing_runs) {
  const Checked<LibraryOutcome> none = run_fakes({{.name = "missing", .is_missing = true}}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, DiagCode::G081);
  const Checked<LibraryOutcome> faulty = run_fakes(
      {{.name = "missing", .is_missing = true}, {.name = "faulty", .ends_in_fault = true}}, {});
  ASSERT_TRUE(faulty.ok());
  ASSERT_TRUE(faulty->outcome.fault.has_value());
  EXPECT_EQ(faulty->outcome.fault->front().kind, FaultKind::DeviceFailed);
}

TEST(LibraryRun, has_a_bound_that_is_no_less_than_the_plans) {
  const Plan plan = [] {
    Session session(false);
    Request subject = small_subject();
    subject.schedule = "bulk";
    return session.plan(subject).value();
  }();
  const Checked<TensorMap> inputs = prepare_run(plan, {});
  const Checked<Reference> reference = make_reference({&plan}, *inputs, 0, 1);
  const TensorMap outputs = {{"c", convert(reference->meaning.outputs.at("c"), DType::BF16)}};
  const double ours = compare_outputs(plan, outputs, *reference).outputs.front().bound;
  const double theirs = compare_library_outputs(plan, outputs, *reference).outputs.front().bound;
  EXPECT_GT(theirs, ours);
  EXPECT_LT(theirs, 0.1) << "still a bound";
}

}  // namespace
}  // namespace harpe
