#pragma once

#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"

namespace harpe {

// Forms that differ from `form` in how the buffers of one move go: the space around the named
// schedules of programs that have no factored one (routes, many nests), and around any form.
// Buffers that move alike at one place change together. What does not lower is for the caller to
// find out.
struct FormVariant {
  NormalForm form;
  std::string change;  // "rows over ep: direct by src via sm"
};
[[nodiscard]] std::vector<FormVariant> variants_of(const NormalForm& form);

// Forms that differ in the fence of all puts alone; none where nothing is put by proxy. Immediate
// data only on a machine that says what counting it takes.
[[nodiscard]] std::vector<FormVariant> fence_variants_of(const NormalForm& form,
                                                         const Machine& machine);

}  // namespace harpe
