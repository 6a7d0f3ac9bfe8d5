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

// How many ranks of the plan each process has: the first the first so many, and so on. Errors: N016
// where they do not share out.
[[nodiscard]] Checked<std::int64_t> ranks_of_each(const Launch& launch, const Plan& plan);

// The processes that run a plan together: what they tell each other. Every call is made by all of
// them, in the same order. A process is what launchers call a rank.
class ProcessGroup {
 public:
  // `warn` is told of who is refused while the others are waited for. Errors: N010 to N014 they do
  // not come together; X018.
  [[nodiscard]] static Checked<ProcessGroup> meet(const Launch& launch,
                                                  const std::function<void(const Diag&)>& warn);

  [[nodiscard]] int rank() const { return rendezvous_->rank(); }
  [[nodiscard]] int size() const { return rendezvous_->ranks(); }
  [[nodiscard]] int local_rank() const { return local_rank_; }
  [[nodiscard]] transport::Exchange& exchange() { return *rendezvous_; }

  // Goes on once all could do what comes next. Errors: `failure`, where this one could not; N017
  // another could not; N010.
  [[nodiscard]] Checked<Ok> agree(const std::optional<Diag>& failure);
  // Errors: N015, N010.
  [[nodiscard]] Checked<Ok> compare(const std::string& hash);
  // Waits for the others. Errors: N010.
  [[nodiscard]] Checked<Ok> wait_for_all();

  // While the result lives: `stop` once a process is gone or has stopped, in another thread,
  // perhaps more than once. No other call meanwhile.
  [[nodiscard]] std::jthread watch(std::function<void()> stop);
  // The first that is gone, or did not answer in time.
  [[nodiscard]] std::optional<int> lost() const { return rendezvous_->lost(); }

  // What a process says once its executions are over, or its silence.
  struct Answer {
    std::optional<transport::Blob> said;
    bool is_lost = false;  // it answers no more; not known where nobody says so
  };
  // Of every process; its own is `own`. Where this one is not fine, the others are told to stop.
  // Who has more to do is waited for as long as it is heard of: silent for longer than a wait may
  // take, and a second, it is lost. Requires: executions were watched until now.
  [[nodiscard]] std::vector<Answer> conclude(std::span<const std::byte> own, bool is_fine,
                                             std::chrono::milliseconds wait_limit);
  // Each execution's time in the process where it took longest.
  [[nodiscard]] Checked<std::vector<std::chrono::nanoseconds>> longest_of(
      std::vector<std::chrono::nanoseconds> times);
  // What a traced execution left, of all processes.
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

// Where there are other processes, what one of them could not do is an error of all.
template <class T>
Checked<T> agreed(std::optional<ProcessGroup>& group, Checked<T> own) {
  if (!group) return own;
  HP_REQUIRE_OK(group->agree(own.ok() ? std::nullopt : std::optional(own.error())));
  return own;
}

}  // namespace harpe::processes
