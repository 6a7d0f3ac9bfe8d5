#include "driver/report_page.h"

#include <algorithm>

#include "driver/files.h"
#include "driver/report_roofline.h"
#include "driver/summary.h"
#include "ir/text.h"
#include "report/block_names.h"
#include "report/draw.h"
#include "report/page_text.h"
#include "sim/critical_path.h"

namespace harpe {
namespace {

constexpr std::int64_t kMostDrawnRanks = 16;
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

// Puts of one lane are on their way side by side: each goes to a row of its rank where nothing else
// is. Lanes in order of ranks, rows of puts behind a rank's others.
class Timeline {
 public:
  Timeline(const Plan& plan, const Machine& machine, const Simulation& simulation)
      : plan_(plan), machine_(machine), simulation_(simulation), names_(name_tasks(plan)) {
    out_.total = simulation.total;
  }

  PageTimeline make() {
    for (const Lane& lane : plan_.lanes) {
      out_.lanes.push_back({lane.rank.value, std::string(print(lane.kind))});
    }
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) order_.push_back(i);
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return simulation_.tasks[i].ready; });
    std::vector<std::int32_t> place(plan_.tasks.size(), -1);
    for (const std::size_t i : order_) {
      place[i] = static_cast<std::int32_t>(out_.tasks.size());
      out_.tasks.push_back(task(i));
    }
    for (PageTask& made : out_.tasks) {
      if (made.cause >= 0) made.cause = place[static_cast<std::size_t>(made.cause)];
    }
    return std::move(out_);
  }

 private:
  PageTask task(std::size_t i) {
    const Task& task = plan_.tasks[i];
    const Span& span = simulation_.tasks[i];
    PageTask made{.lane = is_put(plan_, task) ? row_of_put(task, span) : task.lane.value,
                  .kind = kind_of(task.kind),
                  .name = names_[i],
                  .id = static_cast<std::int32_t>(i),
                  .ready = span.ready,
                  .begin = span.begin,
                  .end = span.end,
                  .cause = span.cause,
                  .wait = span.kind,
                  .bound = ""};
    if (span.bound >= 0) {
      const Resource& resource = simulation_.resources[static_cast<std::size_t>(span.bound)];
      if (resource.kind != ResourceKind::Sm) made.bound = name_of(machine_, resource);
    }
    return made;
  }

  std::int32_t row_of_put(const Task& task, const Span& span) {
    const std::int32_t rank = plan_.lanes[task.lane.index()].rank.value;
    auto row = std::ranges::find_if(
        puts_, [&](const Row& known) { return known.rank == rank && known.end <= span.ready; });
    if (row == puts_.end()) {
      puts_.push_back({rank, static_cast<std::int32_t>(out_.lanes.size()), {}});
      row = puts_.end() - 1;
      out_.lanes.push_back({rank, "puts"});
    }
    row->end = span.end;
    return row->lane;
  }

  struct Row {
    std::int32_t rank = 0;
    std::int32_t lane = 0;
    Picoseconds end;
  };

  const Plan& plan_;
  const Machine& machine_;
  const Simulation& simulation_;
  std::vector<std::string> names_;
  std::vector<std::size_t> order_;
  std::vector<Row> puts_;
  PageTimeline out_;
};

// Once each: a schedule may be among the best, on the front and named.
std::vector<PageCandidate> candidates_of(const SearchResult& search, const NormalForm& chosen) {
  std::vector<PageCandidate> all;
  const auto add = [&](const Evaluated& evaluated, bool front) {
    const std::string schedule = print(evaluated.form);
    auto known = std::ranges::find(all, schedule, &PageCandidate::schedule);
    if (known == all.end()) {
      all.push_back({.label = evaluated.label,
                     .schedule = schedule,
                     .time = evaluated.time(),
                     .bound = evaluated.bound,
                     .memory_bytes = evaluated.memory_bytes,
                     .named = false,
                     .front = false,
                     .winner = evaluated.form == chosen,
                     .simulated = evaluated.simulated.has_value()});
      known = all.end() - 1;
    }
    known->front = known->front || front;
    if (evaluated.named) {
      known->named = true;
      known->label = evaluated.label;
    }
  };
  for (const Evaluated& evaluated : search.top) add(evaluated, false);
  for (const Evaluated& evaluated : search.front) add(evaluated, true);
  for (const Evaluated& evaluated : search.baselines) add(evaluated, false);
  std::ranges::stable_sort(all, {}, &PageCandidate::time);
  return all;
}

std::string describe(const SearchResult& search) {
  using page::print_count;
  return print_count(search.candidates) + " candidates, " + print_count(search.unique) +
         " of them different, " + print_count(search.feasible) + " within memory; " +
         print_count(search.pruned) + " ruled out by their bounds, " +
         print_count(search.simulated) + " simulated" +
         (search.complete ? "" : "; the time given ended the search") +
         ". Best first; a name opens its schedule.";
}

std::vector<PageFigure> figures_of(const ReportSource& source) {
  const ReportedPlan& chosen = source.plans.front();
  const double total =
      static_cast<double>(std::max<std::int64_t>(1, chosen.simulation.total.value));
  std::vector<PageFigure> figures = {
      {page::print_time(chosen.simulation.total), "simulated time", "of one execution"}};
  if (source.search != nullptr && !source.search->baselines.empty()) {
    const Evaluated& named = source.search->baselines.front();
    const double ratio = static_cast<double>(named.time().value) / total;
    figures.push_back(
        {page::print_figure(ratio) + "×", "of " + named.label, "the best named schedule's speed"});
  }
  figures.push_back({page::print_share(static_cast<double>(chosen.taxes.roofline.value) / total),
                     "of the roofline", name_of(*source.machine, chosen.taxes.bound)});
  figures.push_back(
      {page::print_share(static_cast<double>(chosen.simulation.exposed_communication.value) /
                         total),
       "of the time waits for data", "on the worst rank"});
  figures.push_back({page::print_bytes(static_cast<double>(chosen.simulation.peak_bytes)),
                     "memory per rank",
                     "of " + page::print_bytes(source.machine->processor.memory_bytes)});
  if (source.search != nullptr) {
    figures.push_back({page::print_count(source.search->candidates), "candidates",
                       "in " + page::print_figure(source.search->seconds, 2) + " s, " +
                           page::print_count(source.search->simulated) + " simulated"});
  }
  return figures;
}

std::string verdict_of(const ReportSource& source) {
  const ReportedPlan& chosen = source.plans.front();
  std::string verdict = "`" + chosen.label + "` takes " + page::print_time(chosen.simulation.total);
  if (source.search == nullptr || source.search->baselines.empty()) return verdict + ".";
  const Evaluated& named = source.search->baselines.front();
  const auto before = static_cast<double>(named.time().value);
  const double less = 1 - static_cast<double>(chosen.simulation.total.value) / before;
  if (named.form == chosen.plan.form) return verdict + ": the best of all, and a named schedule.";
  if (less < 0.005) return verdict + ", as long as `" + named.label + "`, the best named schedule.";
  return verdict + ", " + page::print_share(less) + " less than `" + named.label +
         "`, the best named schedule.";
}

PageTaxes taxes_of(const ReportedPlan& plan, const Machine& machine, bool chosen) {
  return {.label = plan.label,
          .winner = chosen,
          .roofline = plan.taxes.roofline,
          .launch = plan.taxes.launch,
          .synchronization = plan.taxes.synchronization,
          .locality = plan.taxes.locality,
          .residual = plan.taxes.residual,
          .bound = name_of(machine, plan.taxes.bound),
          .skew_sensitivity = plan.taxes.skew_sensitivity};
}

PageMemory memory_of(const Simulation& simulation, const Machine& machine) {
  PageMemory memory{.total = simulation.total,
                    .points = simulation.memory,
                    .peak_bytes = 0,
                    .limit_bytes = static_cast<std::int64_t>(machine.processor.memory_bytes)};
  for (const MemoryPoint& point : memory.points) {
    memory.peak_bytes = std::max(memory.peak_bytes, point.bytes);
  }
  return memory;
}

}  // namespace

Checked<ReportedPlan> report_plan(std::string label, Plan plan, const Machine& machine,
                                  const SimulateOptions& options) {
  HP_REQUIRE_OK(check_fits(plan, machine));
  Simulation simulation = simulate(plan, machine, options);
  const Taxes taxes = tax(plan, machine, options.launch);
  return ReportedPlan{.label = std::move(label),
                      .plan = std::move(plan),
                      .simulation = std::move(simulation),
                      .taxes = taxes};
}

ReportPage make_report_page(const ReportSource& source) {
  const ReportedPlan& chosen = source.plans.front();
  const Machine& machine = *source.machine;
  ReportPage out;
  out.title = chosen.plan.program.name + " on " + print_mesh_option(chosen.plan.mesh);
  out.verdict = verdict_of(source);
  out.command = source.command;
  out.machine = machine.name + ": " + machine.summary;
  out.version = source.version;
  out.figures = figures_of(source);
  if (source.search != nullptr) {
    out.candidates = candidates_of(*source.search, chosen.plan.form);
    out.search = describe(*source.search);
    for (const Refused& refused : source.search->refused) {
      out.refused.push_back({refused.reason, refused.count});
    }
  }
  for (const ReportedPlan& plan : source.plans) {
    out.taxes.push_back(taxes_of(plan, machine, &plan == &chosen));
  }
  out.timeline = Timeline(chosen.plan, machine, chosen.simulation).make();
  out.critical_path = chosen.simulation.critical_path;
  out.roofline = make_roofline(source.plans, machine);
  out.memory = memory_of(chosen.simulation, machine);
  out.utilisation = chosen.simulation.shares;
  out.schedule = print(chosen.plan.form);
  if (chosen.plan.mesh.ranks() <= kMostDrawnRanks) {
    out.drawing = print_svg(draw(chosen.plan));
    if (out.drawing.size() > kLongestDrawing) out.drawing.clear();
  }
  return out;
}

Checked<Ok> write_report(const std::string& path, const ReportSource& source) {
  return write_text(path, print_html(make_report_page(source)));
}

}  // namespace harpe
