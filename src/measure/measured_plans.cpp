#include "measure/measured_plans.h"

#include "io/json.h"
#include "ir/text.h"
#include "support/date.h"

namespace harpe {

std::string print_measurements(const Request& subject, const std::string& machine,
                               const Measured& measured) {
  std::string lines;
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome != MeasuredAs::Timed) continue;
    lines +=
        Json::object()
            .set("kind", "plan")
            .set("operator", subject.target)
            .set("parameters", Json::Array(subject.parameters.begin(), subject.parameters.end()))
            .set("mesh", subject.mesh.value_or(""))
            .set("label", one.schedule.label)
            .set("backend", print(measured.backend))
            .set("processor", measured.processor)
            .set("measured_us", one.median_us)
            .set("noise", one.noise)
            .set("executions", one.executions)
            .set("machine", machine)
            .set("predicted_us", one.schedule.time().microseconds())
            .set("found", today())
            .set("version", subject.version)
            .set("schedule", print(one.schedule.form))
            .print_line() +
        "\n";
  }
  return lines;
}

}  // namespace harpe
