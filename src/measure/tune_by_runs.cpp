#include "measure/tune_by_runs.h"

namespace harpe {
namespace {

MeasureRequest measuring_of(const MeasuredTuneRequest& request) {
  MeasureRequest measuring = *request.measure;
  measuring.interrupted = request.search.interrupted;
  measuring.progress = request.search.progress;
  if (measuring.backend.backend == Backend::Cuda && !measuring.libraries) {
    measuring.libraries = ways_here(request.subject, measuring.backend);
  }
  return measuring;
}

Tried tried_of(const Measured& measured) {
  Tried tried{.fastest = std::nullopt, .complete = measured.complete};
  if (measured.winner() == nullptr) return tried;
  const MeasuredSchedule& fastest = *measured.winner();
  CachedTime time{.time = from_microseconds(fastest.median_us),
                  .backend = std::string(print(measured.backend)),
                  .processor = measured.processor};
  if (const MeasuredBaseline* const baseline = measured.baseline()) {
    time.baseline =
        CachedBaseline{.time = from_microseconds(baseline->median_us), .name = baseline->name};
  }
  tried.fastest = {.schedule = fastest.schedule, .time = std::move(time)};
  return tried;
}

}  // namespace

Checked<MeasuredTuned> tune(Session& session, const MeasuredTuneRequest& request) {
  MeasuredTuned out;
  TuneRequest searching = request;
  if (request.measure) {
    searching.try_out = [&](const Program& program, const Mesh& mesh, const SearchResult& found,
                            const auto& deadline) -> Checked<Tried> {
      MeasureRequest measuring = measuring_of(request);
      measuring.deadline = deadline;
      HP_TRY(out.measured, measure(session, program, mesh, found, measuring));
      return tried_of(*out.measured);
    };
  }
  HP_TRY(static_cast<Tuned&>(out), tune(session, searching));
  return out;
}

}  // namespace harpe
