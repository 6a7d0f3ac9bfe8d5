#include "search/pool.h"

#include <algorithm>
#include <cmath>

#include "search/canonical.h"
#include "search/problem.h"

namespace harpe {
namespace {

// Takes the same in every figure: the same schedule but for what does not matter here.
bool repeats(const Evaluated& one, const Evaluated& last) {
  return !one.named && one.time() == last.time() && one.memory_bytes == last.memory_bytes;
}

// `count` of them, evenly by their places, the last among them.
std::vector<Evaluated> spread_of(const std::vector<const Evaluated*>& all, std::int64_t count) {
  std::vector<Evaluated> spread;
  const std::int64_t most = std::min(count, std::ssize(all));
  for (std::int64_t i = 1; i <= most; ++i) {
    spread.push_back(*all[static_cast<std::size_t>(i * std::ssize(all) / most - 1)]);
  }
  return spread;
}

}  // namespace

bool is_better(const Evaluated& a, const Evaluated& b) {
  if (a.simulated.has_value() != b.simulated.has_value()) return a.simulated.has_value();
  if (a.time() != b.time()) return a.time() < b.time();
  if (a.memory_bytes != b.memory_bytes) return a.memory_bytes < b.memory_bytes;
  return a.named && !b.named;  // what has a name is said more shortly
}

Pool::Pool(const Program& program, const Mesh& mesh, const Machine& machine,
           const SearchOptions& options)
    : program_(program),
      mesh_(mesh),
      options_(options),
      evaluator_(program, mesh, machine),
      simulates_(mesh.ranks() <= kMostSimulatedRanks),
      limit_(options.memory_limit.value_or(
          static_cast<std::int64_t>(machine.processor.memory_bytes))) {}

std::string Pool::find_exclusion(const NormalForm& form) const {
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

bool Pool::simulate(Evaluated& one) {
  const Checked<Evaluation> evaluation = evaluator_.evaluate(one.form);
  if (!evaluation.ok()) {
    ++refused_[render_message(evaluation.error())];
    return false;
  }
  one.simulated = evaluation->time;
  one.memory_bytes = evaluation->memory_bytes;
  tasks_ = std::max(tasks_, evaluation->tasks);
  ++simulated_;
  return true;
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

std::int64_t Pool::simulate(const NormalForm& form) {
  const auto found = std::ranges::find(evaluated_, form, &Evaluated::form);
  if (found == evaluated_.end()) return 0;
  Evaluated one = std::move(*found);
  evaluated_.erase(found);
  tasks_ = 0;
  if (!simulate(one)) return 0;
  keep(std::move(one));
  return tasks_;
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
  if (evaluated_.empty()) return refuse_all(result);
  std::int64_t least = INT64_MAX;
  std::vector<const Evaluated*> behind;  // the top
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
  if (!too_large_.empty()) {
    const auto nearest = std::ranges::min_element(too_large_, {}, &Evaluated::memory_bytes);
    const std::int64_t times =
        (nearest->memory_bytes + limit_ - 1) / std::max<std::int64_t>(limit_, 1);
    return make_diag(DiagCode::S701, {{"count", result.estimated + result.simulated},
                                      {"program", program_.name},
                                      {"limit", limit_},
                                      {"nearest", nearest->label},
                                      {"needed", nearest->memory_bytes},
                                      {"ranks", mesh_.ranks() * times}});
  }
  if (!result.complete) {
    return make_diag(DiagCode::S702, {{"program", program_.name},
                                      {"seconds", std::round(10 * result.seconds) / 10}});
  }
  std::string reasons;
  for (const Refused& one : result.refused) {
    reasons += (reasons.empty() ? "" : "; ") + std::to_string(one.count) + " " + one.reason;
  }
  if (reasons.empty()) reasons = "no axis has a part for every rank";
  return make_diag(DiagCode::S704,
                   {{"program", program_.name}, {"mesh", mesh_.name}, {"reasons", reasons}});
}

}  // namespace harpe
