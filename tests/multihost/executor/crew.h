#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/cpu/cpu_executor.h"
#include "ir/interpret.h"
#include "run/hosts.h"

namespace harpe::test {

// An operator with a schedule, on processes of several hosts; here each process is a thread.
struct Case {
  std::string target;
  std::vector<std::string> parameters;
  std::string mesh;
  std::string schedule;
  int processes = 1;
  int hosts = 1;
};

// What crosses hosts goes by proxy, with this policy where one is given. Fails the test where there
// is no such plan, or it does not verify.
[[nodiscard]] Plan plan_of(const Case& one, std::optional<Fence> fence = std::nullopt);
[[nodiscard]] TensorMap draw_inputs(const Plan& plan);

// How the options of a process differ from those of the others.
using Alter = std::function<void(int process, CpuOptions& options)>;

// Of each process what `use` makes of its executor, which has its inputs.
void in_every_process(const Plan& plan, int processes, int hosts, const Alter& alter,
                      const std::function<void(int process, Executor& executor)>& use);
// The same for what making an executor comes to.
[[nodiscard]] std::vector<Checked<std::unique_ptr<Executor>>> make_in_every_process(
    const std::vector<Plan>& plans, int hosts, const Alter& alter);

}  // namespace harpe::test
