#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/verbs.h"
#include "compile/launches.h"
#include "compile/machines.h"
#include "measure/validation.h"

namespace harpe::cli {
namespace {

// A single case has no order.
std::string print_correlation(const Agreement& of, double value) {
  return of.count < 2 ? "-" : fmt::format("{:.3f}", value);
}

std::string print_regret(std::optional<double> regret) {
  return regret ? fmt::format("{:.1f} %", 100 * *regret) : "-";
}

// `errors` are those of these predictions.
std::string print_validation(const Validation& validation, const Machine& machine,
                             const std::vector<PredictionError>& errors) {
  std::vector<std::vector<std::string>> lines = {
      {"schedule", "of", "predicted", "measured", "ratio", ""}};
  for (const Prediction& one : validation.predictions) {
    lines.push_back({one.measured.request.target + " " + *one.measured.request.schedule,
                     one.measured.label, fmt::format("{:.1f} us", one.predicted.microseconds()),
                     fmt::format("{:.1f} us", one.measured.microseconds),
                     fmt::format("{:.2f}", one.ratio()), one.measured.counts ? "" : "not counted"});
  }
  std::string text = machine.name + "\n" + print_inherited(machine) + print_table(lines) + "\n";
  std::vector<std::vector<std::string>> rows = {{"", "cases", "median error", "90 % within",
                                                 "mean ratio", "Spearman", "Kendall", "regret of 1",
                                                 "of 8"}};
  for (const Agreement& one : validation.agreements) {
    rows.push_back(
        {one.family, std::to_string(one.count), fmt::format("{:.1f} %", 100 * one.median_error),
         fmt::format("{:.1f} %", 100 * one.error_90), fmt::format("{:.2f}", one.mean_ratio),
         print_correlation(one, one.spearman), print_correlation(one, one.kendall),
         print_regret(one.regret_1), print_regret(one.regret_8)});
  }
  text += print_table(rows);
  if (errors.empty()) return text;
  std::vector<std::vector<std::string>> operators = {
      {"operator", "plans", "median error", "90 % within"}};
  for (const PredictionError& one : errors) {
    operators.push_back({one.family, std::to_string(one.plans),
                         fmt::format("{:.1f} %", 100 * one.median),
                         fmt::format("{:.1f} %", 100 * one.nine_of_ten)});
  }
  return text + "\n" + print_table(operators);
}

Json validation_to_json(const CommandLine& line, const Validation& validation,
                        const Machine& machine, const std::vector<PredictionError>& errors) {
  Json cases = Json::array();
  for (const Prediction& one : validation.predictions) {
    cases.push_back(Json{{"operator", one.measured.request.target},
                         {"schedule", *one.measured.request.schedule},
                         {"parameters", one.measured.label},
                         {"predicted_us", one.predicted.microseconds()},
                         {"measured_us", one.measured.microseconds},
                         {"ratio", one.ratio()},
                         {"counts", one.measured.counts}});
  }
  Json agreements = Json::array();
  for (const Agreement& one : validation.agreements) {
    agreements.push_back(agreement_to_json(one));
  }
  Json operators = Json::array();
  for (const PredictionError& one : errors) {
    operators.push_back(Json{{"operator", one.family},
                             {"plans", one.plans},
                             {"median_error", one.median},
                             {"error_90", one.nine_of_ten}});
  }
  Json json = start_json(line);
  json["machine"] = machine.name;
  json["inherited"] = list_inherited(machine);
  json["fingerprint"] = fingerprint(machine);
  json["cases"] = std::move(cases);
  json["agreement"] = std::move(agreements);
  json["operators"] = std::move(operators);
  return json;
}

// Keeps the machine's errors for operators that were not measured.
Machine with_errors(Machine machine, const std::vector<PredictionError>& errors) {
  for (const PredictionError& one : errors) {
    const auto known = std::ranges::find(machine.errors, one.family, &PredictionError::family);
    if (known != machine.errors.end()) {
      *known = one;
    } else {
      machine.errors.push_back(one);
    }
  }
  return machine;
}

// Errors of predictions without a pass are not the machine's errors, so `-o` is refused.
Checked<std::string> left_out_pass(const CommandLine& line) {
  const std::optional<std::string> pass = line.value("without");
  if (!pass) return std::string();
  const auto refuse = [&](const std::string& wanted) {
    return make_diag(DiagCode::U109, {{"flag", "--without"}, {"text", *pass}, {"wanted", wanted}});
  };
  std::vector<std::string> names = launch_pass_names();
  names.front() = kAllPasses;  // in place of `begin`, which cannot be left out
  if (std::ranges::find(names, *pass) == names.end()) {
    return refuse(fmt::format("one of {}", fmt::join(names, " ")));
  }
  if (line.value("output-file")) return refuse("given without `-o`");
  return *pass;
}

}  // namespace

Checked<int> validate_predictions(const CommandLine& line, Session& session) {
  if (!line.words.empty()) {
    return make_diag(DiagCode::U111, {{"verb", line.verb},
                                      {"what", "folder, as `--measured FOLDER`"},
                                      {"text", line.words.front()}});
  }
  HP_REQUIRE_OK(check_places(line));
  const std::optional<std::string> folder = line.value("measured");
  if (!folder) {
    return make_diag(DiagCode::U110,
                     {{"verb", line.verb}, {"what", "measurements: `--measured FOLDER`"}});
  }
  HP_TRY(const Machine machine, load_machine(line.value("machine").value_or("h200x8")));
  HP_TRY(const std::string without, left_out_pass(line));
  HP_TRY(const Validation validation,
         validate(
             session, *folder, machine,
             {.without = without, .progress = [](std::string_view what) { show_progress(what); }}));
  const std::vector<PredictionError> errors = errors_of(validation, *folder);
  HP_REQUIRE_OK(write_file_of(line, "output-file", print(with_errors(machine, errors))));
  HP_REQUIRE_OK(show_results(line, print_validation(validation, machine, errors),
                             validation_to_json(line, validation, machine, errors)));
  return kDone;
}

}  // namespace harpe::cli
