#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/flag_values.h"
#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/files.h"
#include "measure/bench.h"
#include "support/print_bytes.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostBenchRanks = 64;
constexpr std::int64_t kMostTurns = 10'000;
constexpr std::int64_t kLongestBudget = 86'400;  // seconds
constexpr const char* kNone = "-";

Checked<std::int64_t> count_of(const CommandLine& line, std::string_view flag, std::int64_t low,
                               std::int64_t high, std::int64_t otherwise) {
  const auto text = line.value(flag);
  if (!text) return otherwise;
  return parse_count("--" + std::string(flag), *text, low, high);
}

Checked<BenchRequest> bench_request_of(const CommandLine& line) {
  if (line.words.empty()) {
    return make_diag(DiagCode::U110, {{"verb", line.verb}, {"what", "a suite"}});
  }
  BenchRequest request;
  request.suite = line.words.front();
  request.parameters = {line.words.begin() + 1, line.words.end()};
  HP_TRY(request.backend, backend_request_of(line));
  request.only = line.value("cases").value_or("");
  std::stringstream schedules(line.value("schedules").value_or(""));
  for (std::string name; std::getline(schedules, name, ',');) request.schedules.push_back(name);
  if (line.has("ranks")) {
    HP_TRY(request.ranks, count_of(line, "ranks", 1, kMostBenchRanks, 1));
  }
  if (line.has("rounds")) {
    HP_TRY(request.rounds, count_of(line, "rounds", 1, kMostTurns, 1));
  }
  HP_TRY(request.iterations, count_of(line, "iters", 1, kMostTurns, request.iterations));
  HP_TRY(const std::int64_t budget, count_of(line, "budget", 0, kLongestBudget, 600));
  request.budget_s = static_cast<double>(budget);
  if (line.has("tune")) {
    HP_TRY(request.tune_s, count_of(line, "tune", 1, kLongestBudget, 1));
  }
  HP_TRY(const std::int64_t seed,
         count_of(line, "seed", 0, std::numeric_limits<std::int64_t>::max(), 0));
  request.seed = static_cast<std::uint64_t>(seed);
  request.check = line.has("check");
  return request;
}

std::string print_us_or_dash(std::optional<double> us) {
  return us ? print_seconds(*us * 1e-6) : std::string(kNone);
}

std::string print_ratio(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : std::string(kNone);
}

std::string print_name(const BenchEntry& entry) {
  return entry.name + (entry.label.empty() ? "" : " (" + entry.label + ")");
}

std::string print_best(const BenchEntry* entry) {
  return entry == nullptr ? kNone : print_us_or_dash(entry->median_us) + " " + print_name(*entry);
}

// "1.08 (1.06 to 1.10), faster": the median over rounds, its interval and the verdict.
std::string print_speedup(const std::optional<PairedSpeedup>& paired) {
  if (!paired) return kNone;
  std::string text = print_ratio(paired->median);
  if (paired->interval) {
    text += fmt::format(" ({:.2f} to {:.2f})", paired->interval->low, paired->interval->high);
  }
  if (const auto verdict = paired->verdict()) text += fmt::format(", {}", print(*verdict));
  return text;
}

std::string print_rows_of(const BenchReport& report) {
  std::vector<std::vector<std::string>> lines = {
      {"case", "Harpe", "library", "speed-up over the library", "limit", "Harpe/limit"}};
  for (const BenchRow& row : report.rows) {
    if (!row.skipped.empty()) {
      lines.push_back({row.what.name, row.skipped});
      continue;
    }
    lines.push_back({row.what.name, print_best(row.best(false)), print_best(row.best(true)),
                     print_speedup(row.paired()), print_us_or_dash(row.limit.total_us()),
                     print_ratio(row.over_limit())});
  }
  return print_table(lines);
}

// Why an entry has no time, or why it does not count.
std::string print_trouble(const BenchEntry& entry) {
  if (!entry.median_us) return (entry.code.empty() ? "" : entry.code + " ") + entry.reason;
  if (entry.checked == false) return "is not what the reference says";
  return fmt::format("differs by {:.2e} of its scale, and the bound is {:.2e}",
                     entry.difference.value_or(0), entry.bound);
}

std::string print_troubles(const BenchRequest& request, const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    std::string of_row;
    for (const BenchLack& lack : row.not_here) {
      if (request.schedules.empty()) break;  // all that apply were requested
      of_row += "    " + lack.name + ": " + std::string(info(lack.why.code).name) + " " +
                print_message(lack.why) + "\n";
    }
    for (const BenchEntry& entry : row.entries) {
      if (entry.median_us && !entry.is_wrong()) continue;
      of_row += "    " + print_name(entry) + ": " + print_trouble(entry) + "\n";
    }
    if (!of_row.empty()) text += "  " + row.what.name + "\n" + of_row;
  }
  return text.empty() ? text : "\nwithout a time that counts\n" + text;
}

// The schedules that count, if their memory differs from their plans.
std::string print_memory_of(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    const BenchEntry* const ours = row.best(false);
    if (ours == nullptr || !ours->memory || !ours->memory->is_off()) continue;
    const BenchMemory& memory = *ours->memory;
    text += fmt::format("  {}, {}: the plan says {}, {} are allocated, {} of the GPU are gone\n",
                        row.what.name, ours->name, print_bytes(memory.planned),
                        print_bytes(memory.allocated),
                        memory.taken ? print_bytes(*memory.taken) : "an unknown part");
  }
  return text.empty() ? text : "\nmemory more than a tenth off\n" + text;
}

// The two fastest entries' further times, which do not affect the result: with warm caches, and for
// several executions in one graph.
std::string print_other_times(const BenchReport& report) {
  std::vector<std::vector<std::string>> lines = {
      {"case", "copies", "Harpe in a graph", "library in a graph", "Harpe warm", "library warm"}};
  for (const BenchRow& row : report.rows) {
    const BenchEntry* const ours = row.best(false);
    if (ours == nullptr || !ours->in_graph_us) continue;
    const BenchEntry* const theirs = row.best(true);
    const BenchEntry none;
    const BenchEntry& other = theirs == nullptr ? none : *theirs;
    lines.push_back({row.what.name, std::to_string(ours->copies),
                     print_us_or_dash(ours->in_graph_us), print_us_or_dash(other.in_graph_us),
                     print_us_or_dash(ours->warm_us), print_us_or_dash(other.warm_us)});
  }
  return lines.size() == 1 ? "" : "\nfurther figures, which decide nothing\n" + print_table(lines);
}

std::string print_summary(const BenchReport& report) {
  const std::optional<double> mean = report.geometric_mean();
  if (!mean) return "\nno case has a baseline: there are no ratios\n";
  const BenchRow& worst = *report.worst();
  return fmt::format("\nspeed-up over the library, geometric mean {:.2f}; worst case {:.2f}, {}\n",
                     *mean, *worst.ratio(), worst.what.name);
}

std::string print_report(const BenchRequest& request, const BenchReport& report) {
  std::string text = request.suite + " on " + report.mesh + ", back end " +
                     std::string(print(request.backend.backend)) + "\n";
  if (request.backend.backend == Backend::Cuda) text += "beside " + report.libraries + "\n";
  return text + print_rows_of(report) + print_summary(report) + print_other_times(report) +
         print_memory_of(report) + print_troubles(request, report);
}

Json number(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json to_json(const BenchMemory& memory) {
  Json json = Json::object();
  json["planned_bytes"] = memory.planned;
  json["allocated_bytes"] = memory.allocated;
  json["taken_bytes"] = memory.taken ? Json(*memory.taken) : Json();
  return json;
}

Json to_json(const BenchEntry& entry) {
  Json json = Json::object();
  json["name"] = entry.name;
  json["baseline"] = entry.is_baseline;
  if (!entry.label.empty()) json["label"] = entry.label;
  if (entry.memory) json["memory"] = to_json(*entry.memory);
  if (!entry.median_us) {
    json["code"] = entry.code;
    json["reason"] = entry.reason;
    return json;
  }
  json["time_us"] = *entry.median_us;
  json["least_us"] = entry.least_us;
  json["spread"] = entry.spread;
  if (entry.copies > 1) json["copies"] = entry.copies;
  if (entry.warm_us) json["warm_us"] = *entry.warm_us;
  if (entry.in_graph_us) json["in_graph_us"] = *entry.in_graph_us;
  if (entry.difference) {
    json["difference"] = *entry.difference;
    json["bound"] = entry.bound;
  }
  if (entry.checked) json["checked"] = *entry.checked;
  json["wrong"] = entry.is_wrong();
  return json;
}

Json to_json(const std::vector<BenchLack>& not_here) {
  Json all = Json::array();
  for (const BenchLack& lack : not_here) {
    all.push_back(Json{{"name", lack.name},
                       {"code", info(lack.why.code).name},
                       {"reason", print_message(lack.why)}});
  }
  return all;
}

Json to_json(const std::optional<PairedSpeedup>& paired) {
  if (!paired) return {};
  const auto& interval = paired->interval;
  const auto verdict = paired->verdict();
  return Json{{"median", paired->median},
              {"low", interval ? Json(interval->low) : Json()},
              {"high", interval ? Json(interval->high) : Json()},
              {"rounds", paired->rounds},
              {"verdict", verdict ? Json(print(*verdict)) : Json()}};
}

Json to_json(const BenchRow& row) {
  Json json = Json::object();
  json["case"] = row.what.name;
  json["parameters"] = row.what.parameters;
  if (!row.skipped.empty()) {
    json["skipped"] = row.skipped;
    json["not_here"] = to_json(row.not_here);
    return json;
  }
  const BenchEntry* const ours = row.best(false);
  const BenchEntry* const theirs = row.best(true);
  Json entries = Json::array();
  for (const BenchEntry& entry : row.entries) entries.push_back(to_json(entry));
  json["schedule"] = ours == nullptr ? Json() : Json(ours->name);
  json["ours_us"] = ours == nullptr ? Json() : number(ours->median_us);
  json["baseline"] = theirs == nullptr ? Json() : Json(theirs->name);
  json["baseline_us"] = theirs == nullptr ? Json() : number(theirs->median_us);
  json["ratio"] = number(row.ratio());
  json["paired"] = to_json(row.paired());
  json["arithmetic_us"] = number(row.limit.arithmetic_us);
  json["memory_us"] = row.limit.memory_us;
  json["link_us"] = row.limit.link_us;
  json["fixed_us"] = row.limit.fixed_us;
  json["limit_us"] = number(row.limit.total_us());
  json["over_limit"] = number(row.over_limit());
  json["entries"] = std::move(entries);
  json["not_here"] = to_json(row.not_here);
  return json;
}

Json to_json(const CommandLine& line, const BenchRequest& request, const BenchReport& report) {
  Json cases = Json::array();
  for (const BenchRow& row : report.rows) cases.push_back(to_json(row));
  Json json = start_json(line);
  json["suite"] = request.suite;
  json["backend"] = print(request.backend.backend);
  json["ranks"] = report.ranks;
  json["mesh"] = report.mesh;
  json["libraries"] = report.libraries;
  json["rounds"] = request.rounds_here();
  json["iterations"] = request.iterations;
  json["seed"] = static_cast<std::int64_t>(request.seed);
  json["geometric_mean"] = number(report.geometric_mean());
  json["worst"] = number(report.worst() == nullptr ? std::nullopt : report.worst()->ratio());
  json["cases"] = std::move(cases);
  return json;
}

// Lists the cases, for a host of 8 GPUs by default; needs no library or GPU.
Checked<int> list_cases(const CommandLine& line, const BenchRequest& request) {
  HP_TRY(const std::vector<BenchCase> found, cases_of(request, request.ranks.value_or(8)));
  std::string text;
  Json cases = Json::array();
  for (const BenchCase& each : found) {
    text += each.name + "\n";
    cases.push_back(Json{{"case", each.name}, {"parameters", each.parameters}});
  }
  Json json = start_json(line);
  json["suite"] = request.suite;
  json["backend"] = print(request.backend.backend);
  json["axis"] = bench_axis(request.suite);
  json["cases"] = std::move(cases);
  HP_REQUIRE_OK(show_results(line, text, json));
  return kDone;
}

}  // namespace

Checked<int> run_bench(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(const BenchRequest request, bench_request_of(line));
  if (line.has("list")) return list_cases(line, request);
  // A run that is interrupted leaves the completed cases.
  const std::string path = line.value("json").value_or("-");
  bool is_kept = false;
  const auto keep = [&](const BenchReport& report) {
    if (path == "-") return;
    is_kept = write_text(path, print_json(to_json(line, request, report)) + "\n").ok() || is_kept;
  };
  const Checked<BenchReport> report =
      bench(session, request, [](const std::string& what) { show_progress(what); }, keep);
  if (!report.ok()) {
    if (is_kept) announce(path);
    return report.error();
  }
  HP_REQUIRE_OK(
      show_results(line, print_report(request, *report), to_json(line, request, *report)));
  return report->is_wrong() || !report->is_whole() ? kRefused : kDone;
}

}  // namespace harpe::cli
