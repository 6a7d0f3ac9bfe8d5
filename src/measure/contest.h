#pragma once

#include <memory>
#include <string>

#include "compile/session.h"
#include "measure/bench.h"
#include "run/baselines.h"
#include "run/gpus.h"
#include "support/diag.h"

namespace harpe {

// Common data of a benchmark's cases; all of it outlives them.
struct ContestSetting {
  Session& session;
  const BenchRequest& request;
  const std::string& mesh;
  const Checked<std::unique_ptr<Baselines>>& baselines;
  const FreeMemory& memory;  // empty where it is not watched
};

// Runs one case: prepares schedules and libraries, compares their outputs, and times them
// alternately, round by round. A schedule that cannot run becomes an entry with its reason. Errors:
// program's and mesh's of Session.
[[nodiscard]] Checked<BenchRow> hold_contest(const ContestSetting& setting, const BenchCase& what,
                                             const BenchProgress& progress);

}  // namespace harpe
