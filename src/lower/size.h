#pragma once

#include "ir/form.h"
#include "machine/mesh.h"

namespace harpe {

// About how many tasks a rank has in a nest, before anything is merged: its steps, and transfers
// into it: in a loop at least one per step, above all loops one per source.
[[nodiscard]] double count_tasks(const Mesh& mesh, const NormalForm& form, const NestForm& nest);
// Of all ranks in all nests.
[[nodiscard]] double count_tasks(const Mesh& mesh, const NormalForm& form);

}  // namespace harpe
