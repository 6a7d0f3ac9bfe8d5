#pragma once

#include "exec/cpu/view.h"
#include "ir/tensor.h"

namespace harpe::cpu {

// The value of a buffer whose homes keep partial states along some mesh axes: the parts combined by
// the statement's monoid, in ascending coordinate, and rounded once to the buffer's type.
// Requires: its homes are partial.
[[nodiscard]] HostTensor combine_parts(const Setting& setting, const std::string& buffer);

}  // namespace harpe::cpu
