#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "leaves/leaf.h"

namespace harpe {

// A kernel that an executor runs for a leaf if `patch` names it.
struct KernelOffer {
  std::string_view name;
  Leaf leaf;
  std::span<const DType> types;  // of the leaf's first operand
  bool chunks = false;           // waits for its operands chunk by chunk
  bool remote_operands = false;  // reads operands in place on another rank
  bool remote_targets = false;   // writes or adds its results in place on another rank
  bool by_library = false;       // a kernel of NVIDIA's libraries, where GPUs have it
};

// The kernels of one executor that `patch` may name. The executor refuses all other names
// (exec/named_kernels.h).
struct ExecutorOffers {
  std::string_view executor;  // "CPU ranks", "GPUs"
  std::span<const KernelOffer> kernels;

  // Null for a kernel that the executor lacks.
  [[nodiscard]] const KernelOffer* find(std::string_view kernel) const;
};

[[nodiscard]] const ExecutorOffers& cpu_offers();
// Also available without the CUDA back end, so that schedules and predictions do not depend on it.
[[nodiscard]] const ExecutorOffers& gpu_offers();

// The kernel of any executor; null for a name that none offers.
[[nodiscard]] const KernelOffer* find_offer(std::string_view kernel);
// The names of all kernels, or of a leaf's kernels, CPU kernels first.
[[nodiscard]] std::vector<std::string> offered_kernels();
[[nodiscard]] std::vector<std::string> offered_kernels(std::string_view leaf);

// A property of kernels that a schedule may require.
using KernelTrait = bool KernelOffer::*;
// True if some executor has a kernel of the leaf with the trait.
[[nodiscard]] bool is_offered(std::string_view leaf, KernelTrait trait);

}  // namespace harpe
