#include "run/groups.h"

#include "exec/cpu/cpu_group.h"
#include "run/gpus.h"

namespace harpe {

Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request, const RankSite& site) {
  if (!site.gpu) return join_cpu_group(request);
  HP_TRY(const Gpus* const gpus, find_gpus());
  return gpus->join_group(request, *site.gpu, site.places);
}

}  // namespace harpe
