#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exec/cuda/executor/describe_kernel.h"
#include "exec/cuda/executor/located_places.h"

namespace harpe::cuda {

// A launch at made-up addresses, how it is described, and what its task names.
struct DescribedSpec {
  const LaunchSpec* spec = nullptr;
  const launch::Kernel* kernel = nullptr;
  const std::vector<LaidRef>* refs = nullptr;
};

// Launches that passes over launch plans propose, made of launches that tasks are on their own.

// Panels and K chunks of `kernel`, each as one of `like`, which may be of other tasks, has it: with
// as many elements along every axis. None where there is none like it, K chunks are not
// side by side in B, or operands do not lie as the kernel takes them.
// Requires: `like` are GEMMs with one panel and one K chunk; there is one.
[[nodiscard]] std::optional<GemmSpec> bind_gemm(const SpecSource& source,
                                                std::span<const DescribedSpec> like,
                                                const launch::Kernel& kernel,
                                                const LocatedPlaces& places);

// The groups of a GEMM, stored where `kernel` states. None as above.
[[nodiscard]] std::optional<GemmSpec> move_groups(const GemmSpec& spec, const launch::Kernel& from,
                                                  const launch::Kernel& kernel,
                                                  const LocatedPlaces& places);

// Attention with the operands and results that `kernel` states. None as above, or where panels and
// chunks are others than those of `from`.
[[nodiscard]] std::optional<AttentionSpec> move_attention(const SpecSource& source,
                                                          const AttentionSpec& spec,
                                                          const launch::Kernel& from,
                                                          const launch::Kernel& kernel,
                                                          const LocatedPlaces& places);

}  // namespace harpe::cuda
