#include "compile/choose_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compile/session.h"

namespace harpe {
namespace {

struct Chosen {
  AutoForm choice;
  Picoseconds fastest;  // of all schedules that the search evaluated
  Picoseconds named;    // of those with a name
};

Chosen choose(const std::string& target, const std::vector<std::string>& parameters,
              const std::string& mesh) {
  const Request request{
      .target = target, .parameters = parameters, .mesh = mesh, .machine = "h200x8"};
  Session session(false);
  const Checked<Program> program = session.program(request);
  const Checked<Mesh> ranks = session.mesh(request);
  Checked<AutoForm> choice = choose_schedule(*program, *ranks, request, [](const Diag&) {});
  HP_CHECK(choice.ok() && choice->search, target);
  Chosen chosen{.choice = *std::move(choice), .fastest = {}, .named = {}};
  const SearchResult& search = *chosen.choice.search;
  chosen.fastest = std::ranges::min(search.top, {}, &Evaluated::time).time();
  chosen.named = search.baselines.front().time();
  return chosen;
}

// A schedule without a name is predicted 2 % faster than `fused` here; nobody has run it.
TEST(ChooseSchedule, takes_one_with_a_name_where_one_without_is_hardly_faster) {
  const Chosen chosen = choose("ag_gemm", {"m=320", "n=8192", "k=8192"}, "tp=8");
  EXPECT_LT(chosen.fastest, chosen.named);
  EXPECT_LT(chosen.named.value, chosen.fastest.value / 100 * 110);
  EXPECT_EQ(chosen.choice.form.name, "fused");
  EXPECT_EQ(chosen.choice.search->top.front().label, "fused");
}

TEST(ChooseSchedule, takes_one_without_a_name_where_it_is_faster_by_more_than_a_tenth) {
  const Chosen chosen = choose("ag_gemm", {"m=512", "n=57344", "k=8192"}, "tp=8");
  EXPECT_GT(chosen.named.value, chosen.fastest.value / 100 * 110);
  EXPECT_EQ(chosen.choice.form.name, kSearched);
}

}  // namespace
}  // namespace harpe
