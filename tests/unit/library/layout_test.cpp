#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <utility>
#include <vector>

#include "tests/unit/library/questions.h"

namespace harpe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<Comparison> check_run(const Plan& plan) {
  const auto inputs = draw_inputs(plan, 1).value();
  std::map<std::string, ConstView> views;
  for (const auto& [name, tensor] : inputs) views.emplace(name, tensor.view());
  return run(plan, views, {}, {.check = true}).value().checks;
}

TEST(LibraryLayout, says_which_positions_a_rank_holds) {
  const Plan made = plan(attention_question("zigzag_ring")).value();
  EXPECT_EQ(made.facts().layout.at("Sq"), "zigzag");
  EXPECT_EQ(made.facts().layout.at("Hkv"), "whole");
  const auto held = positions(made, "q", 1).value();
  EXPECT_THAT(held, ElementsAre(ElementsAre(Range{0, 1}), ElementsAre(Range{8, 16}, Range{48, 56}),
                                ElementsAre(Range{0, 4}), ElementsAre(Range{0, 8})));
  // The elements of the rank's own tensor, in its order.
  std::vector<float> whole(64 * 4 * 8);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(i / 32);
  const ConstView view = dense(std::as_const(whole).data(), DType::F32, {1, 64, 4, 8});
  const Tensor part = shard(made, "q", 1, view).value();
  const auto* const local = reinterpret_cast<const std::uint16_t*>(part.data.data());
  std::size_t row = 0;
  for (const Range& range : held[1]) {
    for (std::int64_t position = range.begin; position < range.end; ++position, ++row) {
      const auto bits = static_cast<std::uint32_t>(local[row * 32]) << 16U;
      EXPECT_EQ(std::bit_cast<float>(bits), static_cast<float>(position));
    }
  }
  EXPECT_EQ(positions(made, "q", 4).error().code, "I311");
  EXPECT_EQ(positions(made, "p", 0).error().code, "I301");
}

TEST(LibraryLayout, keeps_to_homes_and_layouts) {
  for (const std::string mesh : {"cp=2", "cp=4", "cp=8"}) {
    for (const std::int64_t seq : {64, 77}) {
      for (const std::string layout : {"contiguous", "zigzag"}) {
        Question question = attention_question("auto");
        question.mesh = mesh;
        question.parameters["seq"] = seq;
        question.layout = layout;
        const Plan made = plan(question).value();
        EXPECT_EQ(made.facts().layout.at("Sq"), layout) << mesh;
        EXPECT_EQ(made.facts().layout.at("Skv"), layout) << mesh;
        EXPECT_FALSE(check_run(made).empty());
        Question whole = question;
        whole.homes = {{"k", ""}, {"v", ""}};
        EXPECT_THAT(positions(plan(whole).value(), "k", 1).value()[1], ElementsAre(Range{0, seq}));
      }
    }
  }
}

TEST(LibraryLayout, refuses_schedules_that_do_not_keep_to_homes_and_layouts) {
  Question question = attention_question("zigzag_ring");
  question.layout = "contiguous";
  const Error error = plan(question).error();
  EXPECT_EQ(error.code, "I311");
  EXPECT_EQ(error.message, "`layout of Sq` must be contiguous, but is zigzag");
  ASSERT_EQ(error.notes.size(), 2U);
  EXPECT_THAT(error.notes[1], StartsWith("schedules that keep to it: `ring`, "));
  // The schedule's text is refused like its name.
  question.schedule =
      show(plan(attention_question("zigzag_ring")).value(), Stage::Schedule).value();
  EXPECT_EQ(plan(question).error().code, "I311");
  question = attention_question("ring");
  question.homes = {{"k", "Hkv@cp"}};
  EXPECT_EQ(plan(question).error().message, "`home of k` must be Hkv@cp, but is Skv@cp");
  question.homes = {{"k", "Dv@cp"}};
  EXPECT_EQ(plan(question).error().text,
            "error[U109]: `homes` is `k=Dv@cp`, but must be axes of `k`, and `Dv` is none");
  Question gemm = gemm_question();
  gemm.layout = "zigzag";
  EXPECT_THAT(plan(gemm).error().message, HasSubstr("no mask of `gemm_rs` goes by position"));
}

}  // namespace
}  // namespace harpe
