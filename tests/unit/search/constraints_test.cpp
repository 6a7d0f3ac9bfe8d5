#include "search/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "lower/lower.h"
#include "tests/unit/search/cases.h"
#include "verify/verify.h"

namespace harpe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Held = std::vector<std::pair<std::string, AxisLayout>>;

// The axes that some home divides, with their layouts.
Held divided_axes_of(const Case& one, const NormalForm& form) {
  const Checked<Blocks> blocks = Blocks::make(one.program, one.mesh, form);
  Held held;
  for (const HeldAxis& each : find_held_axes(one.program, *blocks)) {
    if (each.layout != AxisLayout::Whole) held.emplace_back(each.axis, each.layout);
  }
  return held;
}

std::unique_ptr<Case> causal(const std::string& seq, const std::string& mesh) {
  return make_case(
      {"attention", {"seq=" + seq, "heads=8", "kv_heads=2", "causal=true", "dtype=f32"}, mesh});
}

TEST(AxisLayout, of_named_schedules) {
  const auto one = causal("64", "cp=4");
  for (const auto& [name, layout] : {std::pair{"ring", AxisLayout::Contiguous},
                                     {"push", AxisLayout::Contiguous},
                                     {"usp", AxisLayout::Contiguous},
                                     {"zigzag_ring", AxisLayout::Zigzag},
                                     {"zigzag_push", AxisLayout::Zigzag}}) {
    EXPECT_THAT(divided_axes_of(*one, named_form(*one, name)),
                ElementsAre(Pair("Sq", layout), Pair("Skv", layout)))
        << name;
  }
}

// Blocks have uneven sizes, and the last one may be empty.
TEST(AxisLayout, of_sizes_that_ranks_do_not_divide) {
  for (const std::string seq : {"9", "13", "63", "65"}) {
    const auto one = causal(seq, "cp=4");
    EXPECT_THAT(divided_axes_of(*one, named_form(*one, "zigzag_ring")),
                ElementsAre(Pair("Sq", AxisLayout::Zigzag), Pair("Skv", AxisLayout::Zigzag)))
        << seq;
    EXPECT_THAT(
        divided_axes_of(*one, named_form(*one, "ring")),
        ElementsAre(Pair("Sq", AxisLayout::Contiguous), Pair("Skv", AxisLayout::Contiguous)))
        << seq;
  }
}

TEST(AxisLayout, of_what_is_neither_is_other) {
  const auto one = causal("64", "cp=4");
  NormalForm form = named_form(*one, "zigzag_ring");
  for (Layout& layout : form.layouts) {
    layout.map = {.function = "stripe", .args = {layout.map.args.front()}};
  }
  EXPECT_THAT(divided_axes_of(*one, form),
              ElementsAre(Pair("Sq", AxisLayout::Other), Pair("Skv", AxisLayout::Other)));
  form = named_form(*one, "ring");
  for (const std::string axis : {"Sq", "Skv"}) {  // contiguous, but not in the ranks' order
    form.layouts.push_back({.axis = axis, .map = {.function = "table", .args = {1L, 0L, 2L, 3L}}});
  }
  EXPECT_THAT(divided_axes_of(*one, form),
              ElementsAre(Pair("Sq", AxisLayout::Other), Pair("Skv", AxisLayout::Other)));
}

TEST(Constraints, name_what_breaks_them) {
  const auto one = causal("64", "cp=4");
  const NormalForm zigzag = named_form(*one, "zigzag_ring");
  const auto refusal = [&](const Constraints& constraints) {
    const auto kept = check_constraints(one->program, one->mesh, zigzag, constraints);
    return kept.ok() ? "" : render(kept.error());
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.homes = {}, .layout = AxisLayout::Zigzag}), "");
  EXPECT_EQ(refusal({.homes = {}, .layout = AxisLayout::Contiguous}),
            "error[I311]: `layout of Sq` must be contiguous, but is zigzag");
  const Place k{.buffer = "k", .at = {}, .partial = {}};
  EXPECT_EQ(refusal({.homes = {k}, .layout = {}}),
            "error[I311]: `home of k` must be whole on every rank, but is Skv@cp");
}

// In every search, each answer keeps to the layout, answers of the other layout are excluded, and
// the best is proved.
TEST(Constraints, of_layouts_hold_for_all_that_a_search_answers) {
  for (const auto& [seq, mesh] : {std::pair{"64", "cp=2"},
                                  {"4096", "cp=4"},
                                  {"61", "cp=4"},
                                  {"8192", "cp=8"},
                                  {"8192", "node=2,gpu=4"}}) {
    const auto one = causal(seq, mesh);
    for (const Contract contract : {Contract::Standard, Contract::Free}) {
      for (const AxisLayout layout : {AxisLayout::Contiguous, AxisLayout::Zigzag}) {
        SearchOptions options = one->options();
        options.cuts = 0;
        options.contract = contract;
        options.constraints.layout = layout;
        const auto found = search(one->program, one->mesh, one->machine, options);
        ASSERT_TRUE(found.ok()) << render(found.error());
        for (const auto* const list : {&found->top, &found->front}) {
          for (const Evaluated& each : *list) {
            for (const auto& [axis, held] : divided_axes_of(*one, each.form)) {
              if (axis == "Sq" || axis == "Skv") {
                EXPECT_EQ(held, layout) << each.label << " on " << mesh;
              }
            }
          }
        }
        const Checked<Plan> best = lower(one->program, one->mesh, found->top.front().form);
        ASSERT_TRUE(best.ok());
        EXPECT_TRUE(verify(*best).ok()) << found->top.front().label;
        const std::string broken =
            layout == AxisLayout::Zigzag ? "but is contiguous" : "but is zigzag";
        EXPECT_TRUE(std::ranges::any_of(found->refused, [&](const Refused& refused) {
          return refused.reason.find(broken) != std::string::npos && refused.count > 0;
        }));
      }
    }
  }
}

// Tests the whole space, not only the best. The candidates of both layouts are all candidates.
TEST(Constraints, of_layouts_leave_only_candidates_that_keep_to_them) {
  const auto one = causal("64", "node=2,gpu=2");
  for (const Contract contract : {Contract::Standard, Contract::Free}) {
    const auto count = [&](const std::optional<AxisLayout>& layout) {
      const auto skeletons =
          enumerate_skeletons(one->problem, {.contract = contract, .cuts = 0, .layout = layout});
      for (const Candidate& each : skeletons) {
        const NormalForm form = form_of(one->problem, one->machine, each);
        const auto kept =
            check_constraints(one->program, one->mesh, form, {.homes = {}, .layout = layout});
        EXPECT_TRUE(kept.ok()) << render(kept.error()) << "\n" << print(form);
      }
      return std::ssize(skeletons);
    };
    const auto contiguous = count(AxisLayout::Contiguous);
    const auto zigzag = count(AxisLayout::Zigzag);
    EXPECT_GT(contiguous, 0);
    EXPECT_GT(zigzag, 0);
    if (contract == Contract::Free) continue;  // homes of one axis may differ here
    EXPECT_EQ(contiguous + zigzag, count(std::nullopt));
  }
}

// The table of positions is long here.
TEST(Constraints, of_zigzag_hold_on_many_ranks) {
  const auto one =
      make_case({"attention", {"seq=4096", "causal=true"}, "node=16,gpu=8", "h200x8x16"});
  SearchOptions options = one->options();
  options.constraints.layout = AxisLayout::Zigzag;
  const auto problem = make_problem(one->program, one->mesh, one->standard, options);
  ASSERT_TRUE(problem.ok());
  auto skeletons = enumerate_skeletons(
      *problem, {.contract = Contract::Standard, .cuts = 0, .layout = AxisLayout::Zigzag});
  ASSERT_GT(skeletons.size(), 8U);
  skeletons.resize(8);
  for (const Candidate& each : skeletons) {
    const NormalForm form = form_of(*problem, one->machine, each);
    const auto kept = check_constraints(one->program, one->mesh, form, options.constraints);
    EXPECT_TRUE(kept.ok()) << render(kept.error());
  }
}

TEST(Constraints, that_nothing_keeps_say_why) {
  // Two positions per rank are too few for the two halves of a zigzag.
  const auto one = causal("4", "cp=4");
  SearchOptions options = one->options();
  options.constraints.layout = AxisLayout::Zigzag;
  const auto found = search(one->program, one->mesh, one->machine, options);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, DiagCode::S704);
  EXPECT_THAT(render(found.error()), HasSubstr("`layout of Sq` must be zigzag, but is contiguous"));
}

}  // namespace
}  // namespace harpe
