#include "tests/multihost/executor/crew.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "compile/machines.h"
#include "run/run.h"
#include "schedule/fit.h"
#include "verify/verify.h"

namespace harpe::test {
namespace {

std::string new_address() {
  static std::atomic<int> count{0};
  return "unix:@harpe-executor-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

Request request_of(const Case& one) {
  return {.target = one.target,
          .parameters = one.parameters,
          .mesh = one.mesh,
          .schedule = one.schedule};
}

}  // namespace

Plan plan_of(const Case& one, std::optional<Fence> fence) {
  Session session(false);
  const Request request = request_of(one);
  Scheduled scheduled = session.schedule(request).value();
  if (one.hosts > 1) {
    const Machine machine = machine_of_hosts(one.hosts, scheduled.mesh.ranks() / one.hosts);
    scheduled.form = fit_transports(scheduled.form, scheduled.mesh, machine).form;
  }
  for (NestForm& nest : scheduled.form.nests) {
    for (NestItem& item : nest.items) {
      Move* const move = std::get_if<Move>(&item);
      if (fence && move != nullptr && move->transport() == Via::Proxy) move->fence = fence;
    }
  }
  Plan plan = session.lower(scheduled).value();
  const auto certificate = verify(plan);
  EXPECT_TRUE(certificate.ok()) << render(certificate.error());
  return plan;
}

TensorMap draw_inputs(const Plan& plan) { return prepare_run(plan, {.seed = 7}).value(); }

std::vector<Checked<std::unique_ptr<Executor>>> make_in_every_process(
    const std::vector<Plan>& plans, int hosts, const Alter& alter) {
  const std::string address = new_address();
  const int processes = static_cast<int>(plans.size());
  std::vector<std::optional<Checked<std::unique_ptr<Executor>>>> made(plans.size());
  {
    std::vector<std::jthread> threads;
    for (int process = 0; process < processes; ++process) {
      threads.emplace_back([&, process] {
        CpuOptions options;
        options.workers = 1;
        options.launch = processes::Launch{.rank = process,
                                           .ranks = processes,
                                           .local_rank = process % (processes / hosts),
                                           .local_ranks = processes / hosts,
                                           .address = address,
                                           .interface = "lo",
                                           .secret = "sesame"};
        if (alter) alter(process, options);
        made[static_cast<std::size_t>(process)] =
            make_cpu_executor(plans[static_cast<std::size_t>(process)], options);
      });
    }
  }
  std::vector<Checked<std::unique_ptr<Executor>>> all;
  for (auto& one : made) all.push_back(*std::move(one));
  return all;
}

void in_every_process(const Plan& plan, int processes, int hosts, const Alter& alter,
                      const std::function<void(int process, Executor& executor)>& use) {
  auto made = make_in_every_process(std::vector<Plan>(static_cast<std::size_t>(processes), plan),
                                    hosts, alter);
  const TensorMap inputs = draw_inputs(plan);
  std::vector<std::jthread> threads;
  for (int process = 0; process < processes; ++process) {
    auto& executor = made[static_cast<std::size_t>(process)];
    ASSERT_TRUE(executor.ok()) << render(executor.error());
    threads.emplace_back([&, process] {
      for (const auto& [name, tensor] : inputs) (void)(*executor)->set_input(name, tensor).value();
      use(process, **executor);
    });
  }
}

}  // namespace harpe::test
