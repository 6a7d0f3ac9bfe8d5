#pragma once

#include "bench/cuda/bench.h"

namespace harpe::bench {

void check_gradient(Bench& bench);
void time_gradient(Bench& bench);

}  // namespace harpe::bench
