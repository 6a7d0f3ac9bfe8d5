#pragma once

#include "lower/draft.h"

namespace harpe {

// D15: NCCL and RDMA proxies move one contiguous range. A transfer with strided blocks at either
// end gets a Pack before it or an Unpack after it, on that rank's compute queue, through a separate
// slot. (Copy engines and kernels move pitched rectangles directly.)
void pack_strided_transfers(Draft& draft);

// Merges copies of one loop position with the same endpoints, queue and axes into one task (K with
// V).
void merge_transfers(Draft& draft);

}  // namespace harpe
