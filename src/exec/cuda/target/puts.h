#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/cuda/target/task_specs.h"

namespace harpe::cuda {

// The size of each put's image, whose parts are contiguous.
[[nodiscard]] std::map<TaskId, std::int64_t> put_bytes_of(const SpecSource& source);

// A put's moves into staging memory, on its own rank. Requires, as the next: a network.
[[nodiscard]] std::vector<actions::Action> packing_of(const SpecSource& source, TaskId put);
// A put's moves out of landing memory, on the receiver.
[[nodiscard]] std::vector<actions::Action> landing_of(const SpecSource& source, TaskId put);

}  // namespace harpe::cuda
