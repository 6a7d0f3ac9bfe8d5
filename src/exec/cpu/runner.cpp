#include "exec/cpu/runner.h"

#include <algorithm>
#include <ctime>

#include "support/check.h"

namespace harpe::cpu {
namespace {

std::int64_t thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// SplitMix64's finaliser: neighbouring inputs give unrelated outputs.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Of 16 tasks, 11 start at once, 4 after a yield, and one after up to 255 us.
void delay(std::uint64_t seed, TaskId task, std::int64_t epoch) {
  const std::uint64_t random = mix(seed ^ mix(static_cast<std::uint64_t>(task.value) << 32U ^
                                              static_cast<std::uint64_t>(epoch)));
  if (random % 16 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds((random >> 8U) % 256));
  } else if (random % 16 < 5) {
    std::this_thread::yield();
  }
}

}  // namespace

Crew::Crew(Marking& marking, CpuOptions options, Network* network, std::function<void()> stop)
    : marking_(marking),
      options_(std::move(options)),
      network_(network),
      stop_(std::move(stop)),
      all_steps_(marking.count_steps()) {
  for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) {
    if (!marking_.is_finished(queue)) unfinished_.fetch_add(1);
  }
}

Crew::~Crew() {
  is_stopped_ = true;
  if (!threads_.empty()) stop_();
  threads_.clear();
}

void Crew::start(std::function<void()> body) {
  {
    const std::lock_guard lock(mutex_);
    ++alive_;
  }
  threads_.push_back(start_thread([this, body = std::move(body)] { run_body(body); }));
}

void Crew::start_lookout(Marking::Wake wake) {
  if (network_ == nullptr) return;
  start([this, wake = std::move(wake)] { look_out(wake); });
}

// Polls often while there is news, and rarely otherwise.
void Crew::look_out(const Marking::Wake& wake) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooks = 32;  // before it sleeps
  constexpr std::chrono::microseconds kRest{60};
  constexpr std::chrono::milliseconds kTold{10};  // interval of progress reports to others
  Clock::time_point told = Clock::now();
  std::int64_t told_steps = 0;
  int looks = 0;
  while (!is_over() && !is_stopped_ && !is_hopeless()) {
    looks = network_->look(marking_, wake) ? 0 : looks + 1;
    const std::int64_t steps = steps_.load(std::memory_order_relaxed);
    const bool moves = steps != told_steps || running_.load(std::memory_order_relaxed) > 0;
    if (const Clock::time_point now = Clock::now(); moves && now - told > kTold) {
      network_->tell_progress();
      told = now;
      told_steps = steps;
    }
    if (looks < kLooks) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kRest);
    }
  }
}

bool Crew::is_hopeless() const {
  return network_ != nullptr && (network_->is_given_up() || network_->error());
}

void Crew::run_body(const std::function<void()>& body) {
  std::exception_ptr error;
  try {
    body();
  } catch (...) {  // a worker's last frame: the run ends, and `watch` rethrows it
    error = std::current_exception();
  }
  cpu_time_.fetch_add(thread_cpu_time(), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (error != nullptr && error_ == nullptr) error_ = error;
  --alive_;
  changed_.notify_one();
}

bool Crew::take_step(std::int32_t queue, const Marking::Wake& wake) {
  const TaskId task = marking_.head(queue);
  if (options_.lose_worker_at && marking_.is_at(queue, *options_.lose_worker_at) &&
      losing_.exchange(false)) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(queue);
    return false;
  }
  if (options_.delay_seed) delay(*options_.delay_seed, task, marking_.epoch(queue));
  running_.fetch_add(1, std::memory_order_relaxed);
  marking_.step(queue, wake);
  if (marking_.is_finished(queue)) unfinished_.fetch_sub(1);
  steps_.fetch_add(1, std::memory_order_relaxed);
  running_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

RunOutcome Crew::watch(const RunOptions& run) {
  using Clock = std::chrono::steady_clock;
  const auto pause =
      std::clamp(run.wait_limit / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(100));
  Clock::time_point moved = Clock::now();
  std::int64_t seen = 0;
  std::uint64_t seen_others = 0;
  RunOutcome outcome;
  bool stopped = false;
  std::unique_lock lock(mutex_);
  while (alive_ > 0) {
    changed_.wait_for(lock, pause);
    if (stopped || alive_ == 0) continue;
    const Clock::time_point now = Clock::now();
    const std::int64_t steps = steps_.load(std::memory_order_relaxed);
    // A task that computes for long is not waiting: only waits are bounded.
    const std::uint64_t others = network_ == nullptr ? 0 : network_->progress_of_others();
    const bool moves =
        steps != seen || others != seen_others || running_.load(std::memory_order_relaxed) > 0;
    if (moves) moved = now;
    seen = steps;
    seen_others = others;
    outcome.idle = std::chrono::duration_cast<std::chrono::milliseconds>(now - moved);
    bool goes_on = error_ == nullptr && outcome.idle < run.wait_limit && !is_hopeless();
    lock.unlock();
    if (goes_on && run.progress) goes_on = run.progress(steps, all_steps_);
    if (!goes_on) {
      stopped = true;
      is_stopped_ = true;
      stop_();
    }
    lock.lock();
  }
  lock.unlock();
  threads_.clear();
  if (error_ != nullptr) std::rethrow_exception(error_);
  if (network_ != nullptr) {
    outcome.network = network_->error();
    outcome.is_told = network_->is_given_up();
  }
  outcome.lost = lost_;
  outcome.cpu_time = std::chrono::nanoseconds(cpu_time_.load());
  outcome.finished = true;
  for (std::int32_t queue = 0; queue < marking_.queues(); ++queue) {
    outcome.finished = outcome.finished && marking_.is_finished(queue);
  }
  return outcome;
}

RunOutcome run_queues(Marking& marking, const CpuOptions& options, const RunOptions& run,
                      Network* network) {
  switch (options.runner) {
    case QueueRunner::Threads:
      return run_threads(marking, options, run, network);
    case QueueRunner::Stepper:
      HP_CHECK(network == nullptr, "one process, whose steps are chosen");
      return run_stepper(marking, options);
    case QueueRunner::Pool:
      break;
  }
  return run_pool(marking, options, run, network);
}

}  // namespace harpe::cpu
