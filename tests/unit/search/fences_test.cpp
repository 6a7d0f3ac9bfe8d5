#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "search/evaluator.h"
#include "search/form_variants.h"
#include "search/search.h"
#include "support/check.h"
#include "tests/unit/search/cases.h"

namespace harpe {
namespace {

// Two nodes whose NICs delay signals and whose quiets are long.
Machine held_back(double drain_us, double gap_us) {
  Machine machine = node_machine({.nodes = 2, .gpus = 2});
  MachineLevel& rail = machine.levels.back();
  rail.proxy_word = from_microseconds(0.5);
  rail.nic_fence = from_microseconds(gap_us);
  machine.completions.push_back(
      {.level = rail.name, .groups = 2, .time = from_microseconds(drain_us), .from = {}});
  return machine;
}

std::vector<Fence> fences_in(const NormalForm& form) {
  std::vector<Fence> fences;
  for (const NestForm& nest : form.nests) {
    for (const NestItem& item : nest.items) {
      const auto* const move = std::get_if<Move>(&item);
      if (move != nullptr && move->via == Via::Proxy) fences.push_back(move->fence_policy());
    }
  }
  return fences;
}

TEST(Fences, vary_in_all_puts_and_in_nothing_else) {
  const auto one =
      make_named_case({"attention", {"seq=1024", "heads=4"}, "node=2,gpu=2"}, held_back(20, 1));
  NormalForm form = named_form(*one, "double_ring");
  EXPECT_TRUE(fence_variants_of(form, one->machine).empty());  // the form has no puts
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      if (auto* const move = std::get_if<Move>(&item)) move->via = Via::Proxy;
    }
  }
  std::set<Fence> seen;
  for (const FormVariant& variant : fence_variants_of(form, one->machine)) {
    const std::vector<Fence> fences = fences_in(variant.form);
    ASSERT_FALSE(fences.empty());
    EXPECT_TRUE(std::ranges::all_of(fences, [&](Fence f) { return f == fences.front(); }));
    seen.insert(fences.front());
  }
  EXPECT_TRUE(seen.contains(Fence::Batched) && seen.contains(Fence::OneQuiet));
  EXPECT_FALSE(seen.contains(Fence::Immediate));  // without `proxy_count`
  Machine counting = one->machine;
  counting.levels.back().proxy_count = from_microseconds(0.1);
  EXPECT_EQ(fence_variants_of(form, counting).size(),
            fence_variants_of(form, one->machine).size() + 1);
}

// For any cost of a quiet and of the NIC's gap, the chosen fence is no slower than any other fence
// for the same puts.
TEST(Fences, are_chosen_by_what_they_cost) {
  std::set<Fence> chosen;
  for (const auto& [drain, gap] : {std::pair(500.0, 0.1), std::pair(0.1, 500.0)}) {
    const auto one =
        make_case({"attention", {"seq=8192", "heads=4", "head_dim=64"}, "node=2,gpu=2"},
                  held_back(drain, gap));
    const Checked<SearchResult> result =
        search(one->program, one->mesh, one->machine, one->options());
    ASSERT_TRUE(result.ok());
    const Evaluated& best = result->top.front();
    SimulationEvaluator evaluator(one->program, one->mesh, one->machine, {});
    for (const FormVariant& variant : fence_variants_of(best.form, one->machine)) {
      const Checked<Evaluation> other = evaluator.evaluate(variant.form);
      ASSERT_TRUE(other.ok());
      EXPECT_LE(best.time(), other->time) << variant.change;
    }
    for (const Fence fence : fences_in(best.form)) chosen.insert(fence);
  }
  EXPECT_FALSE(chosen.contains(Fence::PerPut));
}

}  // namespace
}  // namespace harpe
