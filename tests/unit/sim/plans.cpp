#include "tests/unit/sim/plans.h"

#include "compile/launches.h"
#include "compile/session.h"
#include "support/check.h"

namespace harpe {
namespace {

std::string text_of(const std::string& levels, double teraflops) {
  return "machine plain {\n"
         "  about \"round figures\"\n"
         "  processor p sms=4 memory=64gib bandwidth=1000gbs cache=1mib kernel_start=2us "
         "kernel_issue=3us event=1us from assumed \"round\"\n" +
         levels + "  rate matmul * peak=" + std::to_string(teraflops) +
         "tflops tile_rows=1 tile_columns=1 half_depth=0 memory_share=1 start=0us from assumed "
         "\"round\"\n"
         "  rate attn_fwd * peak=" +
         std::to_string(teraflops) +
         "tflops tile_rows=1 tile_columns=0 half_depth=0 memory_share=1 start=0us from assumed "
         "\"round\"\n"
         "  rate * * memory_share=1 start=0us from assumed \"round\"\n"
         "}\n";
}

std::string level_of(const std::string& name, const std::string& kind, int size) {
  return "  level " + name + " " + kind + " size=" + std::to_string(size) +
         " bandwidth=100gbs latency=1us from assumed \"round\"\n"
         "  transport ce at " +
         name +
         " start=4us bandwidth=100gbs from assumed \"round\"\n"
         "  transport sm at " +
         name +
         " start=2us bandwidth=50gbs sms=1 from assumed \"round\"\n"
         "  transport nccl at " +
         name +
         " start=10us bandwidth=100gbs sms=1 from assumed "
         "\"round\"\n";
}

Machine parsed(const std::string& text) {
  Checked<Machine> machine = parse_machine(text, "plain.machine");
  HP_CHECK(machine.ok(), render(machine.error()));
  return std::move(machine).value();
}

}  // namespace

Plan plan_of(const std::string& target, const std::vector<std::string>& parameters,
             const std::string& mesh, const std::string& schedule) {
  Session session(false);
  Checked<Plan> plan = session.plan({.target = target,
                                     .parameters = parameters,
                                     .inputs = {},
                                     .mesh = mesh,
                                     .schedule = schedule});
  HP_CHECK(plan.ok(), render(plan.error()));
  return std::move(plan).value();
}

Machine plain_machine(double teraflops) {
  return parsed(text_of(level_of("link", "switch", 16), teraflops));
}

Machine paired_machine(double teraflops) {
  return parsed(
      text_of(level_of("link", "switch", 2) +
                  "  level rail rail size=8 bandwidth=10gbs latency=5us messages=1000000 "
                  "proxy_post=1us proxy_fence=20us from assumed \"round\"\n"
                  "  transport proxy at rail start=2us bandwidth=10gbs from assumed \"round\"\n"
                  "  transport nccl at rail start=20us bandwidth=10gbs sms=1 from assumed "
                  "\"round\"\n",
              teraflops));
}

Machine h200() {
  return parse_machine(find_machine_preset("h200x8")->text, "h200x8.machine").value();
}

launch::LaunchPlan launched_by_h200(const Plan& plan) { return launches_on(plan, h200()); }

}  // namespace harpe
