#include <nlohmann/json.hpp>

#include "compile/machines.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace harpe::cli {
namespace {

std::string print_list(const std::vector<Machine>& machines) {
  std::vector<std::vector<std::string>> lines;
  for (const Machine& machine : machines) {
    lines.push_back({machine.name, std::to_string(machine.processors()) + " ranks",
                     print_levels(machine), machine.summary});
  }
  return print_table(lines) + "\n`harpe machines NAME` prints one as a text that reads back.\n";
}

Json to_json(const Machine& machine) {
  Json levels = Json::array();
  for (const MachineLevel& level : machine.levels) {
    levels.push_back(Json{{"name", level.name},
                          {"kind", print(level.kind)},
                          {"size", level.size},
                          {"bandwidth", level.bandwidth}});
  }
  return {{"name", machine.name},
          {"summary", machine.summary},
          {"processors", machine.processors()},
          {"levels", std::move(levels)},
          {"inherited", list_inherited(machine)},
          {"fingerprint", fingerprint(machine)}};
}

}  // namespace

Checked<int> list_machines(const CommandLine& line) {
  if (line.words.size() > 1) {
    return make_diag(DiagCode::U111,
                     {{"verb", line.verb}, {"what", "machine"}, {"text", line.words[1]}});
  }
  HP_REQUIRE_OK(check_places(line));
  std::vector<Machine> machines;
  std::string text;
  Json json = start_json(line);
  if (line.words.empty()) {
    machines = harpe::list_machines();
    text = print_list(machines);
  } else {
    HP_TRY(Machine machine, load_machine(line.words.front()));
    text = print(machine);
    json["text"] = text;
    machines.push_back(std::move(machine));
  }
  Json all = Json::array();
  for (const Machine& machine : machines) all.push_back(to_json(machine));
  json["machines"] = std::move(all);
  HP_REQUIRE_OK(show_results(line, text, json));
  return kDone;
}

}  // namespace harpe::cli
