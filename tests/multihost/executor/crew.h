#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/cpu/cpu_executor.h"
#include "ir/interpret.h"
#include "run/hosts.h"

namespace harpe::test {

// An operator with a schedule, on processes of several hosts. In these tests a process is a thread.
struct Case {
  std::string target;
  std::vector<std::string> parameters;
  std::string mesh;
  std::string schedule;
  int processes = 1;
  int hosts = 1;
};

// The case's plan. Transfers between hosts use the proxy, under `fence` if given. Fails the test if
// there is no such plan or it does not verify.
[[nodiscard]] Plan plan_of(const Case& one, std::optional<Fence> fence = std::nullopt);
[[nodiscard]] TensorMap draw_inputs(const Plan& plan);

// Changes the options of one process.
using Alter = std::function<void(int process, CpuOptions& options)>;

// Runs `use` on every process's executor, whose inputs are set.
void in_every_process(const Plan& plan, int processes, int hosts, const Alter& alter,
                      const std::function<void(int process, Executor& executor)>& use);
// The same, but returns the executors or their refusals.
[[nodiscard]] std::vector<Checked<std::unique_ptr<Executor>>> make_in_every_process(
    const std::vector<Plan>& plans, int hosts, const Alter& alter);

}  // namespace harpe::test
