#include "verify/verify.h"

#include <algorithm>

#include "verify/coverage.h"
#include "verify/execution.h"
#include "verify/fences.h"
#include "verify/meaning.h"
#include "verify/model.h"
#include "verify/order.h"
#include "verify/races.h"
#include "verify/residency.h"
#include "verify/resolved.h"
#include "verify/structure.h"
#include "verify/terms.h"
#include "verify/words.h"

namespace harpe {

// The stages in order. Each may assume what the stages above it proved (docs/math/verify.md).
Checked<Certificate> verify(const Plan& plan, const VerifyOptions& options) {
  HP_TRY(const verifier::Model model, verifier::Model::make(plan.program, plan.mesh, plan.form));

  HP_REQUIRE_OK(verifier::check_ids(plan, model));
  HP_REQUIRE_OK(options.limit.check(verifier::kProof));
  HP_TRY(const verifier::Resolved resolved, verifier::Resolved::make(plan, model));
  HP_REQUIRE_OK(verifier::check_tasks(plan, model, resolved));
  HP_REQUIRE_OK(verifier::check_groups(plan, model));
  HP_REQUIRE_OK(verifier::check_signals(plan, model));
  const verifier::Words words(plan, model);
  HP_REQUIRE_OK(verifier::check_fences(plan, words));
  HP_REQUIRE_OK(verifier::check_memory(plan, model, resolved, options.memory_limit_bytes));

  HP_REQUIRE_OK(options.limit.check(verifier::kProof));
  const verifier::Scope scope = verifier::scope_of(plan);
  HP_TRY(const verifier::Order order, verifier::Order::make(plan, words));
  HP_REQUIRE_OK(verifier::check_residency(plan, words, order, options.sm_count));
  HP_REQUIRE_OK(verifier::check_races(plan, words, resolved, order, scope, options.limit));

  verifier::Terms terms;
  HP_TRY(const verifier::Meaning meaning, verifier::Meaning::make(model, terms, options.limit));
  verifier::Execution execution(plan, words, resolved, meaning, terms, scope);
  HP_REQUIRE_OK(execution.run(order, options.limit));
  HP_TRY(const std::int64_t blocks,
         verifier::check_outputs(plan, model, resolved, meaning, execution, terms));
  if (verifier::has_replicas(model)) {
    verifier::Execution bits(plan, words, resolved, meaning, terms, scope, verifier::Detail::Bits);
    HP_REQUIRE_OK(bits.run(order, options.limit));
    HP_REQUIRE_OK(verifier::check_replicas(plan, model, resolved, bits));
  }
  HP_REQUIRE_OK(verifier::check_bytes(plan, model, resolved));

  std::int64_t peak = 0;
  for (const Alloc& alloc : plan.allocs) peak = std::max(peak, alloc.offset + alloc.bytes);
  return Certificate{
      .level = VerifyLevel::Full,
      .cases = {},
      .has_plan = true,
      .tasks = static_cast<std::int64_t>(plan.tasks.size()),
      .happens_before_edges = static_cast<std::int64_t>(plan.syncs.size() + plan.barriers.size()),
      .blocks_checked = blocks,
      .peak_bytes = peak};
}

}  // namespace harpe
