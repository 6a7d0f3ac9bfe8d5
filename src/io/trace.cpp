#include "io/trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "exec/kernel_times.h"
#include "io/files.h"
#include "io/json.h"
#include "plan/text.h"
#include "support/check.h"

namespace harpe {
namespace {

Json metadata(const char* what, std::int64_t rank, std::int64_t queue, Json arguments) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", queue}, {"args", std::move(arguments)}};
}

std::string name_of(const Task& task) {
  std::string name(print(task.kind));
  if (!task.nest.empty()) name += " " + task.nest + "." + std::to_string(task.stmt);
  return name;
}

double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1000.0;
}

std::string_view name_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::Queue:
      return "lane";
    case WaitKind::Event:
      return "event";
    case WaitKind::Signal:
      return "signal";
    case WaitKind::Barrier:
      return "barrier";
    case WaitKind::Member:
      return "member";
  }
  return "";
}

std::vector<TaskId> puts_in_order(const Plan& plan, const Simulation& simulation) {
  std::vector<TaskId> puts;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (is_put(plan, plan.tasks[i])) puts.push_back(TaskId(static_cast<std::int64_t>(i)));
  }
  std::ranges::stable_sort(puts, {}, [&](TaskId id) { return simulation.tasks[id.index()].ready; });
  return puts;
}

// Lines of one JSON array. Each line is written when the next one is known, since the last has no
// comma.
class Timeline {
 public:
  explicit Timeline(const Plan& plan) : plan_(plan), lines_(task_lines(plan)) {
    for (const Task& task : plan.tasks) threads_.push_back(task.queue.value);
  }

  // Puts of one queue are in flight side by side, so each gets a row that is free at the time.
  // Requires: puts in the order in which they start.
  void spread_put(TaskId id, Picoseconds start, Picoseconds end) {
    const RankId rank = plan_.queues[plan_.tasks[id.index()].queue.index()].rank;
    std::size_t row = 0;
    while (row < rows_.size() && (rows_[row].rank != rank || rows_[row].end > start)) ++row;
    const auto thread = static_cast<std::int64_t>(plan_.queues.size() + row);
    if (row == rows_.size()) {
      rows_.push_back({rank, end});
      add(metadata("thread_name", rank.value, thread, Json{{"name", "puts"}}));
    }
    rows_[row].end = end;
    threads_[id.index()] = thread;
  }

  void add_names() {
    for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      add(metadata("process_name", rank, 0, Json{{"name", "rank " + std::to_string(rank)}}));
    }
    for (std::size_t i = 0; i < plan_.queues.size(); ++i) {
      const Queue& queue = plan_.queues[i];
      add(metadata("thread_name", queue.rank.value, static_cast<std::int64_t>(i),
                   Json{{"name", print(queue.kind)}}));
    }
  }

  // A task; `start` and `duration` in microseconds.
  void add_task(TaskId id, double start, double duration, Json more = Json::object()) {
    const Task& task = plan_.tasks[id.index()];
    more["task"] = lines_[id.index()];
    more["bytes"] = task.bytes;
    add(at(id, "X", name_of(task), print(task.kind), start),
        {{"dur", duration}, {"args", std::move(more)}});
  }

  // A task's wait before it began.
  void add_wait(const TraceEvent& event) {
    if (event.waited.count() == 0) return;
    add(at(event.task, "X", "wait", "wait", microseconds(event.start - event.waited)),
        {{"dur", microseconds(event.waited)}, {"args", {{"task", lines_[event.task.index()]}}}});
  }

  // The number of waiting thread blocks of each rank.
  void add_standing(const std::vector<KernelEvent>& kernels) {
    std::map<RankId, std::vector<KernelEvent>> of_ranks;
    for (const KernelEvent& event : kernels) {
      of_ranks[plan_.queues[plan_.tasks[event.kernel.index()].queue.index()].rank].push_back(event);
    }
    for (const auto& [rank, events] : of_ranks) {
      for (const StandingBlocks& count : standing_blocks(events)) {
        add(Json{{"ph", "C"},
                 {"name", "blocks standing still"},
                 {"pid", rank.value},
                 {"ts", microseconds(count.since)},
                 {"args", Json{{"multiplying", count.multiplying}, {"copying", count.copying}}}});
      }
    }
  }

  // An arrow from the end of one task to the start of another. It starts just before the end,
  // because a slice does not include its end.
  void add_arrow(TaskId from, const Span& span, TaskId to, double start, WaitKind kind) {
    constexpr std::int64_t kBefore = 1000;  // picoseconds
    const std::int64_t leaves = std::max(span.ready.value, span.end.value - kBefore);
    add(at(from, "s", name_of(kind), "wait", Picoseconds(leaves).microseconds()),
        {{"id", to.value}});
    add(at(to, "f", name_of(kind), "wait", start), {{"id", to.value}, {"bp", "e"}});
  }

  [[nodiscard]] std::string document() const {
    return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n" + text_ + "\n]}\n";
  }

 private:
  [[nodiscard]] Json at(TaskId id, const char* phase, std::string_view name,
                        std::string_view category, double time) const {
    const Task& task = plan_.tasks[id.index()];
    return {{"ph", phase},
            {"name", name},
            {"cat", category},
            {"pid", plan_.queues[task.queue.index()].rank.value},
            {"tid", threads_[id.index()]},
            {"ts", time}};
  }

  void add(const Json& line) { text_ += (text_.empty() ? "" : ",\n") + print_json_line(line); }
  void add(Json line, const Json& more) {
    line.update(more);
    add(line);
  }

  struct Row {
    RankId rank;
    Picoseconds end;
  };

  const Plan& plan_;
  std::vector<std::string> lines_;
  std::vector<std::int64_t> threads_;  // per task
  std::vector<Row> rows_;              // of puts
  std::string text_;
};

}  // namespace

std::vector<std::string> task_lines(const Plan& plan) {
  constexpr std::string_view kOpen = "  task ";
  std::vector<std::string> lines;
  std::istringstream text(print_plan(plan));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(kOpen)) lines.push_back(line.substr(2));
  }
  HP_CHECK(lines.size() == plan.tasks.size(), "a task prints as one line");
  return lines;
}

Checked<Ok> write_trace(const std::string& path, const Plan& plan,
                        const std::vector<TraceEvent>& events,
                        const std::vector<KernelEvent>& kernels) {
  Timeline timeline(plan);
  timeline.add_names();
  for (const TraceEvent& event : events) {
    timeline.add_wait(event);
    timeline.add_task(event.task, microseconds(event.start), microseconds(event.end - event.start));
  }
  timeline.add_standing(kernels);
  return write_text(path, timeline.document());
}

std::string print_trace(const Plan& plan, const Simulation& simulation) {
  Timeline timeline(plan);
  timeline.add_names();
  for (const TaskId put : puts_in_order(plan, simulation)) {
    const Span& span = simulation.tasks[put.index()];
    timeline.spread_put(put, span.ready, span.end);
  }
  for (std::size_t i = 0; i < simulation.tasks.size(); ++i) {
    const Span& span = simulation.tasks[i];
    const TaskId id(static_cast<std::int64_t>(i));
    timeline.add_task(id, span.ready.microseconds(), (span.end - span.ready).microseconds(),
                      Json{{"start_us", (span.begin - span.ready).microseconds()}});
    if (span.cause < 0 || span.kind == WaitKind::Queue) continue;
    const TaskId cause(span.cause);
    timeline.add_arrow(cause, simulation.tasks[cause.index()], id, span.ready.microseconds(),
                       span.kind);
  }
  return timeline.document();
}

Checked<Ok> write_trace(const std::string& path, const Plan& plan, const Simulation& simulation) {
  return write_text(path, print_trace(plan, simulation));
}

}  // namespace harpe
