#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "sim/shares.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr Picoseconds kNever{-1};

struct Event {
  Picoseconds time;
  std::int32_t activity = 0;
  friend bool operator>(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.activity > b.activity;
  }
};

enum class Phase : std::uint8_t { Waiting, Starting, Running, Over };

struct Progress {
  Phase phase = Phase::Waiting;
  bool keeps = false;  // keeps its SMs while it waits
  std::int32_t pending = 0;
  double remaining = 0;  // picoseconds at full speed
  double speed = 0;
  Picoseconds since;      // since when `remaining` and `speed` are valid
  Picoseconds end;        // if the speed stays the same
  std::int32_t use = -1;  // the use that has limited it since then
};

class Engine {
 public:
  explicit Engine(const Workload& workload)
      : workload_(workload),
        shares_(workload),
        pools_(static_cast<std::size_t>(workload.queues)),
        progress_(workload.activities.size()),
        next_in_queue_(workload.activities.size(), -1) {
    run_.spans.resize(workload.activities.size());
    link_queues();
    link_dependencies();
  }

  std::optional<EngineRun> run(const TimeLimit& limit) {
    for (std::int32_t i = 0; i < count(); ++i) {
      if (at(i).pending == 0) make_ready(i);
    }
    run_due();
    while (!events_.empty()) {
      if (limit.is_over()) return std::nullopt;
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now_) {
        take(events_.top().activity);
        events_.pop();
      }
      run_due();
    }
    HP_CHECK(over_ == count(), std::to_string(count() - over_) + " activities wait for each other");
    add_up();
    return std::move(run_);
  }

 private:
  [[nodiscard]] std::int32_t count() const {
    return static_cast<std::int32_t>(workload_.activities.size());
  }
  [[nodiscard]] Progress& at(std::int32_t i) { return progress_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] Span& span(std::int32_t i) { return run_.spans[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Activity& activity(std::int32_t i) const {
    return workload_.activities[static_cast<std::size_t>(i)];
  }

  void link_queues() {
    std::vector<std::int32_t> last(static_cast<std::size_t>(workload_.queues), -1);
    for (std::int32_t i = 0; i < count(); ++i) {
      const std::int32_t queue = activity(i).queue;
      if (queue == kNoQueue || is_pool(workload_, queue)) continue;
      std::int32_t& before = last[static_cast<std::size_t>(queue)];
      if (before >= 0) {
        next_in_queue_[static_cast<std::size_t>(before)] = i;
        ++at(i).pending;
      }
      before = i;
    }
  }

  void link_dependencies() {
    first_after_.resize(workload_.activities.size() + 1);
    for (const Dependency& edge : workload_.dependencies) {
      ++first_after_[static_cast<std::size_t>(edge.before) + 1];
      ++at(edge.after).pending;
    }
    for (std::size_t i = 1; i < first_after_.size(); ++i) first_after_[i] += first_after_[i - 1];
    after_.resize(workload_.dependencies.size());
    std::vector<std::int32_t> next(first_after_.begin(), first_after_.end() - 1);
    for (std::size_t edge = 0; edge < workload_.dependencies.size(); ++edge) {
      std::int32_t& slot = next[static_cast<std::size_t>(workload_.dependencies[edge].before)];
      after_[static_cast<std::size_t>(slot++)] = static_cast<std::int32_t>(edge);
    }
  }

  // An event may be stale, because a change of speed moved the end that it announced.
  void take(std::int32_t i) {
    if (at(i).phase == Phase::Waiting) {
      open_pools_.push_back(activity(i).queue);
    } else if (at(i).phase == Phase::Starting) {
      begin(i);
    } else if (at(i).phase == Phase::Running && at(i).end == now_) {
      stop(i);
      shares_.remove(i);
      finish(i);
    }
  }

  // Handles everything that happens at this moment, then the changes of speed that follow from it.
  void run_due() {
    while (!due_.empty() || !open_pools_.empty()) {
      if (due_.empty()) {
        admit(open_pools_.back());
        continue;
      }
      const std::int32_t i = due_.back();
      due_.pop_back();
      begin(i);
    }
    for (const std::int32_t i : shares_.settle()) {
      if (at(i).phase == Phase::Running) change_speed(i);
    }
  }

  // `ready` is final: its last dependency has ended. In a pool, a server must be free too.
  void make_ready(std::int32_t i) {
    if (!is_pool(workload_, activity(i).queue)) {
      start(i);
      return;
    }
    const std::int32_t queue = activity(i).queue;
    pools_[static_cast<std::size_t>(queue)].waiting.push({span(i).ready, i});
    open_pools_.push_back(queue);
  }

  // Ready activities take free servers. This runs only once nothing else happens at this moment, so
  // that the order of simultaneous events does not matter. Activities that get ready later wait.
  void admit(std::int32_t queue) {
    open_pools_.pop_back();
    Pool& pool = pools_[static_cast<std::size_t>(queue)];
    while (pool.busy < workload_.servers[static_cast<std::size_t>(queue)] &&
           !pool.waiting.empty()) {
      const Event next = pool.waiting.top();
      if (next.time > now_) {
        events_.push({next.time, next.activity});
        return;
      }
      pool.waiting.pop();
      ++pool.busy;
      if (next.time < now_) {
        span(next.activity).cause = pool.freed_by;
        span(next.activity).kind = WaitKind::Queue;
        span(next.activity).ready = now_;
      }
      start(next.activity);
    }
  }

  void start(std::int32_t i) {
    const Picoseconds begins = span(i).ready + activity(i).start;
    at(i).phase = Phase::Starting;
    if (begins == now_) {
      due_.push_back(i);
    } else {
      events_.push({begins, i});
    }
  }

  void begin(std::int32_t i) {
    span(i).begin = now_;
    Progress& progress = at(i);
    if (progress.keeps) shares_.remove(i);
    if (activity(i).work.value == 0) {
      finish(i);
      return;
    }
    progress.phase = Phase::Running;
    progress.remaining = static_cast<double>(activity(i).work.value);
    progress.since = now_;
    progress.end = kNever;
    shares_.add(i, Shares::Part::All);
  }

  // Accounts for the work done at the current speed.
  void stop(std::int32_t i) {
    Progress& progress = at(i);
    const auto passed = static_cast<double>((now_ - progress.since).value);
    progress.remaining = std::max(0.0, progress.remaining - passed * progress.speed);
    progress.since = now_;
    if (progress.use >= 0 && passed > 0) hold_back(i, progress.use, passed);
  }

  void change_speed(std::int32_t i) {
    stop(i);
    Progress& progress = at(i);
    progress.speed = shares_.speed(i);
    progress.use = shares_.bound(i);
    const double rest = std::ceil(progress.remaining / progress.speed - kRounding);
    progress.end = now_ + Picoseconds(std::max<std::int64_t>(0, saturating_cast(rest)));
    events_.push({progress.end, i});
  }

  void hold_back(std::int32_t i, std::int32_t use, double passed) {
    if (held_.empty()) held_.resize(static_cast<std::size_t>(shares_.first_use(count())));
    held_[static_cast<std::size_t>(use)] += passed;
    const auto uses = shares_.uses(i);
    std::size_t longest = static_cast<std::size_t>(use - shares_.first_use(i));
    if (span(i).bound >= 0) {
      for (std::size_t k = 0; k < uses.size(); ++k) {
        if (held_of(i, k) > held_of(i, longest)) longest = k;
      }
    }
    span(i).bound = uses[longest].resource;
  }
  [[nodiscard]] double held_of(std::int32_t i, std::size_t use) const {
    return held_[static_cast<std::size_t>(shares_.first_use(i)) + use];
  }

  void finish(std::int32_t i) {
    at(i).phase = Phase::Over;
    ++over_;
    span(i).end = now_;
    run_.total = std::max(run_.total, now_);
    if (is_pool(workload_, activity(i).queue)) {
      Pool& pool = pools_[static_cast<std::size_t>(activity(i).queue)];
      --pool.busy;
      pool.freed_by = i;
      open_pools_.push_back(activity(i).queue);
    }
    const std::int32_t next = next_in_queue_[static_cast<std::size_t>(i)];
    if (next >= 0) release(next, i, now_, WaitKind::Queue);
    const auto first = static_cast<std::size_t>(first_after_[static_cast<std::size_t>(i)]);
    const auto last = static_cast<std::size_t>(first_after_[static_cast<std::size_t>(i) + 1]);
    for (std::size_t k = first; k < last; ++k) {
      const Dependency& edge = workload_.dependencies[static_cast<std::size_t>(after_[k])];
      release(edge.after, i, now_ + edge.delay, edge.kind);
    }
  }

  void release(std::int32_t i, std::int32_t cause, Picoseconds time, WaitKind kind) {
    if (span(i).cause < 0 || time > span(i).ready) {
      span(i).ready = time;
      span(i).cause = cause;
      span(i).kind = kind;
    }
    if (--at(i).pending == 0) {
      make_ready(i);
    } else if (kind == WaitKind::Queue && activity(i).resident) {
      at(i).keeps = true;
      shares_.add(i, Shares::Part::SmsOnly);
    }
  }

  void add_up() {
    run_.units.resize(workload_.resources.size());
    for (const Activity& one : workload_.activities) {
      for (const Use& use : one.uses) {
        run_.units[static_cast<std::size_t>(use.resource)] += use.rate * one.work.seconds();
      }
    }
  }

  // Runs activities as they become ready, in no fixed order.
  struct Pool {
    std::priority_queue<Event, std::vector<Event>, std::greater<>> waiting;  // by readiness
    std::int32_t busy = 0;
    std::int32_t freed_by = -1;  // the activity whose end admitted the next one
  };

  const Workload& workload_;
  Shares shares_;
  std::vector<Pool> pools_;               // per queue
  std::vector<std::int32_t> open_pools_;  // pools in which an activity may begin now
  std::vector<Progress> progress_;
  std::vector<std::int32_t> next_in_queue_;  // per activity, or -1
  std::vector<std::int32_t> first_after_;    // per activity: index into after_
  std::vector<std::int32_t> after_;          // dependencies, by `before`
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::int32_t> due_;  // activities that begin now
  std::vector<double> held_;       // per use: picoseconds for which it limited its activity
  Picoseconds now_;
  std::int32_t over_ = 0;
  EngineRun run_;
};

}  // namespace

EngineRun run_workload(const Workload& workload) { return *run_workload(workload, {}); }

std::optional<EngineRun> run_workload(const Workload& workload, const TimeLimit& limit) {
  return Engine(workload).run(limit);
}

}  // namespace harpe
