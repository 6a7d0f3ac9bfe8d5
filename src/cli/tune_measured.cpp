#include "cli/tune_measured.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/flag_values.h"
#include "cli/report.h"
#include "cli/request.h"
#include "io/files.h"
#include "measure/measured.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostMeasuredIterations = 10'000;
constexpr std::array kNeedsMeasure = {"spread", "measurements", "backend",    "iters",
                                      "nvrtc",  "libraries",    "collectives"};

std::string_view print(MeasuredAs outcome) {
  switch (outcome) {
    case MeasuredAs::Timed:
      return "timed";
    case MeasuredAs::NotReached:
      return "not reached";
    case MeasuredAs::Refused:
      return "refused";
    case MeasuredAs::Wrong:
      return "wrong";
    case MeasuredAs::Faulted:
      return "faulted";
  }
  return "";
}

std::string print_share(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

double ratio_of(const MeasuredSchedule& one) {
  return one.median_us / one.schedule.time().microseconds();
}

// "; 1 wrong": the schedules without a time, by reason.
std::string print_others(const Measured& measured) {
  std::string text;
  for (const MeasuredAs outcome :
       {MeasuredAs::Refused, MeasuredAs::Wrong, MeasuredAs::Faulted, MeasuredAs::NotReached}) {
    if (const std::int64_t count = measured.count(outcome); count > 0) {
      text += fmt::format("; {} {}", count, print(outcome));
    }
  }
  return text;
}

std::string print_reason(const std::string& name, const MeasuredTurns& one) {
  if (one.outcome == MeasuredAs::Timed || one.outcome == MeasuredAs::NotReached) return "";
  return fmt::format(
      "  {}: {}{}{}\n", name,
      one.outcome == MeasuredAs::Refused ? "" : std::string(print(one.outcome)) + ": ",
      one.code.empty() ? "" : one.code + " ", one.reason);
}

std::string baseline_name(const MeasuredBaseline& one) { return "library: " + one.name; }

std::string print_reasons(const Measured& measured) {
  std::string text;
  for (const MeasuredSchedule& one : measured.all) text += print_reason(one.schedule.label, one);
  for (const MeasuredBaseline& one : measured.baselines) {
    text += print_reason(baseline_name(one), one);
  }
  return text.empty() ? text : "\nwithout a time\n" + text;
}

// How libraries compare, and a remedy if no schedule is faster.
Rows baseline_rows(const Measured& measured) {
  if (!measured.no_baseline.empty()) return {{"baseline", "none: " + measured.no_baseline}};
  if (measured.baselines.empty()) return {};
  const MeasuredBaseline* const fastest = measured.baseline();
  if (fastest == nullptr) return {{"baseline", "none has a time"}};
  std::string text = fmt::format("{}, {}", fastest->name, print_us(fastest->median_us));
  if (const auto ratio = measured.baseline_ratio()) {
    text += fmt::format(": {:.3f} of the {} of the fastest schedule", *ratio,
                        print_us(measured.winner()->median_us));
  }
  Rows rows = {{"baseline", text}};
  if (measured.is_baseline_fastest()) {
    rows.emplace_back("fastest",
                      "the baseline, not a schedule: run it with `--schedule library`, as "
                      "`--schedule auto` does where the cache has this answer");
  }
  return rows;
}

// Adds lines for libraries with at most this time to the table, each once.
void add_baselines(const Measured& measured, double until_us, std::vector<bool>& shown,
                   std::vector<std::vector<std::string>>& lines) {
  for (std::size_t i = 0; i < measured.baselines.size(); ++i) {
    const MeasuredBaseline& one = measured.baselines[i];
    if (shown[i] || one.outcome != MeasuredAs::Timed || one.median_us > until_us) continue;
    shown[i] = true;
    lines.push_back({"-", print_us(one.median_us), "-", "-", "-", std::to_string(one.rounds),
                     baseline_name(one)});
  }
}

Json to_json(const MeasuredBaseline& one) {
  Json json = Json{{"name", one.name}, {"outcome", print(one.outcome)}};
  if (one.outcome != MeasuredAs::Timed) {
    json["code"] = one.code;
    json["reason"] = one.reason;
    return json;
  }
  json["time_us"] = one.median_us;
  json["noise"] = one.noise;
  json["rounds"] = one.rounds;
  json["executions"] = one.executions;
  return json;
}

// The fastest baseline; null if there is none.
Json baseline_to_json(const Measured& measured) {
  const MeasuredBaseline* const fastest = measured.baseline();
  if (fastest == nullptr) return {};
  const std::optional<double> ratio = measured.baseline_ratio();
  return {{"name", fastest->name},
          {"time_us", fastest->median_us},
          {"ratio", ratio ? Json(*ratio) : Json()}};
}

Json fastest_to_json(const Measured& measured) {
  if (measured.is_baseline_fastest()) return "baseline";
  return measured.winner() != nullptr ? Json("schedule") : Json();
}

Json to_json(const Tuned& tuned, const MeasuredSchedule& one, std::int64_t place) {
  Json json = Json{{"label", one.schedule.label},
                   {"named", one.schedule.named},
                   {"schedule", script_of(tuned, one.schedule)},
                   {"outcome", print(one.outcome)},
                   {"predicted_us", one.schedule.time().microseconds()}};
  if (one.outcome != MeasuredAs::Timed) {
    json["code"] = one.code;
    json["reason"] = one.reason;
    return json;
  }
  json["measured_us"] = one.median_us;
  json["ratio"] = ratio_of(one);
  json["place"] = place;
  json["predicted_place"] = one.is_predicted ? Json(one.predicted_place) : Json();
  json["noise"] = one.noise;
  json["rounds"] = one.rounds;
  json["executions"] = one.executions;
  return json;
}

}  // namespace

Checked<std::optional<MeasureRequest>> measure_request_of(const CommandLine& line) {
  if (!line.has("measure")) {
    for (const char* const flag : kNeedsMeasure) {
      const auto value = line.value(flag);
      if (!value) continue;
      return make_diag(DiagCode::U109, {{"flag", "--" + std::string(flag)},
                                        {"text", *value},
                                        {"wanted", "given with `--measure`"}});
    }
    return std::optional<MeasureRequest>();
  }
  MeasureRequest request;
  HP_TRY(request.backend, backend_request_of(line));
  if (const auto text = line.value("iters")) {
    HP_TRY(request.iterations, parse_count("--iters", *text, 1, kMostMeasuredIterations));
  }
  if (const auto path = line.value("measurements")) {
    if (!path->ends_with(kPlansFile)) {
      return make_diag(DiagCode::U109,
                       {{"flag", "--measurements"},
                        {"text", *path},
                        {"wanted", "NAME" + std::string(kPlansFile) + ", which validate reads"}});
    }
  }
  return std::optional(std::move(request));
}

Rows measured_rows(const Measured& measured) {
  Rows rows = {{"measured", fmt::format("{} of {} schedules in {} round{}, {}{}{}",
                                        measured.count(MeasuredAs::Timed), measured.all.size(),
                                        measured.rounds, measured.rounds == 1 ? "" : "s",
                                        print_seconds(measured.seconds), print_others(measured),
                                        measured.complete ? "" : "; ended before it was done")}};
  for (auto& row : baseline_rows(measured)) rows.push_back(std::move(row));
  if (!measured.agreement) return rows;
  const Agreement& agreement = *measured.agreement;
  rows.emplace_back(
      "predicted", fmt::format("median error {}, 90 % within {}; Spearman {:.3f}, Kendall {:.3f}",
                               print_share(agreement.median_error), print_share(agreement.error_90),
                               agreement.spearman, agreement.kendall));
  rows.emplace_back("regret",
                    fmt::format("{} of the first by prediction, {} of the first 8",
                                print_share(agreement.regret_1), print_share(agreement.regret_8)));
  return rows;
}

std::string print_measured(const Measured& measured) {
  std::vector<std::vector<std::string>> lines = {
      {"", "measured", "predicted", "ratio", "predicted as", "rounds", "schedule"}};
  std::vector<bool> shown(measured.baselines.size(), false);
  std::int64_t place = 0;
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome != MeasuredAs::Timed) continue;
    add_baselines(measured, one.median_us, shown, lines);
    lines.push_back({std::to_string(++place), print_us(one.median_us),
                     print_us(one.schedule.time().microseconds()),
                     fmt::format("{:.2f}", ratio_of(one)),
                     one.is_predicted ? std::to_string(one.predicted_place) : "-",
                     std::to_string(one.rounds), one.schedule.label});
  }
  add_baselines(measured, std::numeric_limits<double>::infinity(), shown, lines);
  return fmt::format("\nmeasured on {}: {}\n", harpe::print(measured.backend), measured.processor) +
         print_table(lines) + print_reasons(measured);
}

Json measured_to_json(const MeasuredTuned& tuned) {
  const Measured& measured = *tuned.measured;
  Json schedules = Json::array();
  std::int64_t place = 0;
  for (const MeasuredSchedule& one : measured.all) {
    schedules.push_back(to_json(tuned, one, ++place));
  }
  Json baselines = Json::array();
  for (const MeasuredBaseline& one : measured.baselines) baselines.push_back(to_json(one));
  return {{"backend", harpe::print(measured.backend)},
          {"processor", measured.processor},
          {"timed", measured.count(MeasuredAs::Timed)},
          {"refused", measured.count(MeasuredAs::Refused)},
          {"wrong", measured.count(MeasuredAs::Wrong)},
          {"faulted", measured.count(MeasuredAs::Faulted)},
          {"not_reached", measured.count(MeasuredAs::NotReached)},
          {"rounds", measured.rounds},
          {"complete", measured.complete},
          {"measure_s", measured.seconds},
          {"agreement", measured.agreement ? agreement_to_json(*measured.agreement) : Json()},
          {"fastest", fastest_to_json(measured)},
          {"baseline", baseline_to_json(measured)},
          {"baselines", std::move(baselines)},
          {"no_baseline", measured.no_baseline.empty() ? Json() : Json(measured.no_baseline)},
          {"schedules", std::move(schedules)}};
}

int report_failures(const Measured& measured) {
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome != MeasuredAs::Wrong && one.outcome != MeasuredAs::Faulted) continue;
    print_error(fmt::format("{}: `{}`: {}\n", print(one.outcome), one.schedule.label, one.reason));
  }
  bool is_wrong = measured.count(MeasuredAs::Wrong) > 0;
  for (const MeasuredBaseline& one : measured.baselines) {
    if (one.outcome != MeasuredAs::Wrong) continue;
    is_wrong = true;
    print_error(fmt::format("wrong: {}: {}\n", baseline_name(one), one.reason));
  }
  if (is_wrong) return kRefused;
  return measured.count(MeasuredAs::Faulted) > 0 ? kFault : kDone;
}

}  // namespace harpe::cli
