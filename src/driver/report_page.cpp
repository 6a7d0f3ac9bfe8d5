#include "driver/report_page.h"

#include <algorithm>

#include "driver/files.h"
#include "driver/report_roofline.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "report/block_names.h"
#include "report/draw.h"
#include "report/page_text.h"
#include "sim/critical_path.h"

namespace harpe {
namespace {

constexpr std::size_t kMostCompared = 5;
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
      all.push_back(
          {.label = evaluated.label,
           .schedule = schedule,
           .time = evaluated.time(),
           .bound = evaluated.bound > Picoseconds() ? std::optional(evaluated.bound) : std::nullopt,
           .memory_bytes = evaluated.memory_bytes,
           .excluded = evaluated.excluded,
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

// What the page is about: the first plan, or where no plan could be made the search's best.
struct Subject {
  std::string label;
  const NormalForm* form = nullptr;
  Picoseconds time;
  std::int64_t memory_bytes = 0;
};

Subject subject_of(const ReportSource& source) {
  if (!source.plans.empty()) {
    const ReportedPlan& plan = source.plans.front();
    return {.label = plan.label,
            .form = &plan.plan.form,
            .time = plan.simulation.total,
            .memory_bytes = plan.simulation.peak_bytes};
  }
  HP_CHECK(source.search != nullptr, "a report is of a plan or of a search");
  const Evaluated& best = source.search->top.front();
  return {.label = best.label,
          .form = &best.form,
          .time = best.time(),
          .memory_bytes = best.memory_bytes};
}

// The best named schedule that might have been chosen.
const Evaluated* best_named(const ReportSource& source) {
  if (source.search == nullptr) return nullptr;
  const auto& all = source.search->baselines;
  const auto found =
      std::ranges::find_if(all, [](const Evaluated& one) { return one.excluded.empty(); });
  return found == all.end() ? nullptr : &*found;
}

std::vector<PageFigure> figures_of(const ReportSource& source) {
  const Subject subject = subject_of(source);
  const auto total = static_cast<double>(std::max<std::int64_t>(1, subject.time.value));
  std::vector<PageFigure> figures = {{page::print_time(subject.time),
                                      source.plans.empty() ? "estimated time" : "simulated time",
                                      "of one execution"}};
  if (const Evaluated* const named = best_named(source);
      named != nullptr && named->form != *subject.form) {
    const double ratio = static_cast<double>(named->time().value) / total;
    figures.push_back({page::print_figure(ratio) + "×", "the speed of " + named->label,
                       "the best named schedule"});
  }
  if (!source.plans.empty()) {
    const ReportedPlan& chosen = source.plans.front();
    figures.push_back({page::print_share(static_cast<double>(chosen.taxes.roofline.value) / total),
                       "of the roofline", name_of(*source.machine, chosen.taxes.bound)});
    const auto exposed = static_cast<double>(chosen.simulation.exposed_communication.value);
    figures.push_back(
        {page::print_share(exposed / total), "of the time waits for data", "on the worst rank"});
  }
  figures.push_back({page::print_bytes(static_cast<double>(subject.memory_bytes)),
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
  const Subject subject = subject_of(source);
  const std::string verdict = "`" + subject.label + "` takes " + page::print_time(subject.time);
  const Evaluated* const named = best_named(source);
  if (named == nullptr) return verdict + ".";
  if (named->form == *subject.form) return verdict + ": a named schedule, and the best of all.";
  const double less = 1 - static_cast<double>(subject.time.value) /
                              static_cast<double>(std::max<std::int64_t>(1, named->time().value));
  if (less < 0.005)
    return verdict + ", as long as `" + named->label + "`, the best named schedule.";
  return verdict + ", " + page::print_share(less) + " less than `" + named->label +
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

// The sections that are about plans.
ReportPage with_plans(ReportPage out, const std::vector<ReportedPlan>& plans,
                      const Machine& machine) {
  const ReportedPlan& chosen = plans.front();
  for (const ReportedPlan& plan : plans) {
    out.taxes.push_back(taxes_of(plan, machine, &plan == &chosen));
  }
  out.timeline = Timeline(chosen.plan, machine, chosen.simulation).make();
  out.critical_path = chosen.simulation.critical_path;
  out.roofline = make_roofline(plans, machine);
  out.memory = memory_of(chosen.simulation, machine);
  out.utilisation = chosen.simulation.shares;
  if (chosen.plan.mesh.ranks() <= kMostDrawnRanks) {
    out.drawing = print_svg(draw(chosen.plan));
    if (out.drawing.size() > kLongestDrawing) out.drawing.clear();
  }
  return out;
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

Checked<std::vector<ReportedPlan>> report_search(const Program& program, const Mesh& mesh,
                                                 const Machine& machine,
                                                 const SearchResult& result) {
  std::vector<ReportedPlan> plans;
  const Evaluated& best = result.top.front();
  if (!best.simulated) return plans;
  HP_TRY(Plan plan, lower(program, mesh, best.form));
  HP_TRY(ReportedPlan chosen, report_plan(best.label, std::move(plan), machine, {}));
  plans.push_back(std::move(chosen));
  for (const Evaluated& named : result.baselines) {
    if (plans.size() > kMostCompared) break;
    if (!named.simulated || named.form == best.form) continue;
    Checked<Plan> other = lower(program, mesh, named.form);
    if (!other.ok()) continue;
    Checked<ReportedPlan> reported = report_plan(named.label, *std::move(other), machine, {});
    if (reported.ok()) plans.push_back(*std::move(reported));
  }
  return plans;
}

ReportPage make_report_page(const ReportSource& source) {
  const Machine& machine = *source.machine;
  const Subject subject = subject_of(source);
  ReportPage out;
  out.title = source.title;
  out.verdict = verdict_of(source);
  out.command = source.command;
  out.machine = machine.name + ": " + machine.summary;
  out.version = source.version;
  out.figures = figures_of(source);
  out.schedule = print(*subject.form);
  if (source.search != nullptr) {
    out.candidates = candidates_of(*source.search, *subject.form);
    out.search = describe(*source.search);
    for (const Refused& refused : source.search->refused) {
      out.refused.push_back({refused.reason, refused.count});
    }
  }
  return source.plans.empty() ? out : with_plans(std::move(out), source.plans, machine);
}

Checked<Ok> write_report(const std::string& path, const ReportSource& source) {
  return write_text(path, print_html(make_report_page(source)));
}

}  // namespace harpe
