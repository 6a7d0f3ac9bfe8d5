#include "compile/session.h"

#include <gtest/gtest.h>

#include "compile/certify.h"
#include "compile/describe.h"
#include "compile/plan_file.h"
#include "compile/schedule_file.h"
#include "compile/schedule_names.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "schedule/named/registry.h"
#include "support/hash.h"
#include "tests/support/plans.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

std::vector<std::string> small_parameters(std::string_view op) {
  if (op == "decode") return {"kv=50", "heads=4"};
  if (op.starts_with("attention")) return {"seq=50", "heads=4"};
  if (op.starts_with("moe")) return {"tokens=50", "hidden=6", "experts=9", "inter=4"};
  return {"m=50", "n=22", "k=31"};
}

TEST(Session, makes_and_certifies_every_named_schedule_on_three_and_four_ranks) {
  for (const Operator& op : all_operators()) {
    for (const std::string mesh : {"x=3", "x=2,y=2"}) {
      for (const NamedSchedule& schedule : schedules_of(op.name)) {
        Session session(true);
        const Checked<Plan> plan = session.plan({.target = std::string(op.name),
                                                 .parameters = small_parameters(op.name),
                                                 .mesh = mesh,
                                                 .schedule = std::string(schedule.name)});
        if (!plan.ok()) {
          EXPECT_EQ(info(plan.error().code).name.substr(0, 3), "S61") << render(plan.error());
          continue;
        }
        const Checked<Certificate> certificate = certify(*plan, level_for(*plan));
        EXPECT_TRUE(certificate.ok()) << op.name << " " << schedule.name << " on " << mesh << ": "
                                      << render(certificate.error());
      }
    }
  }
}

TEST(Session, keeps_what_led_to_a_plan) {
  Session session(false);
  ASSERT_TRUE(session
                  .plan({.target = "gemm",
                         .parameters = {"m=8", "n=8", "k=8"},
                         .mesh = "x=2",
                         .schedule = "ring"})
                  .ok());
  for (const std::string_view part :
       {"program gemm {", "mesh x2 = x:2", "schedule ring for gemm on x2",
        "commir ring for gemm on x2"}) {
    EXPECT_NE(session.reproduction().find(part), std::string::npos) << part;
  }
}

TEST(Session, takes_a_schedule_from_a_file_under_the_file_s_mesh_name) {
  const Scratch scratch;
  scratch.write(
      "s.sched",
      "schedule mine for gemm on anything {\n  tile(M, [2]) -> m0, m1\n  shard(a, m0, x)\n"
      "  shard(c, m0, x)\n  parallelize(mm, m0, x)\n}\n");
  Session session(true);
  const Checked<Plan> plan = session.plan(
      {.target = "gemm", .parameters = {}, .mesh = "x=2", .schedule = scratch.path("s.sched")});
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  EXPECT_EQ(plan->mesh.name, "anything");
  EXPECT_EQ(plan->form.name, "mine");
}

TEST(Session, finds_the_family_of_a_user_s_program_by_its_leaf) {
  EXPECT_EQ(schedule_family(template_of(*find_operator("gemm_rs"))), "gemm_rs");
  Program program = template_of(*find_operator("attention"));
  program.name = "mine";
  EXPECT_EQ(schedule_family(program), "attention");
  program.nests.front().stmts.front().leaf = "copy";
  EXPECT_EQ(schedule_family(program), "mine");
}

TEST(PlanFile, holds_the_tasks_of_few_ranks_and_the_hash_of_those_of_many) {
  const Plan few = make_plan("gemm", {"m=8", "n=8", "k=8"}, "x=2", "ring");
  EXPECT_NE(print_plan_file(few).find("\n  task 0 "), std::string::npos);
  const Plan many = make_plan("gemm", {"m=65", "n=4", "k=4"}, "x=65", "ring");
  const std::string text = print_plan_file(many);
  EXPECT_EQ(text.find("\n  task 0 "), std::string::npos);
  EXPECT_NE(text.find("\nplan ring for gemm on x65 derived \""), std::string::npos);
  const Checked<Plan> again = parse_plan_file(text, "many.plan");
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_EQ(*again, many);
}

TEST(PlanFile, of_many_ranks_is_refused_when_edited_or_derived_otherwise) {
  const Plan many = make_plan("gemm", {"m=65", "n=4", "k=4"}, "x=65", "ring");
  const std::string text = print_plan_file(many);
  std::string edited = text;
  edited.replace(edited.find("axis N = 4"), 10, "axis N = 5");
  EXPECT_EQ(parse_plan_file(edited, "p").error().code, DiagCode::V101);
  // With a matching hash the file is intact, but its tasks no longer follow from its program.
  std::string body = edited.substr(edited.find('\n') + 1);
  const std::string rehashed = "plan version 1 hash \"" + hash_text(body) + "\"\n" + body;
  EXPECT_EQ(render(parse_plan_file(rehashed, "p").error()),
            "error[I402]: the plan in `p` does not follow from its program, mesh and normal form; "
            "lower it again with this version");
}

TEST(Certify, says_how_much_was_checked) {
  const Plan plan = make_plan("attention", {"seq=2048"}, "cp=8", "ring");
  const Checked<Certificate> full = certify(plan, VerifyLevel::Full);
  const Checked<Certificate> reduced = certify(plan, VerifyLevel::Reduced);
  ASSERT_TRUE(full.ok() && reduced.ok());
  EXPECT_EQ(full->level, VerifyLevel::Full);
  EXPECT_EQ(reduced->level, VerifyLevel::Reduced);
  EXPECT_EQ(full->tasks, reduced->tasks);
  EXPECT_EQ(full->peak_bytes, reduced->peak_bytes);
  EXPECT_EQ(level_for(plan), VerifyLevel::Full);
}

// The memory that it computes without the plan is that of the plan.
TEST(Certify, speaks_of_a_schedule_without_its_plan) {
  const Plan plan = make_plan("attention", {"seq=2048"}, "cp=8", "ring");
  const Checked<Certificate> certificate = certify_schedule(plan.program, plan.mesh, plan.form);
  ASSERT_TRUE(certificate.ok()) << render(certificate.error());
  EXPECT_EQ(certificate->level, VerifyLevel::Reduced);
  EXPECT_FALSE(certificate->has_plan);
  EXPECT_EQ(certificate->cases, (std::vector<std::string>{"cp=3", "cp=4"}));
  EXPECT_EQ(certificate->peak_bytes, arena_bytes(plan));
  EXPECT_EQ(coverage_of(*certificate),
            "every block on cp=3 and cp=4; at full size the rules of the schedule and memory");
  const Checked<Certificate> small =
      certify_schedule(plan.program, plan.mesh, plan.form, {.memory_limit_bytes = 1000});
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code, DiagCode::V601);
}

TEST(Certify, at_the_reduced_level_finds_what_is_wrong_at_full_size) {
  Plan plan = make_plan("attention", {"seq=2048"}, "cp=8", "ring");
  const Checked<Certificate> certificate =
      certify(plan, VerifyLevel::Reduced, {.memory_limit_bytes = 1000});
  ASSERT_FALSE(certificate.ok());
  EXPECT_EQ(certificate.error().code, DiagCode::V601);
  plan.syncs.push_back({.from = plan.syncs.back().to, .to = plan.syncs.back().from});
  EXPECT_FALSE(certify(plan, VerifyLevel::Reduced).ok());
}

TEST(Describe, cancels_factors_of_a_dimension) {
  const Description attention = describe(template_of(*find_operator("attention")));
  EXPECT_EQ(attention.buffers[0].shape,
            (std::vector<std::string>{"batch", "seq", "heads", "head_dim"}));
  Program program = template_of(*find_operator("gemm"));
  std::get<Axis>(program.decls[0]).size =
      Poly{.first = Name{"m"}, .rest = {{'+', Name{"n"}}, {'*', std::int64_t{2}}}};
  std::get<Buffer>(program.decls[3]).dims = {std::vector<std::string>{"M", "K"}, std::int64_t{7}};
  EXPECT_EQ(describe(program).buffers[0].shape, (std::vector<std::string>{"(m + n*2)*k", "7"}));
}

}  // namespace
}  // namespace harpe
