#pragma once

#include "bench/cuda/bench.h"

namespace harpe::bench {

void check_gemm(Bench& bench);
void time_gemm(Bench& bench);
void time_few_rows(Bench& bench);
void exchange_sums(Bench& bench);
void time_gemm_maps(Bench& bench);
void time_gemm_wait(Bench& bench);
void time_gemm_arrival(Bench& bench);
void time_gemm_fused_store(Bench& bench);

}  // namespace harpe::bench
