#include "support/threads.h"

#include "support/limits.h"

namespace harpe {

ThreadRefused::ThreadRefused(int error)
    : std::runtime_error("a thread is refused"), diag_(no_more(Limited::Threads, error)) {}

Threads::Threads(std::size_t count, std::function<void(std::size_t)> body)
    : body_(std::move(body)), running_(count) {
  threads_.reserve(count);
  try {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.push_back(start_thread([this, i] { run(i); }));
    }
  } catch (...) {
    set(Gate::Cancelled);
    throw;
  }
  set(Gate::Open);
}

void Threads::set(Gate gate) {
  gate_.store(gate, std::memory_order_release);
  gate_.notify_all();
}

void Threads::run(std::size_t i) {
  gate_.wait(Gate::Closed, std::memory_order_acquire);
  if (gate_.load(std::memory_order_acquire) == Gate::Cancelled) return;
  std::exception_ptr error;
  try {
    body_(i);
  } catch (...) {  // a thread's last frame: `join` rethrows it
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr) error_ = error;
  --running_;
  ended_.notify_all();
}

bool Threads::end_within(std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, pause, [this] { return running_ == 0; });
}

void Threads::join() {
  threads_.clear();
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void run_in_threads(std::size_t count, std::function<void(std::size_t)> body) {
  Threads(count, std::move(body)).join();
}

}  // namespace harpe
