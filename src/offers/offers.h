#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "leaves/leaf.h"

namespace harpe {

// A kernel that an executor runs a leaf by when `patch` names it.
struct KernelOffer {
  std::string_view name;
  Leaf leaf;
  std::span<const DType> types;  // of the leaf's first operand
  bool chunks = false;           // waits for its operands chunk by chunk
  bool remote_operands = false;  // reads operands in place on another rank
  bool remote_targets = false;   // writes or adds its results in place on another rank
  bool by_library = false;       // NVIDIA's, where GPUs have it
};

// The kernels of one executor. It runs these under their names and refuses all others
// (exec/named_kernels.h).
struct ExecutorOffers {
  std::string_view executor;  // "CPU ranks", "GPUs"
  std::span<const KernelOffer> kernels;

  // Null for a kernel that it lacks.
  [[nodiscard]] const KernelOffer* find(std::string_view kernel) const;
};

[[nodiscard]] const ExecutorOffers& cpu_offers();
// Whether this build has the CUDA back end or not: schedules and prices do not depend on it.
[[nodiscard]] const ExecutorOffers& gpu_offers();

// Of any executor; null for a name that none offers.
[[nodiscard]] const KernelOffer* find_offer(std::string_view kernel);
// The names of all kernels, or of those of a leaf, CPU ranks' first.
[[nodiscard]] std::vector<std::string> offered_kernels();
[[nodiscard]] std::vector<std::string> offered_kernels(std::string_view leaf);

// What a schedule may ask of kernels.
using KernelTrait = bool KernelOffer::*;
// Whether some executor has a kernel of the leaf with the trait.
[[nodiscard]] bool is_offered(std::string_view leaf, KernelTrait trait);

}  // namespace harpe
