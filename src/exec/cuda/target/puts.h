#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/cuda/target/task_specs.h"

namespace harpe::cuda {

// Of each put's image, its parts one after the other.
[[nodiscard]] std::map<TaskId, std::int64_t> put_bytes_of(const SpecSource& source);

// A put's moves into staging memory, on its own rank. Requires: a network, as the next.
[[nodiscard]] std::vector<actions::Action> packing_of(const SpecSource& source, TaskId put);
// And out of landing memory, on the rank that it goes to.
[[nodiscard]] std::vector<actions::Action> landing_of(const SpecSource& source, TaskId put);

}  // namespace harpe::cuda
