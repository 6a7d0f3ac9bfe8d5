#include "search/search.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "lower/lower.h"
#include "lower/size.h"
#include "schedule/fit.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "search/canonical.h"
#include "search/form_variants.h"
#include "search/outline.h"
#include "search/pool.h"
#include "search/regions.h"
#include "search/space.h"
#include "search/standard.h"
#include "sim/simulate.h"
#include "support/check.h"

namespace harpe {
namespace {

// How much is simulated: plans of about this many tasks in total, within these numbers of plans. A
// count, not a time, so that equal searches give equal answers on any machine.
constexpr std::int64_t kSimulatedTasks = 9'000;
constexpr std::int64_t kFewestSimulated = 12;
constexpr std::int64_t kMostSimulated = 128;
// On many ranks: the estimated tasks of all plans that are made, and the number of plans.
constexpr std::int64_t kLargePlansTasks = 300'000;
constexpr std::int64_t kMostLargePlans = 8;
constexpr std::int64_t kNamedPlansTasks = 300'000;
// Estimates kept for simulation in total, and per skeleton.
constexpr std::size_t kKept = 1024;
constexpr std::size_t kKeptOfOne = 16;
// Outlines are close to simulations (docs/search.md). A skeleton is dropped if its default variant
// is slower by more than the first percentage, a candidate if it is slower by more than the second.
constexpr std::int64_t kSkeletonMargin = 35;
constexpr std::int64_t kCandidateMargin = 30;
// Within this many thousandths a bound counts as reached.
constexpr std::int64_t kGap = 1;
// Up to this many variants are all evaluated; of more, those one change away from the best.
constexpr std::int64_t kAllVariants = 96;
// This many of the best are refined.
constexpr std::size_t kRefined = 4;
// For this many of the best, other fences are tried.
constexpr std::size_t kOrdered = 4;

struct Kept {
  Candidate candidate;
  Outline outline;
  Picoseconds bound;
  std::int64_t order = 0;  // of enumeration; breaks ties
};

bool is_as_good(Picoseconds time, Picoseconds other) {
  return std::abs((time - other).value) <= other.value / 1000 * kGap;
}

bool comes_first(const Kept& a, const Kept& b) {
  if (a.outline.time != b.outline.time) return a.outline.time < b.outline.time;
  if (a.outline.memory_bytes != b.outline.memory_bytes) {
    return a.outline.memory_bytes < b.outline.memory_bytes;
  }
  return a.order < b.order;
}

TimeLimit limit_of(const SearchOptions& options, std::chrono::steady_clock::time_point begun) {
  TimeLimit limit{.end = std::nullopt, .interrupted = options.interrupted};
  if (options.budget) limit.end = begun + *options.budget;
  return limit;
}

class Searcher {
 public:
  Searcher(const Program& program, const Mesh& mesh, const Machine& machine,
           const SearchOptions& options)
      : program_(program),
        mesh_(mesh),
        machine_(machine),
        options_(options),
        begun_(std::chrono::steady_clock::now()),
        limit_(limit_of(options, begun_)),
        pool_(program, mesh, machine, options, limit_) {}

  Checked<SearchResult> run() {
    standard_ = standard_form(options_.family, program_, mesh_);
    if (!standard_) return no_homes(program_);
    const Checked<Problem> problem = make_problem(program_, mesh_, *standard_, options_);
    read_contract(problem);
    add_baselines();
    add_seeds();
    if (problem.ok()) {
      walk_space(*problem);
      simulate_kept(*problem);
      refine(*problem);
      simulate_spread(*problem);
      make_large_plans();
      pool_.prove_fastest();
    } else if (!pool_.simulates()) {
      if (pool_.evaluated().empty() && !is_over()) return problem.error();
    } else {
      climb();
      vary_spread();
    }
    order_words();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    result_.complete = !over_;
    result_.unique = result_.candidates;
    return pool_.conclude(std::move(result_));
  }

 private:
  [[nodiscard]] bool is_over() {
    over_ = over_ || limit_.is_over();
    return over_;
  }

  // One evaluated schedule is enough for an answer.
  [[nodiscard]] bool may_end() { return is_over() && !pool_.evaluated().empty(); }

  void show(std::string_view stage, std::int64_t done, std::int64_t of) const {
    if (options_.progress) options_.progress(stage, done, of);
  }

  // The homes that a chosen schedule must have: the operator's, except those that the caller fixes.
  void read_contract(const Checked<Problem>& problem) {
    if (options_.contract != Contract::Standard) return;
    pool_.set_contract(homes_of(program_, mesh_, *standard_));
    if (options_.constraints.homes.empty() || !problem.ok()) return;
    const auto skeletons =
        enumerate_skeletons(*problem, {.contract = options_.contract, .cuts = 0});
    if (skeletons.empty()) return;
    pool_.set_contract(homes_of(program_, mesh_, form_of(*problem, machine_, skeletons.front())));
  }

  // Replaces transports that the machine lacks, if the form lowers with the replacements.
  [[nodiscard]] NormalForm fit(const NormalForm& form) const {
    FittedForm fitted = fit_transports(form, mesh_, machine_);
    const bool lowers =
        fitted.refits.empty() || !pool_.simulates() || lower(program_, mesh_, fitted.form).ok();
    return lowers ? std::move(fitted.form) : form;
  }

  void add_baselines() {
    if (options_.family.empty()) return;
    if (!pool_.simulates()) return add_large_baselines();
    const auto all = find_applicable(options_.family, program_, mesh_);
    std::int64_t done = 0;
    for (const Applicability& schedule : all) {
      show("named schedules", done++, static_cast<std::int64_t>(all.size()));
      if (!schedule.script.ok()) continue;
      const Checked<NormalForm> form = replay(program_, mesh_, *schedule.script);
      if (!form.ok()) continue;
      pool_.add(fit(*form), std::string(schedule.name), true, {}, std::nullopt);
      if (may_end()) return;
    }
  }

  // On many ranks: the named schedules with small plans, the smallest first.
  void add_large_baselines() {
    std::vector<std::pair<double, std::pair<std::string, NormalForm>>> named;
    for (const Applicability& schedule : find_applicable(options_.family, program_, mesh_)) {
      if (!schedule.script.ok()) continue;
      const Checked<NormalForm> form = replay(program_, mesh_, *schedule.script);
      if (!form.ok()) continue;
      named.push_back({count_tasks(mesh_, *form), {std::string(schedule.name), fit(*form)}});
    }
    std::ranges::sort(named, {}, [](const auto& one) { return one.first; });
    double left = kNamedPlansTasks;
    std::int64_t done = 0;
    for (const auto& [tasks, schedule] : named) {
      show("named schedules", done++, std::ssize(named));
      if (tasks > left) {
        result_.too_large.push_back(schedule.first);
        continue;
      }
      if (is_over()) {
        ++result_.plans_left;
        continue;
      }
      const std::int64_t made = pool_.make_named(schedule.second, schedule.first);
      left -= std::max(tasks, static_cast<double>(made));
    }
  }

  void add_seeds() {
    for (const Seed& seed : options_.seeds) {
      if (is_over()) return;
      pool_.add(fit(seed.form), seed.label, false, {}, std::nullopt);
    }
  }

  // Skeletons of few parts come first: there are few of them, and a search that ends early has
  // covered them. Their best times prune the others.
  void walk_space(const Problem& problem) {
    const int axes = divided_axes(mesh_);
    for (int cuts = 0; cuts <= cuts_for(mesh_, options_); ++cuts) {
      std::vector<Candidate> skeletons = enumerate_skeletons(
          problem,
          {.contract = options_.contract, .cuts = cuts, .layout = options_.constraints.layout});
      std::erase_if(skeletons, [&](const Candidate& one) {
        return (cuts > 0 && one.parts < axes + cuts) ||
               (options_.numerics == NumericsClass::Exact && !keeps_sums(problem, one));
      });
      walk(problem, skeletons);
      if (is_over() || axes + cuts >= kMostParts) return;
    }
  }

  // Visits skeletons in the order of their bounds. Those that cannot beat the best known time are
  // pruned.
  void walk(const Problem& problem, const std::vector<Candidate>& skeletons) {
    std::vector<std::pair<Picoseconds, std::size_t>> order;
    order.reserve(skeletons.size());
    for (std::size_t i = 0; i < skeletons.size(); ++i) {
      if ((i & 255) == 0) show("bounds", static_cast<std::int64_t>(i), std::ssize(skeletons));
      const bool has_some = i > 0 || !pool_.simulates();
      if ((i & 63) == 0 && has_some && is_over()) break;
      order.emplace_back(bound_of(problem, machine_, skeletons[i]), i);
    }
    std::ranges::sort(order);
    std::int64_t done = 0;
    for (const auto& [bound, index] : order) {
      const std::int64_t variants = count_variants(problem, skeletons[index]);
      result_.candidates += variants;
      if (const Checked<Ok> told = check_time(bound, "the plan", machine_); !told.ok()) {
        pool_.refuse(told.error(), variants);
        continue;
      }
      if ((++done & 63) == 0) show("schedules", done, static_cast<std::int64_t>(order.size()));
      const bool hopeless = bound.value >= pool_.best_time().value / 1000 * (1000 - kGap);
      if (hopeless && !options_.exhaustive && options_.spread == 0) {
        result_.pruned += variants;
        continue;
      }
      if (is_over() && result_.estimated > 0) continue;  // one estimate is an answer
      estimate(problem, skeletons[index], bound, variants);
    }
  }

  // Evaluates the variants of one skeleton and keeps the best few.
  void estimate(const Problem& problem, const Candidate& skeleton, Picoseconds bound,
                std::int64_t variants) {
    found_.clear();
    bound_ = bound;
    if (options_.exhaustive) {
      for_each_variant(problem, skeleton, [&](const Candidate& one) { consider(problem, one); });
    } else {
      for (const Candidate& one : usual_variants(problem, skeleton)) consider(problem, one);
      Picoseconds usual;
      if (!found_.empty()) {
        usual = std::ranges::min_element(found_, comes_first)->outline.time;
        least_ = std::min(least_, usual);
      }
      if (usual.value / (100 + kSkeletonMargin) <= least_.value / 100) {
        found_.clear();
        look_around(problem, skeleton, variants);
      }
    }
    std::ranges::sort(found_, comes_first);
    if (!options_.exhaustive && found_.size() > kKeptOfOne) found_.resize(kKeptOfOne);
    if (!found_.empty()) least_ = std::min(least_, found_.front().outline.time);
    std::ranges::move(found_, std::back_inserter(kept_));
    if (!options_.exhaustive && kept_.size() >= 2 * kKept) shrink();
  }

  void look_around(const Problem& problem, const Candidate& skeleton, std::int64_t variants) {
    if (variants <= kAllVariants) {
      for_each_variant(problem, skeleton, [&](const Candidate& one) { consider(problem, one); });
      return;
    }
    for (const Candidate& one : usual_variants(problem, skeleton)) consider(problem, one);
    if (found_.empty()) return;
    Candidate best = std::ranges::min_element(found_, comes_first)->candidate;
    for (bool better = true; better;) {
      better = false;
      for (const Candidate& other : neighbours_of(problem, best)) consider(problem, other);
      const auto& first = *std::ranges::min_element(found_, comes_first);
      better = !(first.candidate == best);
      best = first.candidate;
    }
  }

  void consider(const Problem& problem, const Candidate& candidate) {
    ++result_.estimated;
    const Outline one = outline(problem, machine_, candidate);
    if (!pool_.simulates() && one.memory_bytes > pool_.memory_limit()) {
      miss(problem, candidate, one, bound_);
      return;
    }
    if (!pool_.simulates()) pool_.reach(one.time);
    found_.push_back({candidate, one, bound_, result_.estimated});
  }

  void shrink() {
    std::ranges::sort(kept_, comes_first);
    if (kept_.size() > kKept) kept_.resize(kKept);
  }

  void miss(const Problem& problem, const Candidate& candidate, const Outline& one,
            Picoseconds bound) {
    const auto nearest = pool_.nearest_bytes();
    if (nearest && one.memory_bytes >= *nearest) return;
    pool_.miss({.form = form_of(problem, machine_, candidate),
                .label = describe(problem, candidate),
                .named = false,
                .excluded = {},
                .bound = bound,
                .estimate = one.time,
                .simulated = std::nullopt,
                .memory_bytes = one.memory_bytes});
  }

  [[nodiscard]] std::int64_t simulations() const {
    if (options_.exhaustive) return INT64_MAX;
    if (!pool_.simulates()) return kMostSimulated;
    return std::clamp(kSimulatedTasks / std::max<std::int64_t>(pool_.mean_tasks(), 1),
                      kFewestSimulated, kMostSimulated);
  }

  void simulate_kept(const Problem& problem) {
    if (!options_.exhaustive) shrink();
    const std::int64_t most = simulations();
    std::int64_t done = 0;
    const Kept* last = nullptr;  // the last simulated one
    Picoseconds last_time;
    bool is_settled = false;  // two with this outline took the same time, so the others will too
    for (const Kept& one : kept_) {
      if (done >= most || (pool_.simulates() && may_end())) break;
      const bool slow =
          one.outline.time.value / (100 + kCandidateMargin) > pool_.best_time().value / 100;
      if ((slow || one.bound >= pool_.best_time()) && !options_.exhaustive) continue;
      const bool is_alike = last != nullptr && is_as_good(one.outline.time, last->outline.time);
      if (is_alike && is_settled && !options_.exhaustive) {
        ++done;
        continue;
      }
      show("simulating", done, std::min(most, static_cast<std::int64_t>(kept_.size())));
      const std::size_t before = pool_.evaluated().size();
      if (add(one, problem)) ++done;
      if (pool_.evaluated().size() == before) continue;
      const Picoseconds time = pool_.evaluated().back().time();
      is_settled = is_alike && is_as_good(time, last_time);
      last = &one;
      last_time = time;
    }
  }

  // Simulates candidates spread over all kept outlines, up to the slowest one.
  void simulate_spread(const Problem& problem) {
    std::ranges::sort(kept_, comes_first);
    const std::int64_t most = std::min(options_.spread, std::ssize(kept_));
    for (std::int64_t i = 0; i < most && !is_over(); ++i) {
      show("simulating slower ones", i, most);
      const std::int64_t place = most == 1 ? 0 : i * (std::ssize(kept_) - 1) / (most - 1);
      add(kept_[static_cast<std::size_t>(place)], problem);
    }
  }

  bool add(const Kept& one, const Problem& problem) {
    const std::size_t before = pool_.evaluated().size();
    const bool is_new = pool_.add(fit(form_of(problem, machine_, one.candidate)),
                                  describe(problem, one.candidate), false, one.bound, one.outline);
    if (pool_.evaluated().size() > before) candidates_[before] = one.candidate;
    return is_new;
  }

  // Tries other depths and transports for the best: changes that keep the schedule's shape.
  void refine(const Problem& problem) {
    if (options_.exhaustive) return;
    std::vector<std::size_t> best;
    for (const auto& [index, candidate] : candidates_) best.push_back(index);
    std::ranges::sort(best, [&](std::size_t a, std::size_t b) {
      return is_better(pool_.evaluated()[a], pool_.evaluated()[b]);
    });
    if (best.size() > kRefined) best.resize(kRefined);
    std::int64_t done = 0;
    const std::int64_t most = std::max<std::int64_t>(simulations() / 4, 4);
    for (const std::size_t index : best) {
      const Candidate from = candidates_.at(index);
      const Picoseconds bound = pool_.evaluated()[index].bound;
      for (const Candidate& changed : refinements_of(problem, machine_, from)) {
        if (done >= most || is_over()) return;
        const Outline one = outline(problem, machine_, changed);
        if (one.time.value > saturating_multiply(pool_.best_time().value / 20, 21)) continue;
        show("refining", done, most);
        if (add(Kept{changed, one, bound, 0}, problem)) ++done;
      }
    }
  }

  // On many ranks: makes plans of the best by outline, because an answer must have a plan.
  void make_large_plans() {
    if (pool_.simulates()) return;
    std::vector<Evaluated> best = pool_.evaluated();
    std::ranges::stable_sort(best, is_better);
    std::int64_t plans = 0;
    double left = kLargePlansTasks;
    for (const Evaluated& one : best) {
      if (plans == kMostLargePlans) return;
      const double tasks = count_tasks(mesh_, one.form);
      if (tasks > left || one.simulated) continue;
      if (is_over()) {
        ++result_.plans_left;
        ++plans;
        left -= tasks;
        continue;
      }
      show("making large plans", plans, kMostLargePlans);
      const std::int64_t made = pool_.make_plan(one);
      if (made == 0) continue;
      ++plans;
      left -= std::max(tasks, static_cast<double>(made));
    }
  }

  // Tries other fences for the best: the time of signals does not change a schedule's shape.
  void order_words() {
    if (!pool_.simulates()) return;
    std::vector<Evaluated> best = pool_.evaluated();
    std::ranges::stable_sort(best, is_better);
    if (best.size() > kOrdered) best.resize(kOrdered);
    for (const Evaluated& one : best) {
      for (const FormVariant& variant : fence_variants_of(one.form, machine_)) {
        if (is_over()) return;
        show("ordering words", 0, 1);
        pool_.add(variant.form, one.label + ", " + variant.change, false, one.bound, std::nullopt);
      }
    }
  }

  // A program without a factored space is explored by mutating its best named schedule, one change
  // at a time.
  void climb() {
    const std::int64_t most = simulations();
    for (bool better = true; better;) {
      if (pool_.evaluated().empty()) return;
      const Evaluated best = *std::ranges::min_element(pool_.evaluated(), is_better);
      if (!vary(best, most)) return;
      better = std::ranges::min_element(pool_.evaluated(), is_better)->time() < best.time();
    }
  }

  // For the spread, mutates the other schedules too.
  void vary_spread() {
    varied_ = 0;
    for (std::size_t i = 0; i < pool_.evaluated().size(); ++i) {
      const Evaluated one = pool_.evaluated()[i];
      if (!vary(one, options_.spread)) return;
    }
  }

  // False if `most` variants were made, or the search is over.
  bool vary(const Evaluated& one, std::int64_t most) {
    for (const FormVariant& variant : variants_of(one.form)) {
      if (varied_ >= most || is_over()) return false;
      show("varying", varied_, most);
      ++result_.candidates;
      if (!pool_.add(fit(variant.form), one.label + ", " + variant.change, false, {},
                     std::nullopt)) {
        ++result_.duplicates;
        continue;
      }
      ++varied_;
    }
    return true;
  }

  const Program& program_;
  const Mesh& mesh_;
  const Machine& machine_;
  const SearchOptions& options_;
  std::chrono::steady_clock::time_point begun_;
  TimeLimit limit_;
  Pool pool_;
  SearchResult result_;
  std::optional<NormalForm> standard_;  // its homes are the operator's own
  std::vector<Kept> kept_;
  std::vector<Kept> found_;                      // of the current skeleton
  Picoseconds bound_;                            // the bound of the current skeleton
  Picoseconds least_ = Picoseconds::longest();   // the best estimate
  std::map<std::size_t, Candidate> candidates_;  // by index into the pool's entries
  std::int64_t varied_ = 0;                      // variants of forms without a space
  bool over_ = false;
};

}  // namespace

Checked<SearchResult> search(const Program& program, const Mesh& mesh, const Machine& machine,
                             const SearchOptions& options) {
  HP_REQUIRE_OK(check_ranks(mesh, machine));
  return Searcher(program, mesh, machine, options).run();
}

}  // namespace harpe
