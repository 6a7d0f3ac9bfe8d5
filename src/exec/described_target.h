#pragma once

#include "exec/collective_use.h"

namespace harpe::cuda {

// A machine of GPUs to make launches for. NCCL is taken to be there.
struct DescribedTarget {
  int multiprocessors = 132;  // of an H200
  bool shares_gpus = false;   // ranks do
  bool takes_turns = false;   // plans do, with the ranks' memory
  CollectiveEngine collectives = CollectiveEngine::Auto;
};

}  // namespace harpe::cuda
