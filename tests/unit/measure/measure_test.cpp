#include "measure/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compile/choose_schedule.h"
#include "compile/plan_cache.h"
#include "io/files.h"
#include "measure/measured.h"
#include "measure/measured_plans.h"
#include "measure/tune_by_runs.h"
#include "measure/validation.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

MeasuredTuneRequest small_request() {
  MeasuredTuneRequest request;
  request.subject = {
      .target = "gemm", .parameters = {"m=64", "n=32", "k=32", "dtype=f32"}, .mesh = "x=2"};
  request.search.top = 3;
  request.measure = MeasureRequest{.iterations = 2};
  return request;
}

MeasuredTuned tune_small(const MeasuredTuneRequest& request) {
  Session session(true);
  Checked<MeasuredTuned> tuned = tune(session, request);
  HP_CHECK(tuned.ok(), render(tuned.error()));
  return std::move(tuned).value();
}

TEST(Measure, times_the_top_and_the_named_and_chooses_the_fastest) {
  const MeasuredTuned tuned = tune_small(small_request());
  ASSERT_TRUE(tuned.measured.has_value());
  const Measured& measured = *tuned.measured;
  EXPECT_TRUE(measured.complete);
  EXPECT_EQ(measured.count(MeasuredAs::Timed), std::ssize(measured.all));
  EXPECT_FALSE(measured.processor.empty());
  std::int64_t named = 0;
  for (const Evaluated& one : tuned.result.baselines) {
    if (!one.excluded.empty()) continue;
    ++named;
    EXPECT_TRUE(std::ranges::any_of(measured.all, [&](const MeasuredSchedule& each) {
      return each.schedule.form == one.form;
    })) << one.label;
  }
  EXPECT_GT(named, 1);
  EXPECT_GE(std::ssize(measured.all), 3);
  ASSERT_NE(measured.winner(), nullptr);
  EXPECT_EQ(tuned.result.top.front().form, measured.winner()->schedule.form);
  std::set<std::int64_t> places;
  for (const MeasuredSchedule& one : measured.all) {
    EXPECT_GT(one.median_us, 0);
    EXPECT_GE(one.executions, 3 * 2 * one.rounds);
    places.insert(one.predicted_place);
  }
  EXPECT_EQ(*places.begin(), 1);
  EXPECT_EQ(*places.rbegin(), std::ssize(measured.all));
  ASSERT_TRUE(measured.agreement && measured.agreement->regret_1);
  EXPECT_GE(*measured.agreement->regret_1, *measured.agreement->regret_8);
}

TEST(Measure, takes_others_from_all_over_the_ranking) {
  MeasuredTuneRequest request = small_request();
  request.search.spread = 6;
  const MeasuredTuned tuned = tune_small(request);
  ASSERT_EQ(tuned.result.spread.size(), 6U);
  EXPECT_TRUE(std::ranges::is_sorted(tuned.result.spread, {}, &Evaluated::time));
  EXPECT_GT(tuned.result.spread.back().time(), tuned.result.spread.front().time());
  for (const Evaluated& one : tuned.result.spread) {
    EXPECT_EQ(std::ranges::count_if(
                  tuned.measured->all,
                  [&](const MeasuredSchedule& each) { return each.schedule.form == one.form; }),
              1);
  }
}

TEST(Measure, shows_who_ended_in_a_fault) {
  MeasuredTuneRequest request = small_request();
  request.measure->backend.lose_at = TaskId(2);
  request.measure->backend.wait_limit = std::chrono::milliseconds(100);
  const MeasuredTuned tuned = tune_small(request);
  EXPECT_EQ(tuned.measured->winner(), nullptr);
  EXPECT_FALSE(tuned.measured->agreement.has_value());
  EXPECT_EQ(tuned.measured->count(MeasuredAs::Faulted), std::ssize(tuned.measured->all));
  EXPECT_NE(tuned.measured->all.front().reason, "");
}

TEST(Measure, ends_at_once_where_it_is_interrupted) {
  MeasuredTuneRequest request = small_request();
  bool is_searched = false;
  request.search.progress = [&](std::string_view stage, std::int64_t, std::int64_t) {
    is_searched |= stage == "preparing" || stage == "computing the reference";
  };
  request.search.interrupted = [&] { return is_searched; };
  const MeasuredTuned tuned = tune_small(request);
  EXPECT_TRUE(tuned.result.complete);
  EXPECT_FALSE(tuned.measured->complete);
  EXPECT_EQ(tuned.measured->winner(), nullptr);
  EXPECT_EQ(tuned.measured->count(MeasuredAs::NotReached), std::ssize(tuned.measured->all));
}

TEST(Measure, is_remembered_for_runs_on_such_processors) {
  const Scratch scratch;
  MeasuredTuneRequest request = small_request();
  request.subject.cache = scratch.path("cache");
  const MeasuredTuned tuned = tune_small(request);
  request.measure.reset();
  tune_small(request);  // a search without measurements keeps it
  const Checked<CacheListing> listing = list_cache(scratch.path("cache"));
  ASSERT_TRUE(listing.ok());
  ASSERT_EQ(listing->files.size(), 1U);
  const CachedSchedule& kept = answer_of(listing->files.front().entry, find_site(Backend::Cpu));
  ASSERT_TRUE(kept.measured.has_value());
  EXPECT_EQ(kept.form, tuned.measured->winner()->schedule.form);
  EXPECT_EQ(kept.measured->processor, find_site(Backend::Cpu).processor);
  request.subject.site = find_site(Backend::Cpu);
  Session session(false);
  const Checked<AutoForm> chosen =
      choose_schedule(tuned.program, tuned.mesh, request.subject, [](const Diag&) {});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->form, kept.form);
}

// The schedule predicted best, and a slower one that was measured.
CacheEntry entry_with_measured(const std::string& processor) {
  Session session(false);
  CacheEntry entry;
  for (const std::string name : {"ring", "fetch"}) {
    const Checked<Scheduled> scheduled = session.schedule(
        {.target = "gemm", .parameters = {"m=8", "n=8", "k=8"}, .mesh = "x=2", .schedule = name});
    HP_CHECK(scheduled.ok(), name);
    entry.schedules.push_back(
        {.label = name, .predicted = Picoseconds(1), .form = scheduled->form});
  }
  entry.schedules[1].measured =
      CachedTime{.time = Picoseconds(9), .backend = "cpu", .processor = processor};
  return entry;
}

TEST(PlanCache, answers_with_what_was_measured_where_the_plan_will_run) {
  const CacheEntry here = entry_with_measured(find_site(Backend::Cpu).processor);
  EXPECT_EQ(answer_of(here, find_site(Backend::Cpu)).label, "fetch");
  EXPECT_EQ(answer_of(here, find_site(Backend::Cuda)).label, "ring");
  EXPECT_EQ(answer_of(here, std::nullopt).label, "ring");
  EXPECT_EQ(answer_of(entry_with_measured("another"), find_site(Backend::Cpu)).label, "ring");
}

TEST(PlanCache, has_one_measured_schedule_for_each_kind_of_processor) {
  CacheEntry entry = entry_with_measured("one");
  CachedSchedule other = entry.schedules[0];
  other.measured = CachedTime{.time = Picoseconds(5), .backend = "cpu", .processor = "one"};
  add_measured(entry, other);
  EXPECT_FALSE(entry.schedules[0].measured.has_value()) << "what was added first stays";
  other.measured->processor = "two";
  add_measured(entry, other);
  ASSERT_EQ(entry.schedules.size(), 2U) << "a schedule that is there is not there twice";
  EXPECT_EQ(entry.schedules[0].measured->processor, "two");
  other.measured->processor = "three";
  add_measured(entry, other);
  EXPECT_EQ(entry.schedules.size(), 3U);
}

TEST(MeasuredPlans, read_back_as_cases_that_are_predicted_as_they_were) {
  const Scratch scratch;
  const MeasuredTuneRequest request = small_request();
  const MeasuredTuned tuned = tune_small(request);
  const std::string lines =
      print_measurements(request.subject, tuned.machine.name, *tuned.measured);
  const std::string path = scratch.path("a_plans.jsonl");
  ASSERT_TRUE(append_text(path, lines).ok());
  const Checked<std::vector<MeasuredCase>> cases = read_measurements(scratch.path("."));
  ASSERT_TRUE(cases.ok()) << render(cases.error());
  ASSERT_EQ(std::ssize(*cases), tuned.measured->count(MeasuredAs::Timed));
  EXPECT_DOUBLE_EQ(cases->front().microseconds, tuned.measured->winner()->median_us);
  EXPECT_EQ(cases->front().collectives, CollectiveEngine::Pull);
  EXPECT_TRUE(cases->front().has_partials16);
  EXPECT_EQ(cases->front().family,
            "gemm m=64 n=32 k=32 dtype=f32 on x=2, " + tuned.measured->processor);
  Session session(true);
  const Checked<Validation> validation = validate(session, scratch.path("."), tuned.machine);
  ASSERT_TRUE(validation.ok()) << render(validation.error());
  for (std::size_t i = 0; i < cases->size(); ++i) {
    EXPECT_EQ(validation->predictions[i].predicted, tuned.measured->all[i].schedule.time());
  }
  const Agreement& agreement = validation->agreements.front();
  EXPECT_DOUBLE_EQ(*agreement.regret_1, *tuned.measured->agreement->regret_1);
  EXPECT_DOUBLE_EQ(agreement.spearman, tuned.measured->agreement->spearman);
  // A second run is appended to the first.
  ASSERT_TRUE(append_text(path, lines).ok());
  EXPECT_EQ(read_measurements(scratch.path("."))->size(), 2 * cases->size());
}

TEST(MeasuredPlans, that_are_damaged_are_refused_by_line) {
  const auto refusal_of = [](const std::string& line) {
    const Scratch scratch;
    scratch.write("a_plans.jsonl", "\n" + line + "\n");
    const auto cases = read_measurements(scratch.path("."));
    return cases.ok() ? "" : render_message(cases.error());
  };
  EXPECT_NE(refusal_of("{\"kind\": \"plan\"}").find("line 2: `operator` is not a string"),
            std::string::npos);
  const std::string head =
      "{\"operator\": \"gemm\", \"mesh\": \"x=2\", \"label\": \"ring\", \"schedule\": \"\", "
      "\"processor\": \"p\", ";
  EXPECT_NE(refusal_of(head + "\"parameters\": 3}").find("`parameters` is not a list"),
            std::string::npos);
  EXPECT_NE(refusal_of(head + "\"parameters\": [3]}").find("holds what is not a string"),
            std::string::npos);
  EXPECT_NE(refusal_of(head + "\"collectives\": \"rings\"}").find("is not auto, nccl or pull"),
            std::string::npos);
  EXPECT_NE(refusal_of(head + "\"partials16\": 1}").find("is not true or false"),
            std::string::npos);
  EXPECT_NE(refusal_of(head + "\"parameters\": [], \"measured_us\": 0}").find("is no time"),
            std::string::npos);
}

}  // namespace
}  // namespace harpe
