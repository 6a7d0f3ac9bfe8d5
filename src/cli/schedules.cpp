#include "cli/request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "driver/catalogue.h"
#include "driver/summary.h"

namespace harpe::cli {
namespace {

std::string print_list(const ScheduleList& list) {
  std::vector<std::vector<std::string>> applies;
  std::string refused;
  for (const ScheduleEntry& entry : list.entries) {
    if (entry.refusal) {
      refused += "  " + entry.name + "\n    " + render(*entry.refusal) + "\n";
    } else {
      applies.push_back({entry.name, entry.summary});
    }
  }
  std::string text = list.program + " on " + print_mesh_option(list.mesh) + "\n";
  if (!applies.empty()) text += "\napplies\n" + print_table(applies);
  if (!list.chosen.empty()) text += "`auto` means `" + list.chosen + "` here\n";
  if (!refused.empty()) text += "\ndoes not apply\n" + refused;
  return text;
}

Json to_json(const CommandLine& line, const ScheduleList& list) {
  Json::Array all;
  for (const ScheduleEntry& entry : list.entries) {
    Json item = Json::object();
    item.set("name", entry.name).set("summary", entry.summary).set("applies", !entry.refusal);
    if (entry.refusal) {
      item.set("code", info(entry.refusal->code).name)
          .set("reason", render_message(*entry.refusal));
    }
    all.push_back(std::move(item));
  }
  return start_json(line)
      .set("operator", list.program)
      .set("mesh", print_mesh_option(list.mesh))
      .set("auto", list.chosen)
      .set("schedules", std::move(all));
}

}  // namespace

Checked<int> print_schedules(const CommandLine& line, Session& session) {
  HP_REQUIRE_OK(check_json(line));
  HP_TRY(const Request request, operator_request_of(line));
  HP_TRY(const ScheduleList list, list_schedules(session, request));
  HP_REQUIRE_OK(show_results(line, print_list(list), to_json(line, list)));
  return kDone;
}

}  // namespace harpe::cli
