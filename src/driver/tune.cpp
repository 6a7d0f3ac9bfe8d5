#include "driver/tune.h"

#include <algorithm>
#include <map>

#include "driver/certify.h"
#include "driver/files.h"
#include "driver/machines.h"
#include "driver/plan_cache.h"
#include "driver/plan_file.h"
#include "driver/report_page.h"
#include "driver/simulation.h"
#include "driver/summary.h"
#include "lower/lower.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"

namespace harpe {
namespace {

constexpr std::size_t kMostPathsCompared = 12;

std::optional<PathSums> path_of(const Program& program, const Mesh& mesh, const Machine& machine,
                                const Evaluated& one) {
  if (!one.simulated) return std::nullopt;
  const Checked<Plan> plan = lower(program, mesh, one.form);
  if (!plan.ok()) return std::nullopt;
  const Checked<Simulation> simulation = simulate(*plan, machine);
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
  // On many ranks their times alone: nothing is lowered twice.
  if (tuned.result.baselines.empty() || tuned.mesh.ranks() > kFullRanks) return;
  const std::optional<PathSums> best =
      path_of(tuned.program, tuned.mesh, tuned.machine, tuned.result.top.front());
  if (!best) return;
  for (const Evaluated& named : tuned.result.baselines) {
    if (tuned.comparisons.size() == kMostPathsCompared) return;
    const auto its = path_of(tuned.program, tuned.mesh, tuned.machine, named);
    if (its) tuned.comparisons.push_back(compare(named, *best, *its));
  }
}

Diag bad_home(const std::string& text, const std::string& wanted) {
  return make_diag(DiagCode::U109, {{"flag", "--home"}, {"text", text}, {"wanted", wanted}});
}

// Axes of the program and of the mesh, not digits: the search makes those.
Checked<Place> parse_home(const Program& program, const Mesh& mesh, const std::string& text) {
  const std::size_t equals = text.find('=');
  Place place{.buffer = text.substr(0, equals), .at = {}, .partial = {}};
  const Buffer* buffer = find_buffer(program, place.buffer);
  if (equals == std::string::npos || buffer == nullptr || buffer->role == Role::Temp) {
    return bad_home(text,
                    "INPUT_OR_OUTPUT=AXIS@MESHAXIS,… as in k=Skv@cp; nothing behind = is a "
                    "copy on every rank");
  }
  std::size_t at = equals + 1;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t sign = std::min(part.find('@'), part.size());
    const std::string axis = part.substr(0, sign);
    const std::string along = sign < part.size() ? part.substr(sign + 1) : "";
    const auto axes = axis_names(*buffer);
    if (std::ranges::find(axes, axis) == axes.end()) {
      return bad_home(text, "axes of `" + place.buffer + "`, and `" + axis + "` is none");
    }
    if (find_axis(mesh, along) < 0) {
      return bad_home(text, "axes of the mesh behind @, and `" + along + "` is none");
    }
    place.at.push_back({axis, {along}});
    at = end + 1;
  }
  return place;
}

// Is the form one that lowers? Of what has too many steps for that, as far as its rules tell.
Checked<Ok> check_form(const Program& program, const Mesh& mesh, const NormalForm& form) {
  const Scheduled scheduled{.program = program, .mesh = mesh, .script = {}, .form = form};
  if (!Session::check_steps(scheduled).ok()) return check_rules(program, mesh, form);
  const Checked<Plan> plan = lower(program, mesh, form);
  return plan.ok() ? Checked<Ok>(Ok{}) : plan.error();
}

CacheAnswer ask_cache(Session& session, const std::string& folder, const CacheKey& key,
                      const CheckForm& check) {
  CacheAnswer answer = consult_cache(folder, key, check);
  for (const Diag& diag : answer.passed_over) session.warn(diag);
  return answer;
}

// A question to the cache, with what it answered.
struct Known {
  CacheKey key;
  std::optional<CacheEntry> entry;
};

// The search begins with what is known.
std::optional<Known> begin_with_known(Session& session, const Request& subject,
                                      SearchOptions& options, Tuned& tuned) {
  if (!subject.cache) return std::nullopt;
  Known known{
      .key = make_cache_key(tuned.program, tuned.mesh, tuned.machine, options, subject.version),
      .entry = std::nullopt};
  // On many ranks the search does not lower either.
  const auto check = [&](const NormalForm& form) {
    return tuned.mesh.ranks() > kFullRanks ? check_rules(tuned.program, tuned.mesh, form)
                                           : check_form(tuned.program, tuned.mesh, form);
  };
  CacheAnswer answer = ask_cache(session, *subject.cache, known.key, check);
  if (answer.exact) tuned.known_since = answer.exact->date;
  tuned.seeds = std::ssize(answer.seeds);
  options.seeds = std::move(answer.seeds);
  known.entry = std::move(answer.exact);
  return known;
}

// What was cut short is no answer to keep.
bool is_whole(const Tuned& tuned) {
  return tuned.result.complete && (!tuned.measured || tuned.measured->complete);
}

Checked<Measured> measure_found(Session& session, const Tuned& tuned, const TuneRequest& request,
                                std::chrono::steady_clock::time_point begun) {
  MeasureRequest measuring = *request.measure;
  if (request.search.budget) measuring.deadline = begun + *request.search.budget;
  measuring.interrupted = request.search.interrupted;
  measuring.progress = request.search.progress;
  if (measuring.backend.backend == Backend::Cuda && !measuring.libraries) {
    measuring.libraries = ways_here(request.subject, measuring.backend);
  }
  return measure(session, tuned.program, tuned.mesh, tuned.result, measuring);
}

// Block by block; of what has too many blocks for that, the rules and a small likeness.
Checked<Certificate> prove(const Plan& plan, const TimeLimit& limit = {}) {
  VerifyOptions options;
  options.limit = limit;
  Checked<Certificate> whole = certify(plan, level_for(plan), options);
  if (whole.ok() || whole.error().code != DiagCode::V203) return whole;
  return certify_schedule(plan.program, plan.mesh, plan.form, options);
}

// That of the best, whose plan the search proved or that is made and proved now. On many ranks the
// search proves what is faster than all before: the last is the best.
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

// The fastest comes first, wherever the search had it.
void put_first(std::vector<Evaluated>& top, const Evaluated& fastest) {
  std::erase_if(top, [&](const Evaluated& one) { return one.form == fastest.form; });
  top.insert(top.begin(), fastest);
}

// What the search found and what was measured now, and earlier on other processors.
CacheEntry entry_of(const Known& known, const Tuned& tuned) {
  CacheEntry entry = make_cache_entry(known.key, tuned.result);
  if (tuned.measured && tuned.measured->winner() != nullptr) {
    const MeasuredSchedule& fastest = *tuned.measured->winner();
    CachedTime time{.time = from_microseconds(fastest.median_us),
                    .backend = std::string(print(tuned.measured->backend)),
                    .processor = tuned.measured->processor};
    if (const MeasuredBaseline* const baseline = tuned.measured->baseline()) {
      time.baseline =
          CachedBaseline{.time = from_microseconds(baseline->median_us), .name = baseline->name};
    }
    add_measured(entry, {.label = fastest.schedule.label,
                         .predicted = fastest.schedule.time(),
                         .measured = std::move(time),
                         .memory_bytes = fastest.schedule.memory_bytes,
                         .form = fastest.schedule.form});
  }
  if (!known.entry) return entry;
  for (const CachedSchedule& schedule : known.entry->schedules) {
    if (schedule.measured) add_measured(entry, schedule);
  }
  return entry;
}

// What an earlier search of the same found, or this one does. Errors: search's; I505.
Checked<NormalForm> search_for(Session& session, const Program& program, const Mesh& mesh,
                               const Machine& machine, const Request& request) {
  SearchOptions options;
  options.family = schedule_family(program);
  options.top = 1;
  if (request.cache) {
    const CacheKey key = make_cache_key(program, mesh, machine, options, request.version);
    const auto check = [&](const NormalForm& form) { return check_form(program, mesh, form); };
    const CacheAnswer answer = ask_cache(session, *request.cache, key, check);
    if (answer.exact) return answer_of(*answer.exact, request.backend).form;
  }
  options.budget = request.patience;
  const Checked<SearchResult> result = search(program, mesh, machine, options);
  const bool is_cut = result.ok() ? !result->complete : result.error().code == DiagCode::S702;
  if (request.patience && is_cut) {
    return make_diag(DiagCode::I505, {{"work", "the search for `auto`"}});
  }
  if (!result.ok()) return result.error();
  return result->top.front().form;
}

// Does it, with the transports that the machine has?
bool runs(const Program& program, const Mesh& mesh, const NormalForm& form,
          const Machine& machine) {
  const Checked<Plan> plan = lower(program, mesh, fit_transports(form, mesh, machine).form);
  return plan.ok() && check_fits(*plan, machine).ok();
}

// The rule of the operator; where its choice does not run there, the first named one that does.
Checked<NormalForm> choose_by_rule(const Program& program, const Mesh& mesh,
                                   const std::optional<Machine>& runs_on) {
  const std::string family = schedule_family(program);
  HP_TRY(const Script script, choose_auto(family, program, mesh));
  Checked<NormalForm> chosen = replay(program, mesh, script);
  if (!runs_on || !chosen.ok() || runs(program, mesh, *chosen, *runs_on)) return chosen;
  for (const Applicability& each : find_applicable(family, program, mesh)) {
    if (!each.script.ok()) continue;
    Checked<NormalForm> other = replay(program, mesh, *each.script);
    if (other.ok() && runs(program, mesh, *other, *runs_on)) return other;
  }
  return chosen;  // whose refusal tells why
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
  HP_TRY(tuned.machine, machine_for(request.subject.machine, tuned.mesh));
  SearchOptions options = request.search;
  options.family = schedule_family(tuned.program);
  for (const std::string& text : request.homes) {
    HP_TRY(Place place, parse_home(tuned.program, tuned.mesh, text));
    options.fixed.push_back(std::move(place));
  }
  if ((request.measure || request.verifies_all) && options.budget) *options.budget /= 2;
  const std::optional<Known> known = begin_with_known(session, request.subject, options, tuned);
  std::optional<Certificate> last_proved;
  options.prove = [&](const Plan& plan, const TimeLimit& limit) -> Checked<Ok> {
    HP_TRY(last_proved, prove(plan, limit));
    return Ok{};
  };
  HP_TRY(tuned.result, search(tuned.program, tuned.mesh, tuned.machine, options));
  const NormalForm found = tuned.result.top.front().form;
  if (request.measure) {
    HP_TRY(tuned.measured, measure_found(session, tuned, request, begun));
  }
  std::optional<CacheEntry> answer;
  if (known && is_whole(tuned)) answer = entry_of(*known, tuned);
  if (tuned.measured && tuned.measured->winner() != nullptr) {
    put_first(tuned.result.top, tuned.measured->winner()->schedule);
  }
  if (!tuned.measured) {
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

Checked<NormalForm> choose_schedule(Session& session, const Program& program, const Mesh& mesh,
                                    const Request& request) {
  const std::optional<Machine>& runs_on = request.runs_on;
  const Checked<Machine> machine =
      runs_on && !request.machine ? Checked<Machine>(*runs_on) : machine_for(request.machine, mesh);
  if (!machine.ok()) {
    if (request.machine) return machine.error();
    return choose_by_rule(program, mesh, runs_on);
  }
  Checked<NormalForm> found = search_for(session, program, mesh, *machine, request);
  const bool may_not_run = runs_on && request.machine;
  if (found.ok() && may_not_run && !runs(program, mesh, *found, *runs_on)) {
    found = search_for(session, program, mesh, *runs_on, request);
  }
  const bool is_final =
      found.ok() || found.error().code == DiagCode::S701 || found.error().code == DiagCode::I505;
  if (is_final) return found;
  return choose_by_rule(program, mesh, runs_on);
}

std::string script_of(const Tuned& tuned, const Evaluated& one) {
  return print(derive_script(tuned.program, tuned.mesh, one.form));
}

Checked<Ok> write_best(const std::string& path, const Tuned& tuned) {
  HP_TRY(const Plan plan, lower(tuned.program, tuned.mesh, tuned.result.top.front().form));
  HP_REQUIRE_OK(prove(plan));
  return write_text(path, print_plan_file(plan));
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
