#include "report/report_page.h"

#include <algorithm>

#include "compile/launches.h"
#include "io/files.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "report/page_text.h"
#include "report/report_roofline.h"
#include "report/report_timeline.h"
#include "sim/critical_path.h"

namespace harpe {
namespace {

constexpr std::size_t kMostPlansShown = 5;

// The resource that limited each task, unless it was the SMs, which are always in use.
std::vector<std::string> bounds_of(const Simulation& simulation, const Machine& machine) {
  std::vector<std::string> bounds;
  for (const Span& span : simulation.tasks) {
    bounds.emplace_back();
    if (span.bound < 0) continue;
    const Resource& resource = simulation.resources[static_cast<std::size_t>(span.bound)];
    if (resource.kind != ResourceKind::Sm) bounds.back() = name_of(machine, resource);
  }
  return bounds;
}

// Each schedule once: it may be among the best, on the front and named.
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
  return print_count(search.candidates) + " candidates, each once; " + print_count(search.pruned) +
         " out by their bounds, " + print_count(search.estimated) + " estimated, " +
         print_count(search.simulated) + " simulated" +
         (search.complete ? "" : "; the time given ended the search") +
         ". Best first; a name opens its schedule.";
}

// The subject of the page: the first plan or, if no plan could be made, the search's best.
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

// The best named schedule that was eligible.
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
  if (!source.plans.empty()) {
    const std::string& family = source.plans.front().plan.program.name;
    if (const PredictionError* const error = find_error(*source.machine, family)) {
      figures.push_back({"± " + page::print_share(error->nine_of_ten), "error of predictions",
                         "that nine of ten measured plans of " + family + " keep"});
    }
  }
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
    figures.push_back({page::print_short_count(source.search->candidates), "candidates",
                       "in " + page::print_figure(source.search->seconds, 2) + " s, " +
                           page::print_count(source.search->simulated) + " simulated"});
  }
  return figures;
}

// How much less `time` is than `than`, as a clause.
std::string print_less(Picoseconds time, Picoseconds than, const std::string& label,
                       const std::string& role) {
  const double less = 1 - static_cast<double>(time.value) /
                              static_cast<double>(std::max<std::int64_t>(1, than.value));
  const std::string other = "`" + label + "`, " + role + ".";
  if (less < 0.005) return ", as long as " + other;
  return ", " + page::print_share(less) + " less than " + other;
}

std::string verdict_of(const ReportSource& source) {
  const Subject subject = subject_of(source);
  const std::string verdict = "`" + subject.label + "` takes " + page::print_time(subject.time);
  if (const Evaluated* const named = best_named(source)) {
    if (named->form == *subject.form) {
      return verdict + ": a named schedule, and the best " +
             (source.search->complete ? "of all." : "found in the time given.");
    }
    return verdict +
           print_less(subject.time, named->time(), named->label, "the best named schedule");
  }
  if (source.plans.size() < 2) return verdict + ".";
  const ReportedPlan& next = source.plans[1];
  return verdict + print_less(subject.time, next.simulation.total, next.label, "the next best");
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
                    .limit_bytes = saturating_cast(machine.processor.memory_bytes)};
  for (const MemoryPoint& point : memory.points) {
    memory.peak_bytes = std::max(memory.peak_bytes, point.bytes);
  }
  return memory;
}

// Adds the sections about plans.
ReportPage with_plans(ReportPage out, const std::vector<ReportedPlan>& plans,
                      const Machine& machine) {
  const ReportedPlan& chosen = plans.front();
  for (const ReportedPlan& plan : plans) {
    out.taxes.push_back(taxes_of(plan, machine, &plan == &chosen));
  }
  out.timeline = make_timeline(chosen.plan, chosen.simulation.total, chosen.simulation.tasks,
                               bounds_of(chosen.simulation, machine));
  out.critical_path = chosen.simulation.critical_path;
  out.roofline = make_roofline(plans, machine);
  out.memory = memory_of(chosen.simulation, machine);
  out.utilisation = chosen.simulation.shares;
  out.drawing = make_drawing(chosen.plan);
  return out;
}

}  // namespace

Checked<ReportedPlan> report_plan(std::string label, Plan plan, const Machine& machine,
                                  const SimulateOptions& options) {
  HP_REQUIRE_OK(check_fits(plan, machine));
  const launch::LaunchPlan launches = launches_on(plan, machine);
  HP_TRY(Simulation simulation, simulate(plan, launches, machine, options));
  HP_TRY(const Taxes taxes, tax(plan, launches, machine, options.launch));
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
    if (plans.size() > kMostPlansShown) break;
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
  const std::string inherited = list_inherited(machine);
  if (!inherited.empty()) out.machine += "; inherited: " + inherited;
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
  out.refused.insert(out.refused.end(), source.refused.begin(), source.refused.end());
  return source.plans.empty() ? out : with_plans(std::move(out), source.plans, machine);
}

Checked<Ok> write_report(const std::string& path, const ReportSource& source) {
  return write_text(path, print_html(make_report_page(source)));
}

Checked<Ok> write_report(const std::string& path, const std::string& command,
                         const std::string& version, const Tuned& tuned) {
  HP_TRY(std::vector<ReportedPlan> plans,
         report_search(tuned.program, tuned.mesh, tuned.machine, tuned.result));
  return write_report(path, {.title = tuned.program.name + " on " + print_mesh_option(tuned.mesh),
                             .command = command,
                             .version = version,
                             .machine = &tuned.machine,
                             .plans = std::move(plans),
                             .search = &tuned.result});
}

}  // namespace harpe
