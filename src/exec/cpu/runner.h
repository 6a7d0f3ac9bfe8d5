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

// How a run went.
struct RunOutcome {
  bool finished = false;
  std::vector<std::int32_t> lost = {};  // queues whose worker ended at their head
  std::chrono::milliseconds idle{0};    // how long nothing had moved when the run was given up
  std::chrono::nanoseconds cpu_time{0};
  // Why it was given up before anything had expired.
  std::optional<transport::TransportError> network = std::nullopt;
  bool is_told = false;  // another process has stopped or is gone
};

// Takes every queue through the executions that `marking` has opened, or gives up when no task has
// run for `run.wait_limit`, in this process or in any that it hears of through the network, or
// `run.progress` says so. All threads have ended when it returns. `network`: null where there are
// no other processes.
[[nodiscard]] RunOutcome run_queues(Marking& marking, const CpuOptions& options,
                                    const RunOptions& run, Network* network);

[[nodiscard]] RunOutcome run_pool(Marking& marking, const CpuOptions& options,
                                  const RunOptions& run, Network* network);
[[nodiscard]] RunOutcome run_threads(Marking& marking, const CpuOptions& options,
                                     const RunOptions& run, Network* network);
[[nodiscard]] RunOutcome run_stepper(Marking& marking, const CpuOptions& options);

// The threads of one run and what they tell the one that started them. It alone watches the clock:
// a wait is bounded because a run in which nothing moves is stopped.
class Crew {
 public:
  // `stop` makes every thread's body return soon; called from the watching thread.
  Crew(Marking& marking, CpuOptions options, Network* network, std::function<void()> stop);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Starts a thread, or throws ThreadRefused. What its body throws stops the run and is thrown
  // again by `watch`.
  void start(std::function<void()> body);
  // Where there is a network, a thread that looks at it until all queues are finished; before
  // `watch`.
  void start_lookout(Marking::Wake wake);
  // One step of a queue, on behalf of a thread. False: this thread is lost and must end.
  [[nodiscard]] bool take_step(std::int32_t queue, const Marking::Wake& wake);
  [[nodiscard]] bool is_over() const { return unfinished_ == 0; }  // all queues are finished
  // Waits until all threads have ended, stopping them when nothing moves for too long or the caller
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
  std::int64_t all_steps_;                   // to be taken
  std::atomic<std::int32_t> unfinished_{0};  // queues
  std::atomic<bool> is_stopped_{false};
  std::atomic<std::int64_t> steps_{0};     // taken: progress
  std::atomic<std::int64_t> running_{0};   // being taken now
  std::atomic<bool> losing_{true};         // the worker to lose is not lost yet
  std::atomic<std::int64_t> cpu_time_{0};  // nanoseconds of ended threads

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t alive_ = 0;  // guarded by mutex_, as are:
  std::vector<std::int32_t> lost_;
  std::exception_ptr error_;
};

}  // namespace harpe::cpu
