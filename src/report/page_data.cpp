#include <array>
#include <map>

#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr std::size_t kMostScheduleBytes = 300'000;  // of all candidates
constexpr std::size_t kMostSegments = 4000;

// Texts by number, each once: tasks and stretches are many, their names few.
class Pool {
 public:
  std::size_t find(const std::string& text) {
    const auto [at, fresh] = numbers_.try_emplace(text, numbers_.size());
    if (fresh) list_ += (list_.empty() ? "" : ",") + quote_json(text);
    return at->second;
  }
  [[nodiscard]] std::string print() const { return "[" + list_ + "]"; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::string list_;
};

template <class Number>
void append(std::string& row, Number value) {
  if (row.back() != '[') row += ',';
  row += std::to_string(value);
}

std::string candidates_of(const ReportPage& page) {
  std::string out;
  std::size_t kept = 0;
  for (const PageCandidate& candidate : page.candidates) {
    kept += candidate.schedule.size();
    out += std::string(out.empty() ? "" : ",\n") + "[" + quote_json(candidate.label) + "," +
           quote_json(print_time(candidate.time) + (candidate.simulated ? "" : " (estimated)")) +
           "," + quote_json(print_bytes(static_cast<double>(candidate.memory_bytes))) + "," +
           quote_json(kept <= kMostScheduleBytes ? candidate.schedule : "") + "," +
           quote_json(candidate.excluded) + "]";
  }
  return "[" + out + "]";
}

std::string tasks_of(const PageTimeline& timeline, const Shown& shown, Pool& pool) {
  std::vector<std::int32_t> row_of(timeline.queues.size(), -1);
  for (std::size_t i = 0; i < shown.queues.size(); ++i) {
    row_of[static_cast<std::size_t>(shown.queues[i])] = static_cast<std::int32_t>(i);
  }
  std::vector<std::int32_t> number(timeline.tasks.size(), -1);
  std::int32_t next = 0;
  for (std::size_t i = 0; i < timeline.tasks.size(); ++i) {
    const PageTask& task = timeline.tasks[i];
    if (row_of[static_cast<std::size_t>(task.queue)] >= 0) number[i] = next++;
  }
  std::string out;
  for (std::size_t i = 0; i < timeline.tasks.size(); ++i) {
    if (number[i] < 0) continue;
    const PageTask& task = timeline.tasks[i];
    std::string row = "[";
    append(row, row_of[static_cast<std::size_t>(task.queue)]);
    append(row, task.ready.value);
    append(row, task.begin.value);
    append(row, task.end.value);
    append(row, task.cause < 0 ? -1 : number[static_cast<std::size_t>(task.cause)]);
    append(row, pool.find(std::string(name_of(task.kind))));
    append(row, pool.find(std::string(name_of(task.wait))));
    append(row, pool.find(task.name));
    append(row, pool.find(task.bound));
    append(row, task.id);
    out += (out.empty() ? "" : ",\n") + row + "]";
  }
  return "[" + out + "]";
}

std::string timeline_of(const ReportPage& page, Pool& pool) {
  if (!page.timeline) return "null";
  const Shown shown = shown_of(*page.timeline);
  std::string queues;
  std::string rows;
  for (std::size_t i = 0; i < shown.queues.size(); ++i) {
    const PageQueue& queue = page.timeline->queues[static_cast<std::size_t>(shown.queues[i])];
    const std::string comma = i == 0 ? "" : ",";
    queues +=
        comma + std::to_string(pool.find("rank " + std::to_string(queue.rank) + ", " + queue.name));
    rows += comma + "[" + print_number(shown.tops[i]) + "," + print_number(shown.row) + "]";
  }
  return "{\"total\":" + std::to_string(page.timeline->total.value) + ",\"lanes\":[" + queues +
         "],\"rows\":[" + rows + "],\"tasks\":" + tasks_of(*page.timeline, shown, pool) + "}";
}

std::string path_of(const ReportPage& page, Pool& pool) {
  if (page.critical_path.size() > kMostSegments) return "[]";
  std::string out;
  for (const Segment& segment : page.critical_path) {
    std::string row = "[";
    append(row, segment.begin.value);
    append(row, segment.end.value);
    append(row, pool.find(std::string(name_of(segment.spending))));
    append(row, pool.find(segment.what));
    out += (out.empty() ? "" : ",") + row + "]";
  }
  return "[" + out + "]";
}

}  // namespace

std::string data_of(const ReportPage& page) {
  Pool pool;
  const std::string timeline = timeline_of(page, pool);
  const std::string path = path_of(page, pool);
  return "{\"candidates\":" + candidates_of(page) + ",\n\"timeline\":" + timeline +
         ",\n\"path\":" + path + ",\n\"texts\":" + pool.print() + "}";
}

}  // namespace harpe::page
