#include "search/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule/named/registry.h"
#include "search/canonical.h"
#include "search/problem.h"

namespace harpe {
namespace {

// Equal in every figure: the same schedule except for differences that do not matter here.
bool repeats(const Evaluated& one, const Evaluated& last) {
  return !one.named && one.time() == last.time() && one.memory_bytes == last.memory_bytes;
}

// `count` of them, evenly spaced by position, including the last.
std::vector<Evaluated> spread_of(const std::vector<const Evaluated*>& all, std::int64_t count) {
  std::vector<Evaluated> spread;
  const std::int64_t most = std::min(count, std::ssize(all));
  for (std::int64_t i = 1; i <= most; ++i) {
    spread.push_back(*all[static_cast<std::size_t>(i * std::ssize(all) / most - 1)]);
  }
  return spread;
}

// A remedy for a plan that this many ranks could hold if all of it were divided.
std::string remedy_of(std::int64_t ranks) {
  if (ranks <= kMaxRanks) return "divided over " + std::to_string(ranks) + " ranks it might";
  return "not even " + std::to_string(kMaxRanks) + " ranks, the most there can be, hold it";
}

}  // namespace

bool is_better(const Evaluated& a, const Evaluated& b) {
  if (a.simulated.has_value() != b.simulated.has_value()) return a.simulated.has_value();
  if (a.time() != b.time()) return a.time() < b.time();
  if (a.memory_bytes != b.memory_bytes) return a.memory_bytes < b.memory_bytes;
  return a.named && !b.named;  // a name is a shorter description
}

Pool::Pool(const Program& program, const Mesh& mesh, const Machine& machine,
           const SearchOptions& options, const TimeLimit& limit)
    : program_(program),
      mesh_(mesh),
      options_(options),
      // Small plans take milliseconds: a plan that was begun is finished.
      time_(mesh.ranks() <= kMostSimulatedRanks ? TimeLimit() : limit),
      evaluator_(program, mesh, machine, options.make_launches, time_),
      simulates_(mesh.ranks() <= kMostSimulatedRanks),
      limit_(options.memory_limit.value_or(saturating_cast(machine.processor.memory_bytes))) {}

std::string Pool::find_exclusion(const NormalForm& form) {
  const Checked<Ok> kept = check_constraints(program_, mesh_, form, options_.constraints);
  if (!kept.ok()) {
    refuse(kept.error(), 1);
    return render_message(kept.error());
  }
  if (!homes_.empty() && homes_of(program_, mesh_, form) != homes_) {
    return "its inputs or outputs live elsewhere";
  }
  const NumericsClass numerics = numerics_of(program_, form);
  if (numerics <= options_.numerics) return "";
  return "its sums are " + std::string(print(numerics));
}

bool Pool::add(const NormalForm& form, std::string label, bool named, Picoseconds bound,
               const std::optional<Outline>& outline) {
  if (!seen_.insert(canonical_text(program_, form)).second) return false;
  Evaluated one{.form = form,
                .label = std::move(label),
                .named = named,
                .excluded = find_exclusion(form),
                .bound = bound,
                .estimate = outline ? outline->time : Picoseconds(),
                .simulated = std::nullopt,
                .memory_bytes = outline ? outline->memory_bytes : 0};
  if (simulates_) {
    if (!simulate(one)) return true;
    if (!outline) one.estimate = *one.simulated;
  } else if (!outline) {
    return true;
  }
  keep(std::move(one));
  return true;
}

std::optional<Plan> Pool::simulate(Evaluated& one) {
  Checked<Evaluation> evaluation = evaluator_.evaluate(one.form);
  if (!evaluation.ok()) {
    note(one, evaluation.error());
    return std::nullopt;
  }
  one.simulated = evaluation->time;
  one.memory_bytes = evaluation->memory_bytes;
  tasks_ += std::ssize(evaluation->plan.tasks);
  ++simulated_;
  return std::move(evaluation->plan);
}

bool Pool::prove(Evaluated& one, const Plan& plan) {
  const Checked<Ok> proof = options_.prove(plan, time_);
  one.proved = proof.ok();
  return proof.ok() || note(one, proof.error());
}

bool Pool::note(const Evaluated& one, const Diag& refusal) {
  if (refusal.code == DiagCode::I505) {
    given_up_ =
        GivenUp{.label = one.label, .work = render_message(refusal), .simulated = one.simulated};
    return true;
  }
  ++refused_[render_message(refusal)];
  return false;
}

void Pool::keep(Evaluated one) {
  if (!one.excluded.empty()) {
    excluded_.push_back(std::move(one));
  } else if (one.memory_bytes > limit_) {
    too_large_.push_back(std::move(one));
  } else {
    reach(one.time());
    evaluated_.push_back(std::move(one));
  }
}

std::int64_t Pool::make_plan(Evaluated one) {
  std::erase_if(evaluated_, [&](const Evaluated& other) { return other.form == one.form; });
  std::optional<Plan> plan = simulate(one);
  if (!plan) {
    if (given_up_ && one.estimate.value > 0) keep(std::move(one));
    return 0;
  }
  const std::int64_t tasks = std::ssize(plan->tasks);
  const bool may_answer = options_.prove && one.excluded.empty() && one.memory_bytes <= limit_;
  const bool is_fastest = std::ranges::none_of(evaluated_, [&](const Evaluated& other) {
    const bool counts = other.proved || (unproved_ && unproved_->form == other.form);
    return counts && other.time() <= one.time();
  });
  if (!may_answer || !is_fastest) {
    keep(std::move(one));
  } else if (puts_off(one)) {
    unproved_ = {.form = one.form, .plan = *std::move(plan)};
    keep(std::move(one));
  } else if (prove(one, *plan)) {
    keep(std::move(one));
  }
  return tasks;
}

bool Pool::puts_off(const Evaluated& one) const {
  const bool has_answer = std::ranges::any_of(evaluated_, &Evaluated::proved);
  return has_answer && !one.named && !time_.end;
}

void Pool::prove_fastest() {
  while (unproved_) {
    const auto slowness = [](const Evaluated& one) {
      return one.simulated.value_or(Picoseconds::longest());
    };
    const auto fastest = std::ranges::min_element(evaluated_, {}, slowness);
    if (fastest->proved) break;
    if (unproved_->form != fastest->form) {
      Checked<Evaluation> again = evaluator_.evaluate(fastest->form);
      if (!again.ok()) {  // the time limit is over
        (void)note(*fastest, again.error());
        break;
      }
      unproved_ = {.form = fastest->form, .plan = std::move(again->plan)};
    }
    if (prove(*fastest, unproved_->plan)) break;
    evaluated_.erase(fastest);
  }
  unproved_.reset();
}

std::int64_t Pool::make_named(const NormalForm& form, std::string label) {
  if (!seen_.insert(canonical_text(program_, form)).second) return 0;
  return make_plan({.form = form,
                    .label = std::move(label),
                    .named = true,
                    .excluded = find_exclusion(form),
                    .bound = {},
                    .estimate = {},
                    .simulated = std::nullopt});
}

void Pool::miss(Evaluated one) { too_large_ = {std::move(one)}; }

std::optional<std::int64_t> Pool::nearest_bytes() const {
  if (too_large_.empty()) return std::nullopt;
  return std::ranges::min_element(too_large_, {}, &Evaluated::memory_bytes)->memory_bytes;
}

Checked<SearchResult> Pool::conclude(SearchResult result) {
  result.simulated = simulated_;
  result.feasible = static_cast<std::int64_t>(evaluated_.size());
  for (const auto& [reason, count] : refused_) result.refused.push_back({reason, count});
  std::ranges::stable_sort(evaluated_, is_better);
  // The answer comes first; a faster schedule whose proof was given up stands behind it.
  const auto proved = std::ranges::find(evaluated_, true, &Evaluated::proved);
  if (proved != evaluated_.end()) std::rotate(evaluated_.begin(), proved, proved + 1);
  result.given_up = given_up_;
  const bool none_proved = options_.prove && !simulates_ && !result.complete &&
                           (evaluated_.empty() || !evaluated_.front().proved);
  if (evaluated_.empty() || none_proved) return refuse_all(result);
  std::int64_t least = INT64_MAX;
  std::vector<const Evaluated*> behind;  // behind the top
  result.baselines = excluded_;
  for (const Evaluated& one : evaluated_) {
    if (one.named) result.baselines.push_back(one);
    const bool full = static_cast<std::int64_t>(result.top.size()) >= options_.top;
    if (!full && (result.top.empty() || !repeats(one, result.top.back()))) {
      result.top.push_back(one);
    } else if (full) {
      behind.push_back(&one);
    }
    const bool as_sure = one.simulated.has_value() == evaluated_.front().simulated.has_value();
    if (one.memory_bytes >= least || !as_sure) continue;
    least = one.memory_bytes;
    result.front.push_back(one);
  }
  std::ranges::stable_sort(result.baselines, is_better);
  result.spread = spread_of(behind, options_.spread);
  return result;
}

Diag Pool::refuse_all(const SearchResult& result) const {
  if (evaluated_.empty() && !too_large_.empty()) {
    const auto nearest = std::ranges::min_element(too_large_, {}, &Evaluated::memory_bytes);
    const auto share = std::max<std::int64_t>(limit_, 1);
    const std::int64_t times = (nearest->memory_bytes - 1) / share + 1;
    const std::int64_t ranks = saturating_multiply(mesh_.ranks(), times);
    return make_diag(DiagCode::S701, {{"count", result.estimated + result.simulated},
                                      {"program", program_.name},
                                      {"limit", limit_},
                                      {"nearest", nearest->label},
                                      {"needed", nearest->memory_bytes},
                                      {"remedy", remedy_of(ranks)}});
  }
  const double seconds = std::round(10 * result.seconds) / 10;
  if (!result.complete) {
    std::string what = "any schedule was evaluated";
    if (!evaluated_.empty()) {
      what = fmt::format(
          "any plan of its {} ranks was simulated and proved; by estimate the best is `{}`, {:.0f} "
          "us",
          mesh_.ranks(), evaluated_.front().label, evaluated_.front().time().microseconds());
    }
    return make_diag(DiagCode::S702,
                     {{"program", program_.name}, {"seconds", seconds}, {"what", what}});
  }
  std::string reasons;
  for (const Refused& one : result.refused) {
    reasons += (reasons.empty() ? "" : "; ") + std::to_string(one.count) + " " + one.reason;
  }
  if (reasons.empty()) reasons = "no axis has a part for every rank";
  Diag refusal = make_diag(
      DiagCode::S704, {{"program", program_.name}, {"mesh", mesh_.name}, {"reasons", reasons}});
  if (options_.constraints.empty()) return refusal;
  // Named schedules that do not apply might have satisfied the constraints.
  for (const Applicability& schedule : find_applicable(options_.family, program_, mesh_)) {
    if (schedule.script.ok()) continue;
    refusal = with_note(std::move(refusal), render_message(schedule.script.error()));
  }
  return refusal;
}

}  // namespace harpe
