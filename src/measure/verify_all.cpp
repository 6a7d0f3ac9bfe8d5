#include "measure/verify_all.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "compile/certify.h"
#include "compile/schedule_names.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "run/run.h"

namespace harpe {
namespace {

constexpr std::size_t kMostFailures = 8;

// The fault of one plan; "" if there is none.
Checked<std::string> find_fault(const Plan& plan, const RunRequest& request,
                                const TensorMap& inputs) {
  const Checked<Certificate> proved = certify(plan, VerifyLevel::Full);
  if (!proved.ok()) return render(proved.error());
  HP_TRY(const RunOutcome outcome, run(plan, request, inputs));
  if (outcome.fault) return render(*outcome.fault);
  if (!outcome.check->passed()) return render(failure_of(*outcome.check));
  return std::string();
}

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

Checked<VerifiedAll> verify_all(const Tuned& tuned, const SearchOptions& options,
                                std::uint64_t seed, const TimeLimit& limit) {
  const auto begun = std::chrono::steady_clock::now();
  SearchOptions same = options;
  same.family = schedule_family(tuned.program);
  same.constraints = tuned.constraints;
  HP_TRY(const CandidateForms all,
         list_candidates(tuned.program, tuned.mesh, tuned.machine, same, limit));
  VerifiedAll out{.candidates = all.candidates,
                  .unique = static_cast<std::int64_t>(all.forms.size()),
                  .refused = {},
                  .failures = {},
                  .complete = all.complete};
  std::map<std::string, std::int64_t> refused;
  RunRequest request;
  request.check = true;
  request.seed = seed;
  std::optional<TensorMap> inputs;
  std::int64_t done = 0;
  for (const NormalForm& form : all.forms) {
    if (limit.is_over()) {
      out.complete = false;
      break;
    }
    if (options.progress) options.progress("executing", done++, out.unique);
    const Checked<Plan> plan = lower(tuned.program, tuned.mesh, form);
    if (!plan.ok()) {
      ++refused[render_message(plan.error())];
      continue;
    }
    if (!inputs) {
      HP_TRY(inputs, prepare_run(*plan, request));
    }
    const Checked<std::string> fault = find_fault(*plan, request, *inputs);
    if (!fault.ok()) {
      ++refused[render_message(fault.error())];
      continue;
    }
    ++out.verified;
    if (fault->empty()) continue;
    ++out.wrong;
    if (out.failures.size() < kMostFailures) out.failures.push_back(*fault + "\n" + print(form));
  }
  for (const auto& [reason, count] : refused) out.refused.push_back({reason, count});
  out.seconds = seconds_since(begun);
  return out;
}

}  // namespace harpe
