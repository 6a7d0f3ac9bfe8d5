#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "exec/cpu/marking.h"
#include "exec/cpu/network.h"
#include "exec/cpu/options.h"
#include "support/threads.h"

namespace harpe::cpu {

// The result of a run.
struct RunOutcome {
  bool finished = false;
  std::vector<std::int32_t> lost = {};  // queues whose worker ended at their head
  std::chrono::milliseconds idle{0};    // how long nothing had moved when the run gave up
  std::chrono::nanoseconds cpu_time{0};
  // The error for which it gave up before a wait expired.
  std::optional<transport::TransportError> network = std::nullopt;
  bool is_told = false;  // another process has stopped or exited
};

// Runs every queue through the executions that `marking` has opened. Gives up when no task has run
// for `run.wait_limit`, in this process or in any other that reports progress through the network,
// or when `run.progress` returns false. All threads have ended when it returns. `network`: null
// without other processes.
[[nodiscard]] RunOutcome run_queues(Marking& marking, const CpuOptions& options,
                                    const RunOptions& run, Network* network);

[[nodiscard]] RunOutcome run_pool(Marking& marking, const CpuOptions& options,
                                  const RunOptions& run, Network* network);
[[nodiscard]] RunOutcome run_threads(Marking& marking, const CpuOptions& options,
                                     const RunOptions& run, Network* network);
[[nodiscard]] RunOutcome run_stepper(Marking& marking, const CpuOptions& options);

// The threads of one run and their results. Only the watching thread looks at the clock: waits are
// bounded because a run without progress is stopped.
class Crew {
 public:
  // `stop` makes every thread's body return soon; called from the watching thread.
  Crew(Marking& marking, CpuOptions options, Network* network, std::function<void()> stop);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Starts a thread, or throws ThreadRefused. An exception of its body stops the run and is
  // rethrown by `watch`.
  void start(std::function<void()> body);
  // With a network, starts a thread that polls it until all queues are finished; call before
  // `watch`.
  void start_lookout(Marking::Wake wake);
  // Takes one step of a queue. False: the calling thread is lost and must end.
  [[nodiscard]] bool take_step(std::int32_t queue, const Marking::Wake& wake);
  [[nodiscard]] bool is_over() const { return unfinished_ == 0; }  // all queues are finished
  // Waits until all threads have ended; stops them when nothing moves for too long or the caller
  // gives up.
  [[nodiscard]] RunOutcome watch(const RunOptions& run);

 private:
  void look_out(const Marking::Wake& wake);
  [[nodiscard]] bool is_hopeless() const;
  void run_body(const std::function<void()>& body);

  Marking& marking_;
  CpuOptions options_;
  Network* network_;
  std::function<void()> stop_;
  std::vector<std::jthread> threads_;
  std::int64_t all_steps_;                   // of all queues
  std::atomic<std::int32_t> unfinished_{0};  // queues
  std::atomic<bool> is_stopped_{false};
  std::atomic<std::int64_t> steps_{0};     // taken
  std::atomic<std::int64_t> running_{0};   // in progress
  std::atomic<bool> losing_{true};         // the worker to lose is not lost yet
  std::atomic<std::int64_t> cpu_time_{0};  // nanoseconds of ended threads

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t alive_ = 0;  // guarded by mutex_, as are:
  std::vector<std::int32_t> lost_;
  std::exception_ptr error_;
};

}  // namespace harpe::cpu
