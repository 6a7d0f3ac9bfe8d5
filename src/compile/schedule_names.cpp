#include "compile/schedule_names.h"

#include <algorithm>
#include <vector>

#include "compile/target.h"
#include "schedule/named/registry.h"

namespace harpe {

std::string schedule_family(const Program& program) {
  if (!schedules_of(program.name).empty()) return program.name;
  const std::string& leaf = program.nests.back().stmts.front().leaf;
  if (is_leaf(leaf, Leaf::AttentionBackward))
    return "attention_bwd";  // its rows have a nest of their own
  if (is_leaf(leaf, Leaf::CombineRows)) return "moe";
  if (program.nests.size() != 1) return program.name;
  if (is_leaf(leaf, Leaf::AttentionForward)) return "attention";
  if (is_leaf(leaf, Leaf::Matmul)) return "gemm";
  return program.name;
}

Checked<Ok> check_schedule_name(const std::string& family, const std::string& name) {
  std::vector<std::string> known;
  for (const NamedSchedule& schedule : schedules_of(family)) known.emplace_back(schedule.name);
  known.emplace_back(kAuto);
  if (known.size() == 1 ||
      std::ranges::find(known, parse_schedule_name(name).base) != known.end()) {
    return Ok{};
  }
  std::string list;
  for (const std::string& each : known) list += (list.empty() ? "`" : ", `") + each + "`";
  return make_diag(
      DiagCode::U113,
      {{"name", name},
       {"hint", " of `" + family + "`" +
                    (is_path(name) ? ": a file of one ends in `.sched`" : suggestion(name, known))},
       {"known", list}});
}

Diag no_library(const std::string& why) {
  return make_diag(DiagCode::U109,
                   {{"option:flag", "{option:schedule}"},
                    {"text", kLibrary},
                    {"wanted", "another schedule here, as `auto`: " + why +
                                   "; `harpe run` takes it for the GPUs of one process"}});
}

}  // namespace harpe
