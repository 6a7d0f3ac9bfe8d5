#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "exec/actions/view.h"
#include "ir/tensor.h"

namespace harpe::actions {

// The value of a buffer whose homes keep partial states along some mesh axes: combines the parts by
// the statement's monoid, in ascending coordinate, and rounds once to the buffer's type. Requires:
// its homes are partial; `part_of` gathers the homes of the ranks with the given coordinate along
// the buffer's partial axes.
using PartOf = std::function<HostTensor(const std::string& buffer, std::int64_t part)>;
[[nodiscard]] HostTensor combine_parts(const Setting& setting, const std::string& buffer,
                                       const PartOf& part_of);

}  // namespace harpe::actions
