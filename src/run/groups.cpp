#include "run/groups.h"

#include "exec/cpu/cpu_group.h"

namespace harpe {

Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request, const RankSite& site) {
  if (site.gpu) {
    return make_diag(
        DiagCode::I311,
        {{"argument", "gpu"}, {"wanted", "none: groups are of CPU ranks"}, {"found", *site.gpu}});
  }
  return join_cpu_group(request);
}

}  // namespace harpe
