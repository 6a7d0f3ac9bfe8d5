#include "driver/library_ways.h"

#include "driver/bench_cases.h"
#include "driver/bench_inputs.h"
#include "driver/gpus.h"
#include "driver/target.h"

namespace harpe {
FindWays ways_here(const Request& subject, const BackendRequest& backend) {
  return [subject, backend](const Program& program, std::int64_t ranks,
                            const TensorMap& inputs) -> Checked<std::vector<LibraryWay>> {
    HP_REQUIRE_OK(check_library_ways(subject, program));
    HP_TRY(const Gpus* const gpus, find_gpus());
    HP_TRY(const std::unique_ptr<Baselines> baselines,
           gpus->open_baselines(static_cast<int>(ranks), backend.places));
    return baselines->ways(program, subject.parameters, inputs);
  };
}

Checked<Ok> check_library_ways(const Request& subject, const Program& program) {
  if (kind_of(subject.target) == TargetKind::Operator) {
    return check_library_ways(program, subject.parameters);
  }
  return make_diag(DiagCode::G081, {{"what", "`" + subject.target + "`"},
                                    {"reason", "the libraries' ways are of shipped operators"}});
}

Checked<TensorMap> gather_library_outputs(const Executor& executor, const Program& program) {
  TensorMap outputs;
  for (const std::string& name : library_outputs(program)) {
    HP_TRY(HostTensor output, executor.output(name));
    outputs.emplace(name, std::move(output));
  }
  return outputs;
}

CheckReport compare_library_outputs(const Plan& plan, const TensorMap& outputs,
                                    const Reference& reference) {
  CheckReport report = compare_outputs(plan, outputs, reference);
  for (Comparison& one : report.outputs) one.bound += library_margin(plan, one.buffer);
  return report;
}

}  // namespace harpe
