#pragma once

#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"

namespace harpe {

// Forms that differ from `form` in how the buffers of one move travel. They are the search space
// around the named schedules of programs without a factored space (routes, many nests), and around
// any form. Buffers that move alike at one place change together. Some variants may not lower; the
// caller checks that.
struct FormVariant {
  NormalForm form;
  std::string change;  // "rows over ep: direct by src via sm"
};
[[nodiscard]] std::vector<FormVariant> variants_of(const NormalForm& form);

// Forms that differ only in the fence of all puts; none if the form has no puts by proxy. Immediate
// data is included only if the machine states the time to count it.
[[nodiscard]] std::vector<FormVariant> fence_variants_of(const NormalForm& form,
                                                         const Machine& machine);

}  // namespace harpe
