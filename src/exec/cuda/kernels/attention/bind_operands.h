#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// These find operands of attention at the places of a launch plan. Errors: G092.

// Keys and values of an arrival, and the flag that the kernel waits for.
[[nodiscard]] Checked<AttentionChunkSpec> place_chunk(const KernelBinding& binding,
                                                      const LaunchAlone& alone,
                                                      const launch::Arrival& arrival);
// The tables that masks read; they follow the queries in a panel's `reads`.
[[nodiscard]] Checked<Ok> place_tables(const KernelBinding& binding, const LaunchAlone& alone,
                                       const std::vector<launch::Place>& reads,
                                       AttentionSpec& spec);
// Whether no kernel of the execution writes keys or values.
[[nodiscard]] bool are_keys_fixed(const KernelBinding& binding);

}  // namespace harpe::cuda
