#pragma once

#include <optional>

#include "compile/tune.h"
#include "measure/measure.h"

namespace harpe {

struct MeasuredTuneRequest : TuneRequest {
  // Executes what was found and chooses by that; its deadline, progress and interrupt are those of
  // the search.
  std::optional<MeasureRequest> measure;
};

struct MeasuredTuned : Tuned {
  std::optional<Measured> measured;
};

// As tune; where it is asked for, what was found is executed. Errors: tune's; measure's.
[[nodiscard]] Checked<MeasuredTuned> tune(Session& session, const MeasuredTuneRequest& request);

}  // namespace harpe
