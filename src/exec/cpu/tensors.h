#pragma once

#include "exec/actions/view.h"
#include "exec/processes/partition.h"
#include "ir/tensor.h"

namespace harpe::cpu {

// Whole tensors to homes and back.

// Writes a whole tensor, rounded to the buffer's type, to every home of the buffer in this process.
// Requires: the shape is the buffer's.
void scatter(const actions::Setting& setting, const processes::Partition& partition,
             const std::string& buffer, const HostTensor& tensor);

// Reads the homes of a buffer into a whole tensor of its type. Partial states at homes are combined
// by the buffer's monoid and rounded once. Requires: the homes hold every element; homes of the
// same elements are bitwise equal.
[[nodiscard]] HostTensor gather(const actions::Setting& setting, const std::string& buffer);

}  // namespace harpe::cpu
