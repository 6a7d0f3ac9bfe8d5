#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/library/questions.h"

namespace harpe {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Question large_question() {
  return {.op = "ag_gemm",
          .parameters = {{"m", 4096}, {"n", 4096}, {"k", 4096}},
          .mesh = "tp=8",
          .machine = "h200x8",
          .schedule = "ring"};
}

double sum_of(const std::vector<Share>& shares) {
  double sum = 0;
  for (const Share& share : shares) sum += share.us;
  return sum;
}

TEST(LibrarySimulate, divides_the_predicted_time) {
  const Plan made = plan(large_question()).value();
  ASSERT_TRUE(made.predicted().has_value());
  const Prediction& predicted = *made.predicted();
  EXPECT_EQ(predicted.machine, "h200x8");
  EXPECT_GT(predicted.time_us, 0);
  EXPECT_NEAR(sum_of(predicted.critical_path), predicted.time_us, 1e-6 * predicted.time_us);
  const Simulation again = simulate(made).value();
  EXPECT_EQ(again.prediction.time_us, predicted.time_us);
  EXPECT_EQ(again.trace, "");
}

TEST(LibrarySimulate, takes_a_machine_and_what_ranks_do) {
  const Plan made = plan(large_question()).value();
  const double alone = made.predicted()->time_us;
  const Simulation late =
      simulate(made, "h200x8", {.delay = std::pair(std::int64_t{3}, 500.0), .trace = true}).value();
  EXPECT_GT(late.prediction.time_us, alone + 100);
  EXPECT_THAT(late.trace, StartsWith("{\"displayTimeUnit\""));
  Question short_one = large_question();
  short_one.parameters = {{"m", 256}, {"n", 256}, {"k", 256}};
  short_one.schedule = "fetch";  // the host cannot issue its launches as fast as GPUs run them
  const Plan brief = plan(short_one).value();
  EXPECT_GT(simulate(brief, "", {.launch = LaunchMode::Host}).value().prediction.time_us,
            brief.predicted()->time_us);
  EXPECT_EQ(simulate(made, "", {.delay = std::pair(std::int64_t{8}, 1.0)}).error().code, "I311");
  EXPECT_EQ(simulate(made, "h2000").error().code, "U130");
}

TEST(LibrarySimulate, takes_the_text_of_a_machine) {
  const std::vector<MachineInfo> known = machines().value();
  const auto found = std::ranges::find(known, "h200x8", &MachineInfo::name);
  ASSERT_NE(found, known.end());
  EXPECT_EQ(found->processors, 8);
  Question question = large_question();
  question.machine = found->text;
  EXPECT_EQ(plan(question).value().predicted()->time_us,
            plan(large_question()).value().predicted()->time_us);
  EXPECT_EQ(taxes(question).value().at(0).time_us, taxes(large_question()).value().at(0).time_us);
  question.schedule = "auto";
  EXPECT_EQ(plan(question).value().predicted()->machine, "h200x8");
  question.machine = "machine m {";
  EXPECT_EQ(plan(question).error().code.substr(0, 1), "T");
}

TEST(LibraryTaxes, add_up) {
  const Plan made = plan(large_question()).value();
  const Taxes one = taxes(made).value();
  EXPECT_EQ(one.time_us, made.predicted()->time_us);
  EXPECT_NEAR(
      one.roofline_us + one.launch_us + one.synchronization_us + one.locality_us + one.residual_us,
      one.time_us, 1e-6 * one.time_us);
  Question every = large_question();
  every.schedule = "auto";
  const std::vector<Taxes> all = taxes(every).value();
  EXPECT_GT(all.size(), 2U);
  EXPECT_LE(all[0].time_us, all[1].time_us);
  EXPECT_NE(std::ranges::find(all, "ring", &Taxes::schedule), all.end());
  EXPECT_EQ(taxes(large_question()).value().size(), 1U);
}

TEST(LibraryTune, finds_a_plan) {
  const Tuned tuned = tune(large_question(), {.top = 3}).value();
  ASSERT_TRUE(tuned.best.has_value());
  EXPECT_EQ(tuned.best->why().origin, Origin::Search);
  EXPECT_GE(tuned.candidates, tuned.unique);
  EXPECT_GE(tuned.unique, tuned.feasible);
  EXPECT_EQ(tuned.top.size(), 3U);
  EXPECT_TRUE(tuned.complete);
  EXPECT_EQ(tuned.top[0].time_us, tuned.best->predicted()->time_us);
  EXPECT_LE(tuned.top[0].time_us, tuned.top[1].time_us);
  Question second = large_question();
  second.schedule = tuned.top[1].schedule;
  EXPECT_EQ(plan(second).value().predicted()->time_us, tuned.top[1].time_us);
  EXPECT_EQ(tune(large_question(), {.top = 0}).error().code, "I311");
  // The page compares it with the named schedules; the page of a plan by name shows only that plan.
  EXPECT_THAT(report(*tuned.best).value(), HasSubstr("hierarchical"));
  EXPECT_THAT(report(plan(large_question()).value()).value(), Not(HasSubstr("hierarchical")));
}

TEST(LibraryTune, gives_what_it_has_when_it_is_stopped) {
  std::int64_t calls = 0;
  const Options watched{
      .progress = [&](std::string_view, std::int64_t, std::int64_t) { return ++calls < 3; }};
  const Checked<Tuned> tuned = tune(large_question(), {}, watched);
  EXPECT_GE(calls, 3);
  if (tuned.ok()) {
    EXPECT_FALSE(tuned->complete);
  } else {
    EXPECT_EQ(tuned.error().code, "S702");
  }
}

TEST(LibraryCatalogue, lists_what_there_is_to_ask_for) {
  const std::vector<OperatorInfo> all = operators().value();
  const auto gemm = std::ranges::find(all, "gemm_rs", &OperatorInfo::name);
  ASSERT_NE(gemm, all.end());
  EXPECT_EQ(gemm->parameters.size(), 4U);
  EXPECT_EQ(gemm->buffers.front().name, "a");
  EXPECT_EQ(gemm->buffers.front().shape, (std::vector<std::string>{"m", "k"}));
  const std::string text = show(plan(gemm_question()).value(), Stage::Program).value();
  EXPECT_EQ(describe(text).value().name, "gemm_rs");
  EXPECT_EQ(describe("gem").error().code, "U108");

  const std::vector<ScheduleInfo> named = schedules(attention_question()).value();
  const auto ulysses = std::ranges::find(named, "ulysses", &ScheduleInfo::name);
  ASSERT_NE(ulysses, named.end());
  EXPECT_FALSE(ulysses->refusal.has_value());
}

TEST(LibraryCatalogue, explains_codes) {
  const Explanation explanation = explain("i311").value();
  EXPECT_EQ(explanation.code, "I311");
  EXPECT_EQ(explanation.verdict, "illegal");
  EXPECT_NE(explanation.meaning, "");
  EXPECT_EQ(explain("Q999").error().code, "U115");
  EXPECT_EQ(explain("S705").value().remedy, "raise `budget` to look at the rest");
  for (const std::string code : {"U133", "S701", "I105", "G084"}) {
    const Explanation any = explain(code).value();
    EXPECT_EQ((any.message + any.meaning + any.remedy).find("--"), std::string::npos) << code;
  }
}

TEST(LibraryCatalogue, knows_the_machine_and_its_own_build) {
  EXPECT_GT(doctor().value().host.cores, 0);
  EXPECT_THAT(version(), HasSubstr("+"));
}

}  // namespace
}  // namespace harpe
