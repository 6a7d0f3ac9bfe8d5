#include <set>

#include "search/canonical.h"
#include "search/search.h"
#include "search/space.h"
#include "search/standard.h"
#include "sim/simulate.h"

namespace harpe {

Checked<CandidateForms> list_candidates(const Program& program, const Mesh& mesh,
                                        const Machine& machine, const SearchOptions& options,
                                        const TimeLimit& limit) {
  const auto standard = standard_form(options.family, program, mesh);
  if (!standard) return no_homes(program);
  HP_REQUIRE_OK(check_ranks(mesh, machine));
  HP_TRY(const Problem problem, make_problem(program, mesh, *standard, options));
  CandidateForms all;
  std::set<std::string> seen;
  const SpaceOptions space{.contract = options.contract,
                           .cuts = cuts_for(mesh, options),
                           .layout = options.constraints.layout};
  for (const Candidate& skeleton : enumerate_skeletons(problem, space)) {
    for_each_variant(problem, skeleton, [&](const Candidate& candidate) {
      all.complete = all.complete && !limit.is_over();
      if (!all.complete) return;
      ++all.candidates;
      NormalForm form = form_of(problem, machine, candidate);
      if (seen.insert(canonical_text(program, form)).second) all.forms.push_back(std::move(form));
    });
  }
  return all;
}

}  // namespace harpe
