#include "harpe/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "tests/unit/library/questions.h"

namespace harpe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(const Question& question) {
  const Checked<Plan> made = plan(question);
  return made.ok() ? "accepted" : made.error().text;
}

const Buffer& buffer_named(const Plan& plan, const std::string& name) {
  for (const Buffer& buffer : plan.buffers()) {
    if (buffer.name == name) return buffer;
  }
  throw std::logic_error("no buffer `" + name + "`");
}

TEST(LibraryPlan, has_facts_and_a_proof) {
  const Plan made = plan(gemm_question()).value();
  EXPECT_EQ(made.facts().op, "gemm_rs");
  EXPECT_EQ(made.facts().mesh, "tp=4");
  EXPECT_EQ(made.facts().schedule, "ring");
  EXPECT_EQ(made.facts().ranks, 4);
  EXPECT_EQ(made.facts().flops, 2.0 * 24 * 16 * 32);
  EXPECT_EQ(made.certificate().covers, "every block of every rank");
  EXPECT_EQ(made.certificate().tasks, made.facts().tasks);
  EXPECT_EQ(made.certificate().peak_bytes, made.facts().memory_bytes);
  EXPECT_FALSE(made.predicted().has_value());
}

TEST(LibraryPlan, says_which_elements_a_rank_holds) {
  const Plan made = plan(gemm_question()).value();
  const Buffer& a = buffer_named(made, "a");
  EXPECT_EQ(a.dtype, DType::F32);
  EXPECT_THAT(a.shape, ElementsAre(24, 32));
  ASSERT_EQ(a.homes.size(), 4U);
  EXPECT_THAT(a.homes[1], ElementsAre(Rectangle{{0, 24}, {8, 16}}));
  const Buffer& c = buffer_named(made, "c");
  EXPECT_EQ(c.role, Buffer::Role::Out);
  EXPECT_THAT(c.homes[3], ElementsAre(Rectangle{{18, 24}, {0, 16}}));
}

TEST(LibraryPlan, says_both_parts_of_a_zigzag_layout) {
  const Plan made = plan(attention_question("zigzag_ring")).value();
  const Range whole_heads{0, 4};
  EXPECT_THAT(buffer_named(made, "q").homes[1],
              ElementsAre(Rectangle{{0, 1}, {8, 16}, whole_heads, {0, 8}},
                          Rectangle{{0, 1}, {48, 56}, whole_heads, {0, 8}}));
}

TEST(LibraryPlan, reads_back_what_it_shows) {
  const Plan made = plan(attention_question()).value();
  const std::string text = show(made).value();
  const Plan again = parse_plan(text).value();
  EXPECT_EQ(show(again).value(), text);
  EXPECT_EQ(again.why().origin, Origin::Text);
  Question from_texts = attention_question();
  from_texts.op = show(made, Stage::Program).value();
  from_texts.parameters.clear();
  from_texts.schedule = show(made, Stage::Schedule).value();
  EXPECT_EQ(show(plan(from_texts).value()).value(), text);
}

TEST(LibraryPlan, reads_back_what_is_lowered_again) {
  Question wide = gemm_question();
  wide.mesh = "tp=72";
  wide.parameters["m"] = 72;
  wide.parameters["k"] = 72;
  std::string text = show(plan(wide).value()).value();
  EXPECT_THAT(text, HasSubstr("derived"));
  EXPECT_EQ(show(parse_plan(text).value()).value(), text);
}

TEST(LibraryPlan, says_what_a_machine_does_otherwise) {
  Question question{.op = "ag_gemm",
                    .parameters = {{"m", 512}, {"n", 512}, {"k", 512}},
                    .mesh = "node=2,gpu=8",
                    .machine = "h200x8x2",
                    .schedule = "ring"};
  const Plan fitted = plan(question).value();
  EXPECT_THAT(fitted.why().refits, ElementsAre("a over (node, gpu) by nccl instead of ce"));
  question.schedule = show(fitted, Stage::Schedule).value();
  const Plan again = plan(question).value();
  EXPECT_TRUE(again.why().refits.empty());
  EXPECT_EQ(again.predicted()->time_us, fitted.predicted()->time_us);
}

TEST(LibraryPlan, proves_an_edited_text) {
  std::string text = show(plan(gemm_question()).value()).value();
  const std::size_t at = text.rfind("sync ");
  ASSERT_NE(at, std::string::npos);
  text.erase(at, text.find('\n', at) + 1 - at);
  const Checked<Plan> made = parse_plan(text);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::Refused);
  EXPECT_NE(made.error().code, "");
  EXPECT_FALSE(parse_plan("").ok());
}

TEST(LibraryPlan, refuses_with_the_words_of_the_command_line) {
  Question question = gemm_question();
  question.op = "gem";
  const Checked<Plan> made = plan(question);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "U108");
  EXPECT_THAT(made.error().message, StartsWith("`gem` is not an operator"));
  EXPECT_EQ(made.error().remedy, "`harpe ops` lists the operators");
  EXPECT_EQ(made.error().text, "error[U108]: " + made.error().message + "; " + made.error().remedy);

  question = gemm_question("rings");
  EXPECT_THAT(refusal(question), StartsWith("error[U113]"));
  question = gemm_question();
  question.parameters["rows"] = 4;
  EXPECT_THAT(refusal(question), StartsWith("error[P101]"));
  question = gemm_question();
  question.mesh = "4";
  EXPECT_THAT(refusal(question), StartsWith("error[U112]"));
  question = gemm_question();
  question.machine = "h2000";
  EXPECT_THAT(refusal(question), StartsWith("error[U130]"));
  question = gemm_question();
  question.op = "program {";
  EXPECT_THAT(refusal(question), StartsWith("error[T"));
  question = gemm_question();
  question.op = "gemm.plan";
  EXPECT_THAT(refusal(question), StartsWith("error[U119]"));
  question = gemm_question();
  question.machine = "h200x8";
  question.mesh = "tp=16";
  EXPECT_THAT(refusal(question), StartsWith("error[M117]"));
}

TEST(LibraryPlan, names_the_place_in_a_text) {
  Question question = gemm_question();
  question.schedule = "schedule ring\n?";
  const Checked<Plan> made = plan(question);
  ASSERT_FALSE(made.ok());
  ASSERT_FALSE(made.error().notes.empty());
  EXPECT_THAT(made.error().notes.front(), HasSubstr("of `question.sched`"));
}

TEST(LibraryPlan, says_why_it_has_its_schedule) {
  const Plan named = plan(gemm_question()).value();
  EXPECT_EQ(named.why().origin, Origin::Caller);
  EXPECT_EQ(named.why().text, "the question names it");
  const Plan found = plan(gemm_question("auto")).value();
  EXPECT_EQ(found.why().origin, Origin::Search);
  EXPECT_GT(found.why().candidates, 0);
  EXPECT_GE(found.why().candidates, found.why().unique);
  EXPECT_NE(found.why().runner_up, "");
  EXPECT_GT(found.why().runner_up_us, 0);
  EXPECT_THAT(found.why().text, HasSubstr("`" + found.why().runner_up + "`"));
}

TEST(LibraryPlan, keeps_answers_where_it_is_told_alone) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "harpe_library_cache";
  std::filesystem::remove_all(folder);
  Question question = gemm_question("auto");
  question.machine = "h200x8";
  const Options kept{.cache = folder.string()};
  ASSERT_TRUE(plan(question).ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
  const Tuned tuned = tune(question, {}, kept).value();
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  const Plan cached = plan(question, kept).value();
  EXPECT_EQ(cached.why().origin, Origin::Cache);
  EXPECT_EQ(cached.facts().schedule, tuned.best->facts().schedule);
  std::filesystem::remove_all(folder);
}

TEST(LibraryPlan, ends_where_the_caller_gives_up) {
  std::vector<std::string> stages;
  const Options watched{.progress = [&](std::string_view stage, std::int64_t, std::int64_t) {
    stages.emplace_back(stage);
    return stage != "proving";
  }};
  const Checked<Plan> made = plan(gemm_question(), watched);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "I505");
  EXPECT_THAT(stages, ElementsAre("choosing a schedule", "lowering", "proving"));
}

TEST(LibraryPlan, is_drawn_and_reported) {
  const Plan made = plan(gemm_question()).value();
  EXPECT_THAT(draw(made, DrawingFormat::Svg).value(), HasSubstr("<svg"));
  EXPECT_THAT(draw(made, DrawingFormat::Text).value(), HasSubstr("gemm_rs on tp=4"));
  EXPECT_THAT(report(made).value(), HasSubstr("<html"));
  Question wide = gemm_question();
  wide.mesh = "tp=32";
  wide.parameters["m"] = 32;
  EXPECT_EQ(draw(plan(wide).value(), DrawingFormat::Text).error().code, "U121");
}

TEST(LibraryError, is_not_passed_over) {
  Question question = gemm_question();
  question.op = "gem";
  const Checked<Plan> made = plan(question);
  EXPECT_THROW(static_cast<void>(made.value()), std::logic_error);
  EXPECT_THROW(static_cast<void>(plan(gemm_question()).error()), std::logic_error);
}

}  // namespace
}  // namespace harpe
