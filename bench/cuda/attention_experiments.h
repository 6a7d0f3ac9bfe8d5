#pragma once

#include "bench/cuda/bench.h"

namespace harpe::bench {

void check_attention(Bench& bench);
void check_decode(Bench& bench);
void exchange_states(Bench& bench);
void time_attention(Bench& bench);
void time_decode(Bench& bench);
void time_attention_wait(Bench& bench);
void time_attention_arrival(Bench& bench);
void time_attention_fused_store(Bench& bench);

}  // namespace harpe::bench
