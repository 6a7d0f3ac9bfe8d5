#pragma once

#include "exec/cpu/view.h"
#include "ir/tensor.h"

namespace harpe::cpu {

// Whole tensors to homes and back.

// Writes a whole tensor, rounded to the buffer's type, to every home of the buffer.
// Requires: the shape is the buffer's.
void scatter(const Setting& setting, const std::string& buffer, const HostTensor& tensor);

// Reads the homes of a buffer into a whole tensor of its type.
// What homes keep as partial states is combined by its monoid and rounded once.
// Requires: the homes hold every element; homes of the same elements are bitwise equal.
[[nodiscard]] HostTensor gather(const Setting& setting, const std::string& buffer);

// The same of the ranks whose coordinate along the buffer's partial axes is `part`: 0 if it has
// none.
[[nodiscard]] HostTensor gather_part(const Setting& setting, const std::string& buffer,
                                     std::int64_t part);

}  // namespace harpe::cpu
