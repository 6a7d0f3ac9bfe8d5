#include "report/report_timeline.h"

#include <algorithm>

#include "report/block_names.h"
#include "report/draw.h"

namespace harpe {
namespace {

constexpr std::int64_t kMostDrawnRanks = 16;
constexpr std::size_t kMostDrawnTasks = 4000;
constexpr std::size_t kLongestDrawing = 400'000;  // characters

PageTaskKind kind_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::Compute:
      return PageTaskKind::Compute;
    case TaskKind::Copy:
    case TaskKind::Pack:
    case TaskKind::Unpack:
      return PageTaskKind::Copy;
    case TaskKind::Collective:
      return PageTaskKind::Collective;
    case TaskKind::Fold:
    case TaskKind::Finalise:
      return PageTaskKind::Fold;
    case TaskKind::Entry:
    case TaskKind::Exit:
    case TaskKind::Init:
      return PageTaskKind::Other;
  }
  return PageTaskKind::Other;
}

// Puts of one queue are in flight side by side: each goes to a row of its rank that is free at the
// time.
class Rows {
 public:
  explicit Rows(const Plan& plan) : plan_(plan) {
    for (const Queue& queue : plan.queues) {
      queues_.push_back({queue.rank.value, std::string(print(queue.kind))});
    }
  }

  // Requires: tasks in the order in which they start.
  std::int32_t place(const Task& task, const Span& span) {
    if (!is_put(plan_, task)) return task.queue.value;
    const std::int32_t rank = plan_.queues[task.queue.index()].rank.value;
    auto row = std::ranges::find_if(
        puts_, [&](const Row& known) { return known.rank == rank && known.end <= span.ready; });
    if (row == puts_.end()) {
      puts_.push_back({rank, static_cast<std::int32_t>(queues_.size()), {}});
      row = puts_.end() - 1;
      queues_.push_back({rank, "puts"});
    }
    row->end = span.end;
    return row->queue;
  }

  [[nodiscard]] const std::vector<PageQueue>& queues() const { return queues_; }

 private:
  struct Row {
    std::int32_t rank = 0;
    std::int32_t queue = 0;
    Picoseconds end;
  };

  const Plan& plan_;
  std::vector<PageQueue> queues_;
  std::vector<Row> puts_;
};

}  // namespace

PageTimeline make_timeline(const Plan& plan, Picoseconds total, const std::vector<Span>& spans,
                           const std::vector<std::string>& bounds) {
  const std::vector<std::string> names = name_tasks(plan);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return spans[i].ready; });
  PageTimeline out{.total = total, .queues = {}, .tasks = {}};
  Rows rows(plan);
  std::vector<std::int32_t> place(plan.tasks.size(), -1);
  for (const std::size_t i : order) {
    const Span& span = spans[i];
    place[i] = static_cast<std::int32_t>(out.tasks.size());
    out.tasks.push_back({.queue = rows.place(plan.tasks[i], span),
                         .kind = kind_of(plan.tasks[i].kind),
                         .name = names[i],
                         .id = static_cast<std::int32_t>(i),
                         .ready = span.ready,
                         .begin = span.begin,
                         .end = span.end,
                         .cause = span.cause,
                         .wait = span.kind,
                         .bound = bounds.empty() ? "" : bounds[i]});
  }
  for (PageTask& task : out.tasks) {
    if (task.cause >= 0) task.cause = place[static_cast<std::size_t>(task.cause)];
  }
  out.queues = rows.queues();
  return out;
}

std::string make_drawing(const Plan& plan) {
  if (plan.mesh.ranks() > kMostDrawnRanks || plan.tasks.size() > kMostDrawnTasks) return {};
  std::string drawing = print_svg(draw(plan));
  return drawing.size() > kLongestDrawing ? std::string() : drawing;
}

}  // namespace harpe
