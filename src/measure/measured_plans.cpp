#include "measure/measured_plans.h"

#include <nlohmann/json.hpp>

#include "io/json.h"
#include "ir/text.h"
#include "support/date.h"

namespace harpe {

std::string print_measurements(const Request& subject, const std::string& machine,
                               const Measured& measured) {
  std::string lines;
  for (const MeasuredSchedule& one : measured.all) {
    if (one.outcome != MeasuredAs::Timed) continue;
    const Json line{{"kind", "plan"},
                    {"operator", subject.target},
                    {"parameters", subject.parameters},
                    {"mesh", subject.mesh.value_or("")},
                    {"label", one.schedule.label},
                    {"backend", print(measured.backend)},
                    {"processor", measured.processor},
                    {"collectives", print(measured.collectives)},
                    {"partials16", true},
                    {"measured_us", one.median_us},
                    {"noise", one.noise},
                    {"executions", one.executions},
                    {"machine", machine},
                    {"predicted_us", one.schedule.time().microseconds()},
                    {"found", today()},
                    {"version", subject.version},
                    {"schedule", print(one.schedule.form)}};
    lines += print_json_line(line) + "\n";
  }
  return lines;
}

}  // namespace harpe
