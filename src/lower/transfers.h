#pragma once

#include "lower/draft.h"

namespace harpe {

// D15: NCCL and RDMA proxies move one contiguous run. A transfer whose blocks are strided at either
// end gets a Pack before it or an Unpack after it, on that rank's compute queue, through a slot of
// its own. (Copy engines and kernels move pitched rectangles as they are.)
void pack_strided_transfers(Draft& draft);

// Copies of one loop position with the same endpoints, queue and axes become one task (K with V).
void merge_transfers(Draft& draft);

}  // namespace harpe
