#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/flag_values.h"
#include "cli/library_price.h"
#include "cli/report.h"
#include "cli/request.h"
#include "cli/tune_measured.h"
#include "cli/verbs.h"
#include "compile/simulation.h"
#include "io/files.h"
#include "measure/measured_plans.h"
#include "measure/tune_by_runs.h"
#include "measure/verify_all.h"
#include "report/report_page.h"
#include "run/hosts.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostTop = 1000;
constexpr std::int64_t kMostSpread = 1000;
constexpr std::size_t kDifferencesShown = 3;
constexpr std::size_t kMostRows = 8;

// An interrupt ends the search, which then returns its best so far; a second one ends harpe.
volatile std::sig_atomic_t interrupts = 0;
void count_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 1) std::_Exit(130);
}

Checked<Ok> read_choice(const CommandLine& line, std::string_view flag,
                        const std::vector<std::string>& choices, std::size_t& chosen) {
  const std::string text = line.value(flag).value_or(choices[chosen]);
  const auto found = std::ranges::find(choices, text);
  if (found == choices.end()) {
    std::string wanted;
    for (const std::string& choice : choices) wanted += (wanted.empty() ? "" : " or ") + choice;
    return make_diag(DiagCode::U109, {{"flag", "--" + std::string(flag)},
                                      {"text", text},
                                      {"wanted", wanted + suggestion(text, choices)}});
  }
  chosen = static_cast<std::size_t>(found - choices.begin());
  return Ok{};
}

Checked<std::optional<std::int64_t>> read_count(const CommandLine& line, const std::string& flag,
                                                std::int64_t low, std::int64_t high) {
  const auto text = line.value(flag);
  if (!text) return std::optional<std::int64_t>();
  HP_TRY(const std::int64_t value, parse_count("--" + flag, *text, low, high));
  return std::optional(value);
}

Checked<SearchOptions> search_options_of(const CommandLine& line) {
  SearchOptions options;
  std::size_t contract = 0;
  HP_REQUIRE_OK(read_choice(line, "contract", {"standard", "free"}, contract));
  options.contract = static_cast<Contract>(contract);
  std::size_t numerics = 2;
  HP_REQUIRE_OK(read_choice(line, "numerics", {"exact", "reassociated", "rounded"}, numerics));
  options.numerics = static_cast<NumericsClass>(numerics);
  HP_TRY(const auto top, read_count(line, "top", 1, kMostTop));
  options.top = top.value_or(options.top);
  HP_TRY(const auto budget, read_count(line, "budget", 1, kMostSeconds));
  if (budget) options.budget = std::chrono::seconds(*budget);
  HP_TRY(options.memory_limit,
         read_count(line, "memory", 1, std::numeric_limits<std::int64_t>::max()));
  HP_TRY(const auto cuts, read_count(line, "cuts", 0, 3));
  if (cuts) options.cuts = static_cast<int>(*cuts);
  HP_TRY(const auto spread, read_count(line, "spread", 1, kMostSpread));
  options.spread = spread.value_or(0);
  options.exhaustive = line.has("exhaustive");
  options.interrupted = [] { return interrupts > 0; };
  options.progress = [](std::string_view stage, std::int64_t done, std::int64_t of) {
    show_progress(fmt::format("{} {} of {}", stage, done, of));
  };
  return options;
}

std::string print_best(const MeasuredTuned& tuned) {
  const Evaluated& best = tuned.result.top.front();
  std::string time = print_time(best.time());
  if (tuned.measured && tuned.measured->winner() != nullptr) {
    time = print_seconds(tuned.measured->winner()->median_us * 1e-6) + " measured, " + time +
           " predicted";
  }
  return time + ", " + print_bytes(best.memory_bytes) + " a rank";
}

// Work that was unfinished when time ended, and plans that are too large.
std::string print_left_out(const SearchResult& result) {
  std::vector<std::string> parts;
  if (result.given_up) {
    const auto& [label, work, simulated] = *result.given_up;
    parts.push_back(fmt::format("`{}`{}: {}", label,
                                simulated ? ", simulated at " + print_time(*simulated) : "", work));
  }
  if (result.plans_left > 0) {
    parts.push_back(fmt::format("{} plans would have been made too", result.plans_left));
  }
  if (!result.too_large.empty()) {
    parts.push_back(fmt::format("plans of {}: too large", fmt::join(result.too_large, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Why the best plan does not run on GPUs, if the machine's processors are GPUs.
std::optional<std::string> find_gpu_obstacle_of(const Tuned& tuned) {
  if (tuned.machine.processor.sms == 1) return std::nullopt;  // cores of a CPU
  return find_gpu_obstacle(count_hosts(tuned.machine, tuned.mesh.ranks()));
}

Rows rows_of(const MeasuredTuned& tuned) {
  const SearchResult& result = tuned.result;
  const Evaluated& best = result.top.front();
  Rows rows = {{"machine", tuned.machine.name + ": " + tuned.machine.summary}};
  add_inherited(rows, tuned.machine);
  rows.emplace_back(
      "space", fmt::format("{} candidates, each once; {} out by their bounds, {} "
                           "estimated, {} simulated",
                           result.candidates, result.pruned, result.estimated, result.simulated));
  rows.emplace_back("search", print_seconds(result.seconds) +
                                  (result.complete ? "" : ", ended before it was done"));
  rows.emplace_back("best", print_best(tuned));
  add_error(rows, tuned.machine, tuned.program.name);
  if (tuned.seeds > 0) {
    rows.emplace_back(
        "cache", tuned.known_since
                     ? "began with what the same search found on " + *tuned.known_since
                     : fmt::format("began with {} schedules found for other sizes", tuned.seeds));
  }
  if (tuned.measured) {
    for (auto& row : measured_rows(*tuned.measured)) rows.push_back(std::move(row));
  }
  add_libraries(tuned.libraries, rows);
  if (tuned.certificate) rows.emplace_back("proved", coverage_of(*tuned.certificate));
  for (const Refused& one : result.refused) {
    if (rows.size() > kMostRows) break;
    rows.emplace_back("refused", fmt::format("{} x {}", one.count, one.reason));
  }
  if (const std::string left = print_left_out(result); !left.empty()) {
    rows.emplace_back("left out", left);
  }
  if (const auto obstacle = find_gpu_obstacle_of(tuned)) {
    rows.emplace_back("on GPUs", "not yet: " + *obstacle +
                                     "; CPU ranks run the plan, `harpe simulate` predicts it");
  }
  const bool some_estimated = !std::ranges::all_of(
      result.top, [](const Evaluated& one) { return one.simulated.has_value(); });
  if (!best.simulated) {
    rows.emplace_back("time", "estimated, and not proved: plans of so many ranks are too large");
  } else if (some_estimated) {
    rows.emplace_back("time", "simulated, of plans that were made; with ~ estimated");
  }
  return rows;
}

std::string print_candidates(const Tuned& tuned) {
  std::vector<std::vector<std::string>> lines;
  lines.push_back({"", "time", "bound", "memory", "schedule"});
  std::size_t index = 0;
  for (const Evaluated& one : tuned.result.top) {
    lines.push_back({std::to_string(++index), (one.simulated ? "" : "~") + print_time(one.time()),
                     one.bound.value > 0 ? print_time(one.bound) : "-",
                     print_bytes(one.memory_bytes), one.label});
  }
  return "\nbest schedules\n" + print_table(lines);
}

std::string print_comparisons(const MeasuredTuned& tuned) {
  if (tuned.comparisons.empty()) return "";
  std::vector<std::vector<std::string>> lines;
  for (const SearchComparison& one : tuned.comparisons) {
    std::string why;
    for (std::size_t i = 0; i < std::min(kDifferencesShown, one.differences.size()); ++i) {
      const auto& [spending, time] = one.differences[i];
      why += fmt::format("{}{} {}{}", i == 0 ? "" : ", ", print(spending), time < 0 ? "-" : "+",
                         print_time(Picoseconds(std::abs(time))));
    }
    lines.push_back({one.schedule, fmt::format("{:.2f} x", one.ratio),
                     (why.empty() ? "the same critical path" : why) +
                         (one.excluded.empty() ? "" : "; " + one.excluded)});
  }
  return std::string("\nnamed schedules against it") + (tuned.measured ? " as predicted" : "") +
         ", and what their critical paths spend more on\n" + print_table(lines);
}

Json to_json(const Tuned& tuned, const Evaluated& one) {
  Json json = Json{{"label", one.label},
                   {"named", one.named},
                   {"schedule", script_of(tuned, one)},
                   {"time_us", one.time().microseconds()},
                   {"simulated", one.simulated.has_value()},
                   {"estimate_us", one.estimate.microseconds()},
                   {"memory_bytes", one.memory_bytes}};
  if (one.bound.value > 0) json["bound_us"] = one.bound.microseconds();
  return json;
}

Json list_to_json(const Tuned& tuned, const std::vector<Evaluated>& list) {
  Json out = Json::array();
  for (const Evaluated& one : list) out.push_back(to_json(tuned, one));
  return out;
}

Json refused_to_json(const std::vector<Refused>& refused) {
  Json out = Json::array();
  for (const Refused& one : refused) {
    out.push_back(Json{{"reason", one.reason}, {"count", one.count}});
  }
  return out;
}

Json comparisons_to_json(const Tuned& tuned) {
  Json out = Json::array();
  for (const SearchComparison& one : tuned.comparisons) {
    Json differences = Json::object();
    for (const auto& [spending, time] : one.differences) {
      differences[std::string(print(spending))] = Picoseconds(time).microseconds();
    }
    out.push_back(Json{{"schedule", one.schedule},
                       {"ratio", one.ratio},
                       {"excluded", one.excluded},
                       {"critical_path_us", std::move(differences)}});
  }
  return out;
}

void add_search(Json& json, const MeasuredTuned& tuned) {
  const SearchResult& result = tuned.result;
  json["program"] = tuned.program.name;
  json["mesh"] = print_mesh_option(tuned.mesh);
  json["machine"] = tuned.machine.name;
  json["inherited"] = list_inherited(tuned.machine);
  json["error"] = error_to_json(tuned.machine, tuned.program.name);
  json["candidates"] = result.candidates;
  json["unique"] = result.unique;
  json["duplicates"] = result.duplicates;
  json["feasible"] = result.feasible;
  json["pruned"] = result.pruned;
  json["estimated"] = result.estimated;
  json["simulated"] = result.simulated;
  json["search_s"] = result.seconds;
  json["complete"] = result.complete;
  json["left_out"] = print_left_out(result);
  json["known_since"] = tuned.known_since ? Json(*tuned.known_since) : Json();
  json["seeds"] = tuned.seeds;
  json["best"] = to_json(tuned, result.top.front());
  json["top"] = list_to_json(tuned, result.top);
  json["front"] = list_to_json(tuned, result.front);
  json["baselines"] = list_to_json(tuned, result.baselines);
  json["comparisons"] = comparisons_to_json(tuned);
  json["refused"] = refused_to_json(result.refused);
  const auto obstacle = find_gpu_obstacle_of(tuned);
  json["not_on_gpus"] = obstacle ? Json(*obstacle) : Json();
  json["library_price"] = price_to_json(tuned.libraries);
  if (tuned.measured) json["measured"] = measured_to_json(tuned);
}

void add_verified(Json& json, Rows& rows, const VerifiedAll& all) {
  json["candidates"] = all.candidates;
  json["unique"] = all.unique;
  json["verified"] = all.verified;
  json["wrong"] = all.wrong;
  json["verify_s"] = all.seconds;
  json["verify_complete"] = all.complete;
  json["not_lowered"] = refused_to_json(all.refused);
  rows.emplace_back("verified",
                    fmt::format("{} of {} unique candidates executed, {} wrong, {}{}", all.verified,
                                all.unique, all.wrong, print_seconds(all.seconds),
                                all.complete ? "" : ", ended before it was done"));
  for (const Refused& one : all.refused) {
    rows.emplace_back("no plan", fmt::format("{} x {}", one.count, one.reason));
  }
}

void note_end(const MeasuredTuned& tuned, std::string_view work, double seconds) {
  print_error(print_diag(make_diag(DiagCode::S705, {{"work", work},
                                                    {"program", tuned.program.name},
                                                    {"seconds", std::round(10 * seconds) / 10}}),
                         "note") +
              "\n");
}

// What `--budget` or an interrupt ended early; the answer is still valid.
void note_ends(const MeasuredTuned& tuned, const std::optional<VerifiedAll>& all) {
  if (!tuned.result.complete) note_end(tuned, "the search", tuned.result.seconds);
  if (tuned.measured && !tuned.measured->complete) {
    note_end(tuned, "measuring", tuned.measured->seconds);
  }
  if (all && !all->complete) note_end(tuned, "`--verify-all`", all->seconds);
}

Checked<Ok> write_files(const CommandLine& line, const MeasuredTuneRequest& request,
                        const MeasuredTuned& tuned) {
  if (const auto path = line.value("measurements")) {
    HP_REQUIRE_OK(append_text(
        *path, print_measurements(request.subject, tuned.machine.name, *tuned.measured)));
    announce(*path);
  }
  if (const auto path = line.value("output-file")) {
    show_progress("lowering the best");
    HP_REQUIRE_OK(write_best(*path, tuned));
    announce(*path);
  }
  if (const auto path = line.value("report")) {
    show_progress("writing the report");
    HP_REQUIRE_OK(write_report(*path, print_command(line), HARPE_VERSION, tuned));
    announce(*path);
  }
  return Ok{};
}

}  // namespace

Checked<int> tune_schedule(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  MeasuredTuneRequest request;
  HP_TRY(request.subject, operator_request_of(line));
  HP_TRY(request.search, search_options_of(line));
  HP_TRY(request.measure, measure_request_of(line));
  HP_TRY(const auto seed, read_count(line, "seed", 0, std::numeric_limits<std::int64_t>::max()));
  const auto drawn_from = static_cast<std::uint64_t>(seed.value_or(0));
  if (request.measure) request.measure->seed = drawn_from;
  request.verifies_all = line.has("verify-all");
  std::signal(SIGINT, count_interrupt);
  TimeLimit limit{.interrupted = request.search.interrupted};
  if (request.search.budget) {
    limit.end = std::chrono::steady_clock::now() + *request.search.budget;
  }
  HP_TRY(const MeasuredTuned tuned, tune(session, request));
  Json json = start_json(line);
  json["inputs"] = subject_to_json(line);
  add_search(json, tuned);
  Rows rows = rows_of(tuned);
  std::optional<VerifiedAll> all;
  if (request.verifies_all) {
    HP_TRY(all, verify_all(tuned, request.search, drawn_from, limit));
    add_verified(json, rows, *all);
  }
  HP_REQUIRE_OK(write_files(line, request, tuned));
  note_ends(tuned, all);
  const std::string title = tuned.program.name + " on " + print_mesh_option(tuned.mesh) +
                            ", searched" + (tuned.measured ? " and measured" : "") + "\n";
  HP_REQUIRE_OK(show_results(
      line,
      title + print_rows(rows) +
          (tuned.measured ? print_measured(*tuned.measured) : print_candidates(tuned)) +
          print_comparisons(tuned) + "\n" + script_of(tuned, tuned.result.top.front()),
      json));
  if (all && all->wrong > 0) {
    for (const std::string& failure : all->failures) print_error(failure);
    return kRefused;
  }
  return tuned.measured ? report_failures(*tuned.measured) : kDone;
}

}  // namespace harpe::cli
