#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "exec/executor.h"
#include "exec/processes/launch_environment.h"
#include "plan/plan.h"
#include "transport/rendezvous.h"

namespace harpe::processes {

// How many consecutive ranks of the plan each process has. Errors: N016 if they do not divide
// evenly.
[[nodiscard]] Checked<std::int64_t> ranks_of_each(const Launch& launch, const Plan& plan);

// The processes that run a plan together, and their exchanges. All of them make every call, in the
// same order. Launchers call a process a rank.
class ProcessGroup {
 public:
  // Calls `warn` for each process that is refused while this one waits for the others. Errors: N010
  // to N014 the processes do not meet; X018.
  [[nodiscard]] static Checked<ProcessGroup> meet(const Launch& launch,
                                                  const std::function<void(const Diag&)>& warn);

  [[nodiscard]] int rank() const { return rendezvous_->rank(); }
  [[nodiscard]] int size() const { return rendezvous_->ranks(); }
  [[nodiscard]] int local_rank() const { return local_rank_; }
  [[nodiscard]] transport::Exchange& exchange() { return *rendezvous_; }

  // Returns once every process has reported whether it could do its part so far. Errors: `failure`,
  // if this process could not; N017 if another could not; N010.
  [[nodiscard]] Checked<Ok> agree(const std::optional<Diag>& failure);
  // Errors: N015, N010.
  [[nodiscard]] Checked<Ok> compare(const std::string& hash);
  // Barrier. Errors: N010.
  [[nodiscard]] Checked<Ok> wait_for_all();

  // While the result lives, another thread calls `stop`, perhaps more than once, when a process has
  // exited or stopped. Requires: no other call in the meantime.
  [[nodiscard]] std::jthread watch(std::function<void()> stop);
  // The first process that has exited or did not answer in time.
  [[nodiscard]] std::optional<int> lost() const { return rendezvous_->lost(); }

  // What a process reports once its executions are over, or its silence.
  struct Answer {
    std::optional<transport::Blob> said;
    bool is_lost = false;  // it has exited or hangs; unknown if no process reports it
  };
  // Gathers the answers of all processes; this process's is `own`. If this process has failed, it
  // tells the others to stop. It waits for a process with more work as long as it hears from it; a
  // process that is silent for longer than a wait may take, plus one second, is lost. Requires:
  // executions were watched until now.
  [[nodiscard]] std::vector<Answer> conclude(std::span<const std::byte> own, bool is_fine,
                                             std::chrono::milliseconds wait_limit);
  // Each execution's time in the process where it took longest.
  [[nodiscard]] Checked<std::vector<std::chrono::nanoseconds>> longest_of(
      std::vector<std::chrono::nanoseconds> times);
  // The events of a traced execution, of all processes.
  [[nodiscard]] Checked<std::vector<TraceEvent>> events_of_all(std::vector<TraceEvent> own);
  [[nodiscard]] Checked<std::vector<KernelEvent>> events_of_all(std::vector<KernelEvent> own);

 private:
  ProcessGroup(std::unique_ptr<transport::Rendezvous> rendezvous, int local_rank)
      : rendezvous_(std::move(rendezvous)), local_rank_(local_rank) {}

  template <class Event>
  [[nodiscard]] Checked<std::vector<Event>> gather(std::span<const Event> own);

  std::unique_ptr<transport::Rendezvous> rendezvous_;
  int local_rank_;
};

// With several processes, an error in one of them is an error of all.
template <class T>
Checked<T> agreed(std::optional<ProcessGroup>& group, Checked<T> own) {
  if (!group) return own;
  HP_REQUIRE_OK(group->agree(own.ok() ? std::nullopt : std::optional(own.error())));
  return own;
}

}  // namespace harpe::processes
