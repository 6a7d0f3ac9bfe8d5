#pragma once

#include "bench/cuda/bench.h"

namespace harpe::bench {

void check_backward(Bench& bench);
void time_backward(Bench& bench);

}  // namespace harpe::bench
