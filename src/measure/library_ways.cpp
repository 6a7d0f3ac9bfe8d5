#include "measure/library_ways.h"

#include "compile/library_operators.h"
#include "compile/target.h"
#include "measure/bench_cases.h"
#include "measure/bench_inputs.h"
#include "run/gpus.h"

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
