#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "machine/machine.h"
#include "profile/profile_crew.h"

namespace harpe {

// A leaf with a shape, computed by the CPU executor's kernels.
struct ProfileLeaf {
  std::string leaf;
  DType dtype = DType::F32;
  LeafShape shape;
  bool causal = false;
  std::function<ProfileBody(std::int64_t rank)> make;
};

// The grid of shapes that is measured: GEMMs and attention in f32 and bf16, and leaves that only
// touch memory. `quick`: a few small ones.
[[nodiscard]] std::vector<ProfileLeaf> profile_leaves(bool quick);

}  // namespace harpe
