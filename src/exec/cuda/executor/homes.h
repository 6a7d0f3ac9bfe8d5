#pragma once

#include <map>
#include <string>

#include "exec/actions/view.h"
#include "exec/cuda/jit/kernel_library.h"
#include "ir/tensor.h"

namespace harpe::cuda {

// Each rank's kernels, in the order of ranks; null for a rank that is not reached from here.
using RankLibraries = std::vector<KernelLibrary*>;

// Writes a whole tensor, rounded to the buffer's type, to the homes of the buffer on those ranks'
// GPUs, which read it from pinned memory of the host. Returns once it is there.
// Requires: the shape is the buffer's. Errors: G005.
[[nodiscard]] Checked<Ok> scatter(const actions::Setting& setting, const RankLibraries& libraries,
                                  const std::string& buffer, const HostTensor& tensor);

// Reads the homes of a buffer into a whole tensor of its type; what homes keep as partial states is
// combined by its monoid and rounded once.
// Requires: every rank is reached; the homes hold every element; homes of the same elements are
// bitwise equal. Errors: G005.
[[nodiscard]] Checked<HostTensor> gather(const actions::Setting& setting,
                                         const RankLibraries& libraries, const std::string& buffer);

}  // namespace harpe::cuda
