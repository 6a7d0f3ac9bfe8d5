#pragma once

#include "bench/cuda/bench.h"

namespace harpe::bench {

void check_references(Bench& bench);

}  // namespace harpe::bench
