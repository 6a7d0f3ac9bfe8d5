#include "driver/trace.h"

#include <sstream>

#include "driver/files.h"
#include "driver/json.h"
#include "plan/text.h"
#include "support/check.h"

namespace harpe {
namespace {

Json metadata(const char* what, std::int64_t rank, std::int64_t lane, Json arguments) {
  return Json::object()
      .set("ph", "M")
      .set("name", what)
      .set("pid", rank)
      .set("tid", lane)
      .set("args", std::move(arguments));
}

std::string name_of(const Task& task) {
  std::string name(print(task.kind));
  if (!task.nest.empty()) name += " " + task.nest + "." + std::to_string(task.stmt);
  return name;
}

double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1000.0;
}

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
                        const std::vector<TraceEvent>& events) {
  const std::vector<std::string> lines = task_lines(plan);
  HP_TRY(AtomicFile file, AtomicFile::open(path));
  HP_REQUIRE_OK(file.write("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"));
  for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    const Json line = metadata("process_name", rank, 0,
                               Json::object().set("name", "rank " + std::to_string(rank)));
    HP_REQUIRE_OK(file.write(line.print_line() + ",\n"));
  }
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    const Json line = metadata("thread_name", lane.rank.value, static_cast<std::int64_t>(i),
                               Json::object().set("name", print(lane.kind)));
    HP_REQUIRE_OK(file.write(line.print_line() +
                             (events.empty() && i + 1 == plan.lanes.size() ? "\n" : ",\n")));
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& event = events[i];
    const Task& task = plan.tasks[event.task.index()];
    const Lane& lane = plan.lanes[task.lane.index()];
    const Json line =
        Json::object()
            .set("ph", "X")
            .set("name", name_of(task))
            .set("cat", print(task.kind))
            .set("pid", lane.rank.value)
            .set("tid", task.lane.value)
            .set("ts", microseconds(event.start))
            .set("dur", microseconds(event.end - event.start))
            .set("args",
                 Json::object().set("task", lines[event.task.index()]).set("bytes", task.bytes));
    HP_REQUIRE_OK(file.write(line.print_line() + (i + 1 == events.size() ? "\n" : ",\n")));
  }
  HP_REQUIRE_OK(file.write("]}\n"));
  return file.commit();
}

}  // namespace harpe
