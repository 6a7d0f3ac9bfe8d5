#pragma once

#include <map>
#include <string>

#include "exec/actions/view.h"
#include "exec/cuda/jit/kernel_library.h"
#include "ir/tensor.h"

namespace harpe::cuda {

// Each rank's kernels, in the order of ranks; null for a rank that is not accessible from here.
using RankLibraries = std::vector<KernelLibrary*>;

// Writes a whole tensor, rounded to the buffer's type, to the buffer's homes on these ranks' GPUs,
// which read it from pinned host memory. Returns once it has arrived. Requires: the shape is the
// buffer's. Errors: G005.
[[nodiscard]] Checked<Ok> scatter(const actions::Setting& setting, const RankLibraries& libraries,
                                  const std::string& buffer, const HostTensor& tensor);

// Reads the homes of a buffer into a whole tensor of its type. Partial states at homes are combined
// by the buffer's monoid and rounded once. Requires: every rank is accessible; the homes hold every
// element; homes of the same elements are bitwise equal. Errors: G005.
[[nodiscard]] Checked<HostTensor> gather(const actions::Setting& setting,
                                         const RankLibraries& libraries, const std::string& buffer);

}  // namespace harpe::cuda
