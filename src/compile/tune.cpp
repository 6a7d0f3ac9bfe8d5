#include "compile/tune.h"

#include <algorithm>
#include <map>

#include "compile/certify.h"
#include "compile/check_form.h"
#include "compile/launches.h"
#include "compile/machines.h"
#include "compile/plan_cache.h"
#include "compile/plan_file.h"
#include "compile/read_constraints.h"
#include "compile/schedule_names.h"
#include "io/files.h"
#include "lower/lower.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"

namespace harpe {
namespace {

constexpr std::size_t kMostPathsCompared = 12;

std::optional<PathSums> path_of(const Tuned& tuned, const Evaluated& one) {
  if (!one.simulated) return std::nullopt;
  const Checked<Plan> plan = lower(tuned.program, tuned.mesh, one.form);
  if (!plan.ok()) return std::nullopt;
  const Checked<Simulation> simulation =
      simulate(*plan, launches_on(*plan, tuned.machine), tuned.machine);
  if (!simulation.ok()) return std::nullopt;
  return sum_path(*simulation);
}

SearchComparison compare(const Evaluated& other, const PathSums& best, const PathSums& its) {
  SearchComparison out{.schedule = other.label,
                       .ratio = its.total.seconds() / best.total.seconds(),
                       .excluded = other.excluded,
                       .differences = {}};
  std::map<Spending, std::int64_t> sums;
  for (const auto& [spending, time] : its.spent) sums[spending] += time.value;
  for (const auto& [spending, time] : best.spent) sums[spending] -= time.value;
  for (const auto& [spending, time] : sums) {
    if (time != 0) out.differences.emplace_back(spending, time);
  }
  std::ranges::stable_sort(out.differences, std::ranges::greater(),
                           [](const auto& entry) { return std::abs(entry.second); });
  return out;
}

void add_comparisons(Tuned& tuned) {
  // On many ranks only times are compared, so that nothing is lowered twice.
  if (tuned.result.baselines.empty() || tuned.mesh.ranks() > kFullRanks) return;
  const std::optional<PathSums> best = path_of(tuned, tuned.result.top.front());
  if (!best) return;
  for (const Evaluated& named : tuned.result.baselines) {
    if (tuned.comparisons.size() == kMostPathsCompared) return;
    const auto its = path_of(tuned, named);
    if (its) tuned.comparisons.push_back(compare(named, *best, *its));
  }
}

// A question to the cache, and its answer.
struct Known {
  CacheKey key;
  std::optional<CacheEntry> entry;
};

// Adds the cache's schedules to the search as seeds.
std::optional<Known> begin_with_known(Session& session, const Request& subject,
                                      SearchOptions& options, Tuned& tuned) {
  if (!subject.cache) return std::nullopt;
  Known known{
      .key = make_cache_key(tuned.program, tuned.mesh, tuned.machine, options, subject.version),
      .entry = std::nullopt};
  // On many ranks nothing is lowered, as in the search.
  const auto check = [&](const NormalForm& form) {
    return tuned.mesh.ranks() > kFullRanks ? check_rules(tuned.program, tuned.mesh, form)
                                           : check_form(tuned.program, tuned.mesh, form);
  };
  CacheAnswer answer = consult_cache(*subject.cache, known.key, check,
                                     [&](const Diag& diag) { session.warn(diag); });
  if (answer.exact) tuned.known_since = answer.exact->date;
  tuned.seeds = std::ssize(answer.seeds);
  options.seeds = std::move(answer.seeds);
  known.entry = std::move(answer.exact);
  return known;
}

// An interrupted search is not cached.
bool is_whole(const Tuned& tuned, const Tried& tried) {
  return tuned.result.complete && tried.complete;
}

// The certificate of the best schedule, whose plan the search has proved, or which is made and
// proved now. On many ranks the search proves only plans faster than all proved before: the last is
// the best.
Checked<Ok> add_certificate(Tuned& tuned, const NormalForm& found,
                            std::optional<Certificate> last_proved) {
  const Evaluated& best = tuned.result.top.front();
  if (best.proved && best.form == found) {
    tuned.certificate = std::move(last_proved);
  } else if (best.simulated) {
    HP_TRY(const Plan plan, lower(tuned.program, tuned.mesh, best.form));
    HP_TRY(tuned.certificate, prove(plan));
  }
  return Ok{};
}

// Moves the fastest to the front, wherever the search ranked it.
void put_first(std::vector<Evaluated>& top, const Evaluated& fastest) {
  std::erase_if(top, [&](const Evaluated& one) { return one.form == fastest.form; });
  top.insert(top.begin(), fastest);
}

// The search's result with new measurements, and earlier ones of other processors.
CacheEntry entry_of(const Known& known, const SearchResult& result, const Tried& tried) {
  CacheEntry entry = make_cache_entry(known.key, result);
  if (tried.fastest) {
    const Evaluated& fastest = tried.fastest->schedule;
    add_measured(entry, {.label = fastest.label,
                         .predicted = fastest.time(),
                         .measured = tried.fastest->time,
                         .memory_bytes = fastest.memory_bytes,
                         .form = fastest.form});
  }
  if (!known.entry) return entry;
  for (const CachedSchedule& schedule : known.entry->schedules) {
    if (schedule.measured) add_measured(entry, schedule);
  }
  return entry;
}

}  // namespace

PathSums sum_path(const Simulation& simulation) {
  std::map<Spending, Picoseconds> sums;
  for (const Segment& segment : simulation.critical_path) {
    sums[segment.spending] += segment.end - segment.begin;
  }
  PathSums out{.total = simulation.total, .spent = {sums.begin(), sums.end()}};
  std::ranges::stable_sort(out.spent, std::ranges::greater(),
                           [](const auto& entry) { return entry.second; });
  return out;
}

Checked<Tuned> tune(Session& session, const TuneRequest& request) {
  const auto begun = std::chrono::steady_clock::now();
  Tuned tuned;
  HP_TRY(tuned.program, session.program(request.subject));
  HP_TRY(tuned.mesh, session.mesh(request.subject));
  HP_TRY(tuned.machine, machine_for(request.subject, tuned.mesh));
  SearchOptions options = request.search;
  options.family = schedule_family(tuned.program);
  HP_TRY(tuned.constraints, read_constraints(tuned.program, tuned.mesh, request.subject));
  options.constraints = tuned.constraints;
  if ((request.try_out || request.verifies_all) && options.budget) *options.budget /= 2;
  const std::optional<Known> known = begin_with_known(session, request.subject, options, tuned);
  options.make_launches = [&](const Plan& plan) { return launches_on(plan, tuned.machine); };
  std::optional<Certificate> last_proved;
  options.prove = [&](const Plan& plan, const TimeLimit& limit) -> Checked<Ok> {
    HP_TRY(last_proved, prove(plan, limit));
    return Ok{};
  };
  HP_TRY(tuned.result, search(tuned.program, tuned.mesh, tuned.machine, options));
  const NormalForm found = tuned.result.top.front().form;
  Tried tried;
  if (request.try_out) {
    std::optional<std::chrono::steady_clock::time_point> deadline;
    if (request.search.budget) deadline = begun + *request.search.budget;
    HP_TRY(tried, request.try_out(tuned.program, tuned.mesh, tuned.result, deadline));
  }
  std::optional<CacheEntry> answer;
  if (known && is_whole(tuned, tried)) answer = entry_of(*known, tuned.result, tried);
  if (tried.fastest) {
    put_first(tuned.result.top, tried.fastest->schedule);
  }
  if (!request.try_out) {
    tuned.libraries = price_libraries(tuned.program, request.subject.parameters, tuned.mesh,
                                      tuned.machine, tuned.result.top.front().time());
  }
  HP_REQUIRE_OK(add_certificate(tuned, found, std::move(last_proved)));
  add_comparisons(tuned);
  if (answer) {
    const Checked<Ok> kept = store(*request.subject.cache, *answer);
    if (!kept.ok()) session.warn(kept.error());
  }
  return tuned;
}

std::string script_of(const Tuned& tuned, const Evaluated& one) {
  return print(derive_script(tuned.program, tuned.mesh, one.form));
}

Checked<Ok> write_best(const std::string& path, const Tuned& tuned) {
  HP_TRY(const Plan plan, lower(tuned.program, tuned.mesh, tuned.result.top.front().form));
  HP_REQUIRE_OK(prove(plan));
  return write_text(path, print_plan_file(plan));
}

}  // namespace harpe
