#include "cli/tune_measured.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "cli/report.h"
#include "cli/request.h"
#include "driver/files.h"
#include "driver/measured.h"
#include "driver/options.h"
#include "driver/target.h"

namespace harpe::cli {
namespace {

constexpr std::int64_t kMostIterations = 10'000;
constexpr std::array kNeedsMeasure = {"spread", "measurements", "backend", "iters", "nvrtc"};

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

std::string print_us(double us) { return print_seconds(us * 1e-6); }

double ratio_of(const MeasuredSchedule& one) {
  return one.median_us / one.schedule.time().microseconds();
}

// "1 wrong", of what there is.
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

std::string print_reasons(const Measured& measured) {
  std::string text;
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome == MeasuredAs::Timed || one.outcome == MeasuredAs::NotReached) continue;
    text += fmt::format(
        "  {}: {}{}{}\n", one.schedule.label,
        one.outcome == MeasuredAs::Refused ? "" : std::string(print(one.outcome)) + ": ",
        one.code.empty() ? "" : one.code + " ", one.reason);
  }
  return text.empty() ? text : "\nwithout a time\n" + text;
}

Json to_json(const Tuned& tuned, const MeasuredSchedule& one, std::int64_t place) {
  Json json = Json::object()
                  .set("label", one.schedule.label)
                  .set("named", one.schedule.named)
                  .set("schedule", script_of(tuned, one.schedule))
                  .set("outcome", print(one.outcome))
                  .set("predicted_us", one.schedule.time().microseconds());
  if (one.outcome != MeasuredAs::Timed) {
    return json.set("code", one.code).set("reason", one.reason);
  }
  return json.set("measured_us", one.median_us)
      .set("ratio", ratio_of(one))
      .set("place", place)
      .set("predicted_place", one.predicted_place)
      .set("noise", one.noise)
      .set("rounds", one.rounds)
      .set("executions", one.executions);
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
  HP_TRY(request.backend.backend, backend_of(line));
  if (const auto text = line.value("iters")) {
    HP_TRY(request.iterations, parse_count("--iters", *text, 1, kMostIterations));
  }
  if (const auto path = line.value("measurements")) {
    if (!path->ends_with(kPlansFile)) {
      return make_diag(DiagCode::U109,
                       {{"flag", "--measurements"},
                        {"text", *path},
                        {"wanted", "NAME" + std::string(kPlansFile) + ", which validate reads"}});
    }
    HP_REQUIRE_OK(check_writable(*path));
  }
  if (request.backend.backend != Backend::Cuda) return std::optional(std::move(request));
  request.backend.nvrtc = line.value("nvrtc");
  HP_TRY(request.backend.kernel_cache, cache_of(line.value("cache"), "--cache"));
  if (request.backend.kernel_cache) *request.backend.kernel_cache += "/kernels";
  return std::optional(std::move(request));
}

Rows measured_rows(const Measured& measured) {
  Rows rows = {{"measured", fmt::format("{} of {} schedules in {} round{}, {}{}{}",
                                        measured.count(MeasuredAs::Timed), measured.all.size(),
                                        measured.rounds, measured.rounds == 1 ? "" : "s",
                                        print_seconds(measured.seconds), print_others(measured),
                                        measured.complete ? "" : "; ended before it was done")}};
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
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome != MeasuredAs::Timed) continue;
    lines.push_back({std::to_string(lines.size()), print_us(one.median_us),
                     print_us(one.schedule.time().microseconds()),
                     fmt::format("{:.2f}", ratio_of(one)), std::to_string(one.predicted_place),
                     std::to_string(one.rounds), one.schedule.label});
  }
  return fmt::format("\nmeasured on {}: {}\n", harpe::print(measured.backend), measured.processor) +
         print_table(lines) + print_reasons(measured);
}

Json measured_to_json(const Tuned& tuned) {
  const Measured& measured = *tuned.measured;
  Json::Array schedules;
  std::int64_t place = 0;
  for (const MeasuredSchedule& one : measured.all) {
    schedules.push_back(to_json(tuned, one, ++place));
  }
  return Json::object()
      .set("backend", harpe::print(measured.backend))
      .set("processor", measured.processor)
      .set("timed", measured.count(MeasuredAs::Timed))
      .set("refused", measured.count(MeasuredAs::Refused))
      .set("wrong", measured.count(MeasuredAs::Wrong))
      .set("faulted", measured.count(MeasuredAs::Faulted))
      .set("not_reached", measured.count(MeasuredAs::NotReached))
      .set("rounds", measured.rounds)
      .set("complete", measured.complete)
      .set("measure_s", measured.seconds)
      .set("agreement", measured.agreement ? to_json(*measured.agreement) : Json())
      .set("schedules", std::move(schedules));
}

int report_failures(const Measured& measured) {
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome != MeasuredAs::Wrong && one.outcome != MeasuredAs::Faulted) continue;
    print_error(fmt::format("{}: `{}`: {}\n", print(one.outcome), one.schedule.label, one.reason));
  }
  if (measured.count(MeasuredAs::Wrong) > 0) return kRefused;
  return measured.count(MeasuredAs::Faulted) > 0 ? kFault : kDone;
}

}  // namespace harpe::cli
