#pragma once

#include <span>
#include <string_view>

namespace harpe {

// A leaf kernel `patch` may choose, and what schedules may ask of it.
struct LeafKernel {
  std::string_view name;
  std::string_view leaf;
  bool chunk;                   // visits operands chunk by chunk and waits for each
  bool remote_operands;         // reads operands in place on another rank
  bool remote_targets = false;  // writes or adds its results in place on another rank
  bool by_library = false;      // NVIDIA's, where GPUs have it
};

[[nodiscard]] std::span<const LeafKernel> all_leaf_kernels();
[[nodiscard]] const LeafKernel* find_leaf_kernel(std::string_view name);

}  // namespace harpe
