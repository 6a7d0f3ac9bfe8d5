#include "report/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "io/files.h"
#include "ir/text.h"
#include "report/page_text.h"
#include "report/report_timeline.h"
#include "sim/plan_waits.h"
#include "support/measured_time.h"

namespace harpe {
namespace {

// Finds the cause of each task: the last of its queue, events, signals and barriers to end.
class Causes {
 public:
  Causes(const Plan& plan, const std::vector<Span>& spans)
      : spans_(spans), waits_(waits_of(plan)) {}

  // The span with its cause. A wait that ended after the task's own start did not delay it.
  [[nodiscard]] Span explain(std::size_t task) const {
    Span span = spans_[task];
    span.ready = Picoseconds();
    for (const auto& [from, kind] : waits_[task]) {
      const Picoseconds end = std::min(spans_[from.index()].end, span.begin);
      if (end < span.ready || (end == span.ready && span.cause >= 0)) continue;
      span.ready = end;
      span.cause = from.value;
      span.kind = kind;
    }
    return span;
  }

 private:
  const std::vector<Span>& spans_;
  std::vector<std::vector<PlanWait>> waits_;
};

// Times from the first task's start; by then earlier executions are over.
std::vector<Span> spans_of(const Plan& plan, const std::vector<TraceEvent>& events) {
  std::vector<Span> spans(plan.tasks.size());
  if (events.empty()) return spans;
  const auto first = std::ranges::min(events, {}, &TraceEvent::start).start;
  for (const TraceEvent& event : events) {
    Span& span = spans[event.task.index()];
    span.ready = span.begin = picoseconds(event.start - first);
    span.end = picoseconds(event.end - first);
  }
  return spans;
}

std::string ranks_of(Backend backend) { return backend == Backend::Cpu ? "CPU ranks" : "GPUs"; }

std::vector<PageFigure> figures_of(const RunOutcome& outcome, Backend backend) {
  std::vector<std::chrono::nanoseconds> times = outcome.stats.iterations;
  std::ranges::sort(times);
  std::vector<PageFigure> figures;
  if (!times.empty()) {
    figures.push_back({page::print_time(picoseconds(times[times.size() / 2])),
                       times.size() == 1 ? "one execution" : "median of executions",
                       (times.size() == 1 ? "on " : page::print_count(std::ssize(times)) + " on ") +
                           ranks_of(backend)});
  }
  figures.push_back({page::print_bytes(static_cast<double>(outcome.stats.bytes_moved)), "sent",
                     "in one execution, by all ranks"});
  figures.push_back(
      {page::print_bytes(static_cast<double>(outcome.stats.peak_bytes)), "memory per rank", ""});
  if (!outcome.check) return figures;
  for (const Comparison& one : outcome.check->outputs) {
    figures.push_back({fmt::format("{:.1e}", one.error), "error of " + one.buffer,
                       fmt::format("bound {:.1e}", one.bound)});
  }
  return figures;
}

std::string verdict_of(const ReportedRun& run) {
  std::string verdict = "`" + run.plan->form.name + "` executed on " +
                        page::print_count(run.plan->mesh.ranks()) + " " + ranks_of(run.backend);
  if (!run.outcome->check) return verdict + ", its results not checked.";
  return verdict + (run.outcome->check->passed()
                        ? ": its results are within the bounds of rounding."
                        : ": its results are wrong.");
}

std::string machine_of(const ReportedRun& run) {
  if (run.backend == Backend::Cuda) return "the GPUs of this computer";
  return "this computer, " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace

ReportPage make_run_page(const ReportedRun& run) {
  const Plan& plan = *run.plan;
  std::vector<Span> spans = spans_of(plan, run.outcome->stats.trace);
  Picoseconds total;
  for (const Span& span : spans) total = std::max(total, span.end);
  const Causes causes(plan, spans);
  std::vector<Span> explained;
  for (std::size_t i = 0; i < spans.size(); ++i) explained.push_back(causes.explain(i));
  ReportPage page;
  page.title = run.title;
  page.verdict = verdict_of(run);
  page.command = run.command;
  page.machine = machine_of(run);
  page.version = run.version;
  page.figures = figures_of(*run.outcome, run.backend);
  page.timeline = make_timeline(plan, total, explained, {});
  page.schedule = print(plan.form);
  page.drawing = make_drawing(plan);
  return page;
}

Checked<Ok> write_run_report(const std::string& path, const ReportedRun& run) {
  return write_text(path, print_html(make_run_page(run)));
}

}  // namespace harpe
