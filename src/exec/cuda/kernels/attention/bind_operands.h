#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/kernel_binding.h"

namespace harpe::cuda {

// Operands of attention alone where a launch plan has them. Errors: G092.

// Keys and values of an arrival, and the signal that the kernel waits for.
[[nodiscard]] Checked<AttentionChunkSpec> place_chunk(const KernelBinding& binding,
                                                      const LaunchAlone& alone,
                                                      const launch::Arrival& arrival);
// What masks read, behind the queries of a panel.
[[nodiscard]] Checked<Ok> place_tables(const KernelBinding& binding, const LaunchAlone& alone,
                                       const std::vector<launch::Place>& reads,
                                       AttentionSpec& spec);
// Whether no kernel of the execution writes keys or values.
[[nodiscard]] bool are_keys_fixed(const KernelBinding& binding);

}  // namespace harpe::cuda
