#include "search/standard.h"

#include "schedule/named/registry.h"
#include "schedule/replay.h"

namespace harpe {

int cuts_for(const Mesh& mesh, const SearchOptions& options) {
  return options.cuts.value_or(mesh.axes.size() <= 2 ? 1 : 0);
}

std::optional<NormalForm> standard_form(const std::string& family, const Program& program,
                                        const Mesh& mesh) {
  if (family.empty()) return std::nullopt;
  for (const Applicability& schedule : find_applicable(family, program, mesh)) {
    if (!schedule.script.ok()) continue;
    Checked<NormalForm> form = replay(program, mesh, *schedule.script);
    if (form.ok()) return *std::move(form);
  }
  return std::nullopt;
}

Diag no_homes(const Program& program) {
  return make_diag(DiagCode::S703,
                   {{"program", program.name}, {"reason", "nothing says where its homes are"}});
}

}  // namespace harpe
