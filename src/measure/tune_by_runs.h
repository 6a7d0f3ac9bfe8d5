#pragma once

#include <optional>

#include "compile/tune.h"
#include "measure/measure.h"

namespace harpe {

struct MeasuredTuneRequest : TuneRequest {
  // If present, the schedules found are executed, and the measured times decide. Its deadline,
  // progress and interrupt are those of the search.
  std::optional<MeasureRequest> measure;
};

struct MeasuredTuned : Tuned {
  std::optional<Measured> measured;
};

// As tune; executes what the search found if the request says so. Errors: tune's; measure's.
[[nodiscard]] Checked<MeasuredTuned> tune(Session& session, const MeasuredTuneRequest& request);

}  // namespace harpe
