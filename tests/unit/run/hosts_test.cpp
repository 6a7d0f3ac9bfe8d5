#include "run/hosts.h"

#include <gtest/gtest.h>

#include "compile/machines.h"
#include "sim/simulate.h"

namespace harpe {
namespace {

constexpr int kHosts = 2;

Request request_for(const std::string& op, const std::string& mesh) {
  Request request{.target = op, .parameters = {}, .mesh = mesh};
  if (op == "attention" || op == "attention_bwd") request.parameters = {"seq=64", "heads=4"};
  if (op == "decode") request.parameters = {"kv=64", "heads=4"};
  if (op == "moe") request.parameters = {"tokens=64", "hidden=8", "experts=8", "inter=8"};
  if (op.find("gemm") != std::string::npos) request.parameters = {"m=8"};
  return request;
}

Checked<FittedPlan> plan_between(const Request& request) {
  Session session(false);
  return plan_for_hosts(session, request, {.ranks = kHosts, .local_ranks = 1});
}

TEST(Hosts, get_from_auto_what_runs_between_them) {
  for (const std::string op : {"gemm", "ag_gemm", "gemm_rs", "gemm_ar", "gemm_ar_norm", "attention",
                               "attention_bwd", "decode", "moe"}) {
    for (const std::string mesh : {"a=2", "a=4", "a=2,b=2"}) {
      const Checked<FittedPlan> fitted = plan_between(request_for(op, mesh));
      ASSERT_TRUE(fitted.ok()) << op << " on " << mesh << ": " << render(fitted.error());
      const std::int64_t each = fitted->plan.mesh.ranks() / kHosts;
      EXPECT_TRUE(check_fits(fitted->plan, machine_of_hosts(kHosts, each)).ok());
    }
  }
}

TEST(Hosts, get_from_auto_what_runs_between_them_for_another_machine) {
  Request request = request_for("gemm", "a=4");
  request.machine = "h200x8";
  const Checked<FittedPlan> fitted = plan_between(request);
  EXPECT_TRUE(fitted.ok()) << render(fitted.error());
}

TEST(Hosts, that_do_not_share_the_ranks_out_are_named_as_they_were_given) {
  Session session(false);
  const auto refused = plan_for_hosts(session, request_for("gemm", "a=3"),
                                      {.ranks = 2, .local_ranks = 1, .local_ranks_by = "--hosts"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(render(refused.error()).find("`--hosts` makes 2 hosts"), std::string::npos)
      << render(refused.error());
}

}  // namespace
}  // namespace harpe
