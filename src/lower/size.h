#pragma once

#include "ir/form.h"
#include "machine/mesh.h"

namespace harpe {

// Estimates the tasks of a rank in a nest before merging: its steps, and the transfers into it: in
// a loop at least one per step, above all loops one per source.
[[nodiscard]] double count_tasks(const Mesh& mesh, const NormalForm& form, const NestForm& nest);
// The same for all ranks and nests.
[[nodiscard]] double count_tasks(const Mesh& mesh, const NormalForm& form);

}  // namespace harpe
