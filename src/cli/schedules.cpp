#include <nlohmann/json.hpp>

#include "cli/flag_values.h"
#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compile/catalogue.h"
#include "compile/summary.h"

namespace harpe::cli {
namespace {

std::string print(const Checked<AutoChoice>& choice) {
  if (!choice.ok()) return "`auto` has no answer here\n  " + print_diag(choice.error()) + "\n";
  std::string text = "`auto` means `" + choice->name + "` here" +
                     (choice->steps.empty() ? "\n" : ", a schedule that has no name:\n");
  for (const std::string& step : choice->steps) text += "  " + step + "\n";
  return text;
}

std::string print_list(const ScheduleList& list, const Checked<AutoChoice>& choice) {
  std::vector<std::vector<std::string>> applies;
  std::string refused;
  for (const ScheduleEntry& entry : list.entries) {
    if (entry.refusal) {
      refused += "  " + entry.name + "\n    " + print_diag(*entry.refusal) + "\n";
    } else {
      applies.push_back({entry.name, entry.summary});
    }
  }
  std::string text = list.program + " on " + print_mesh_option(list.mesh) + "\n";
  if (!applies.empty()) text += "\napplies\n" + print_table(applies);
  text += print(choice);
  if (!refused.empty()) text += "\ndoes not apply\n" + refused;
  return text;
}

Json to_json(const CommandLine& line, const ScheduleList& list, const Checked<AutoChoice>& choice) {
  Json all = Json::array();
  for (const ScheduleEntry& entry : list.entries) {
    Json item = Json::object();
    item["name"] = entry.name;
    item["summary"] = entry.summary;
    item["applies"] = !entry.refusal;
    if (entry.refusal) {
      item["code"] = info(entry.refusal->code).name;
      item["reason"] = print_message(*entry.refusal);
    }
    all.push_back(std::move(item));
  }
  const std::vector<std::string> steps = choice.ok() ? choice->steps : std::vector<std::string>();
  Json json = start_json(line);
  json["operator"] = list.program;
  json["inputs"] = subject_to_json(line);
  json["mesh"] = print_mesh_option(list.mesh);
  json["auto"] = choice.ok() ? Json(choice->name) : Json();
  json["auto_steps"] = steps;
  json["schedules"] = std::move(all);
  return json;
}

}  // namespace

Checked<int> print_schedules(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_places(line));
  HP_TRY(Request request, operator_request_of(line));
  HP_TRY(const std::int64_t seconds,
         parse_count("--budget", line.value("budget").value_or("5"), 1, kMostSeconds));
  request.patience = std::chrono::seconds(seconds);
  HP_TRY(const ScheduleList list, list_schedules(session, request));
  const Checked<AutoChoice> choice = find_auto(session, request);
  if (!choice.ok() && list.entries.empty()) return choice.error();
  HP_REQUIRE_OK(show_results(line, print_list(list, choice), to_json(line, list, choice)));
  return kDone;
}

}  // namespace harpe::cli
