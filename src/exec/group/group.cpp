#include "exec/group/group.h"

#include <utility>

#include "machine/mesh.h"

namespace harpe {

LaunchFailure make_failure(const Plan& plan, FaultReport report) {
  return ExecutionFault{.plan = plan.program.name + " on " + print_mesh_option(plan.mesh),
                        .report = std::move(report)};
}

}  // namespace harpe
