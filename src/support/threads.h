#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/diag.h"

namespace harpe {

// The only code that starts threads.

// The system refused a thread. Passes through to the boundaries, like std::bad_alloc.
class ThreadRefused : public std::runtime_error {
 public:
  explicit ThreadRefused(int error);
  [[nodiscard]] const Diag& diag() const { return diag_; }  // X018

 private:
  Diag diag_;
};

// Starts a thread. If its body takes a std::stop_token, the destructor requests a stop and joins.
// An exception of the body ends the process. Throws ThreadRefused.
template <class Body>
[[nodiscard]] std::jthread start_thread(Body&& body) {
  try {
    return std::jthread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw ThreadRefused(error.code().value());
  }
}

// Runs body(i) for each i below `count`, each in its own thread. No body begins before all threads
// exist, because one body may wait for another.
class Threads {
 public:
  // Throws ThreadRefused; then no body has begun.
  Threads(std::size_t count, std::function<void(std::size_t)> body);
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // True if all have ended; waits up to `pause` for that.
  [[nodiscard]] bool end_within(std::chrono::milliseconds pause);
  // Waits until all have ended, as the destructor does. Rethrows the first exception of a body.
  void join();

 private:
  enum class Gate : int { Closed, Open, Cancelled };
  void run(std::size_t i);
  void set(Gate gate);

  std::function<void(std::size_t)> body_;
  std::atomic<Gate> gate_{Gate::Closed};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;            // guarded by mutex_
  std::exception_ptr error_;           // guarded by mutex_
  std::vector<std::jthread> threads_;  // last: they end before the members that they use
};

// The same, and waits until all have ended.
void run_in_threads(std::size_t count, std::function<void(std::size_t)> body);

}  // namespace harpe
