#include "search/standard.h"

#include <set>

#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "search/canonical.h"
#include "search/space.h"
#include "sim/simulate.h"

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

Checked<CandidateForms> list_candidates(const Program& program, const Mesh& mesh,
                                        const Machine& machine, const SearchOptions& options) {
  const auto standard = standard_form(options.family, program, mesh);
  if (!standard) return no_homes(program);
  HP_REQUIRE_OK(check_ranks(mesh, machine));
  HP_TRY(const Problem problem, make_problem(program, mesh, *standard, options));
  CandidateForms all;
  std::set<std::string> seen;
  const SpaceOptions space{.contract = options.contract, .cuts = cuts_for(mesh, options)};
  for (const Candidate& skeleton : enumerate_skeletons(problem, space)) {
    for_each_variant(problem, skeleton, [&](const Candidate& candidate) {
      ++all.candidates;
      NormalForm form = form_of(problem, machine, candidate);
      if (seen.insert(canonical_text(program, form)).second) all.forms.push_back(std::move(form));
    });
  }
  return all;
}

}  // namespace harpe
