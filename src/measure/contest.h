#pragma once

#include <memory>
#include <string>

#include "compile/session.h"
#include "measure/bench.h"
#include "run/baselines.h"
#include "run/gpus.h"
#include "support/diag.h"

namespace harpe {

// What the cases of a benchmark share; all of it outlives them.
struct ContestSetting {
  Session& session;
  const BenchRequest& request;
  const std::string& mesh;
  const Checked<std::unique_ptr<Baselines>>& baselines;
  const FreeMemory& memory;  // none where it is not watched
};

// One case: schedules and libraries prepared, compared, and timed in turns, round by round. A
// schedule that cannot run is an entry with its reason. Errors: program's and mesh's of Session.
[[nodiscard]] Checked<BenchRow> hold_contest(const ContestSetting& setting, const BenchCase& what,
                                             const BenchProgress& progress);

}  // namespace harpe
