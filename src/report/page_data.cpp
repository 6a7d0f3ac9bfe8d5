#include <map>
#include <nlohmann/json.hpp>

#include "io/json.h"
#include "report/page_chart.h"
#include "report/page_parts.h"
#include "report/page_text.h"

namespace harpe::page {
namespace {

constexpr std::size_t kMostScheduleBytes = 300'000;  // of all candidates
constexpr std::size_t kMostSegments = 4000;

// Texts by number, each stored once: there are many tasks and segments, but few names.
class Pool {
 public:
  std::size_t find(const std::string& text) {
    const auto [at, fresh] = numbers_.try_emplace(text, numbers_.size());
    if (fresh) list_.push_back(text);
    return at->second;
  }
  [[nodiscard]] const Json& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json list_ = Json::array();
};

Json candidates_of(const ReportPage& page) {
  Json out = Json::array();
  std::size_t kept = 0;
  for (const PageCandidate& candidate : page.candidates) {
    kept += candidate.schedule.size();
    out.push_back({candidate.label,
                   print_time(candidate.time) + (candidate.simulated ? "" : " (estimated)"),
                   print_bytes(static_cast<double>(candidate.memory_bytes)),
                   kept <= kMostScheduleBytes ? candidate.schedule : "", candidate.excluded});
  }
  return out;
}

Json tasks_of(const PageTimeline& timeline, const Shown& shown, Pool& pool) {
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
  Json out = Json::array();
  for (std::size_t i = 0; i < timeline.tasks.size(); ++i) {
    if (number[i] < 0) continue;
    const PageTask& task = timeline.tasks[i];
    const std::int32_t cause = task.cause < 0 ? -1 : number[static_cast<std::size_t>(task.cause)];
    out.push_back({row_of[static_cast<std::size_t>(task.queue)], task.ready.value, task.begin.value,
                   task.end.value, cause, pool.find(std::string(name_of(task.kind))),
                   pool.find(std::string(name_of(task.wait))), pool.find(task.name),
                   pool.find(task.bound), task.id});
  }
  return out;
}

Json timeline_of(const ReportPage& page, Pool& pool) {
  if (!page.timeline) return {};
  const Shown shown = shown_of(*page.timeline);
  Json queues = Json::array();
  Json rows = Json::array();
  for (std::size_t i = 0; i < shown.queues.size(); ++i) {
    const PageQueue& queue = page.timeline->queues[static_cast<std::size_t>(shown.queues[i])];
    queues.push_back(pool.find("rank " + std::to_string(queue.rank) + ", " + queue.name));
    rows.push_back({shown.tops[i], shown.row});
  }
  Json tasks = tasks_of(*page.timeline, shown, pool);
  return {{"total", page.timeline->total.value},
          {"lanes", std::move(queues)},
          {"rows", std::move(rows)},
          {"tasks", std::move(tasks)}};
}

Json path_of(const ReportPage& page, Pool& pool) {
  Json out = Json::array();
  if (page.critical_path.size() > kMostSegments) return out;
  for (const Segment& segment : page.critical_path) {
    out.push_back({segment.begin.value, segment.end.value,
                   pool.find(std::string(name_of(segment.spending))), pool.find(segment.what)});
  }
  return out;
}

}  // namespace

std::string data_of(const ReportPage& page) {
  Pool pool;
  Json data = {{"candidates", candidates_of(page)}};
  data["timeline"] = timeline_of(page, pool);
  data["path"] = path_of(page, pool);
  data["texts"] = pool.list();
  std::string out;
  for (const char c : print_json_line(data)) {
    if (c == '<') {
      out += "\\u003c";  // avoids `</script>` in the text
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace harpe::page
