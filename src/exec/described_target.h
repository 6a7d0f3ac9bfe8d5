#pragma once

#include "exec/collective_use.h"

namespace harpe::cuda {

// A description of GPUs to make launch plans for. NCCL is assumed to be present.
struct DescribedTarget {
  int multiprocessors = 132;  // of an H200
  bool shares_gpus = false;   // ranks share GPUs
  bool divides_gpus = false;  // ranks that share a GPU have SMs of their own
  bool takes_turns = false;   // several plans use the ranks' memory in turn
  CollectiveEngine collectives = CollectiveEngine::Auto;
};

}  // namespace harpe::cuda
