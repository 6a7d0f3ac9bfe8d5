#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/backward_experiments.h"
#include "bench/cuda/bench.h"
#include "bench/cuda/gemm_experiments.h"
#include "bench/cuda/reference_checks.h"

namespace harpe::bench {

// A new family of kernels adds its lines here.
const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"check", "reference", "what kernels are compared with, beside the host", check_references},
      {"check", "gemm", "right numbers, whatever arrives when, and bounded waits", check_gemm},
      {"gemm", "gemm", "8192 cubed and the local GEMMs of a large model, beside cuBLASLt",
       time_gemm},
      {"few_rows", "gemm", "GEMMs of 1 to 256 rows with weights in memory, beside cuBLASLt",
       time_few_rows},
      {"exchange", "gemm", "sums over ranks that share one GPU, to the bit, and timed",
       exchange_sums},
      {"maps", "gemm", "a bias and a gelu in the kernel, beside kernels of their own",
       time_gemm_maps},
      {"wait", "gemm", "flags that were raised before, beside none", time_gemm_wait},
      {"arrival", "gemm", "chunks of A that arrive while it runs (--source)", time_gemm_arrival},
      {"departure", "gemm", "C stored to a peer, beside C stored here", time_gemm_fused_store},
      {"check", "attention", "right numbers, whatever arrives when, and bounded waits",
       check_attention},
      {"attention", "attention", "forward, full and causal, beside cuDNN", time_attention},
      {"check", "decode", "attention of few queries, in any number of shares of the keys",
       check_decode},
      {"decode", "decode", "attention of one query, beside parts and cuDNN", time_decode},
      {"exchange", "decode", "states of ranks that share one GPU, combined, and timed",
       exchange_states},
      {"wait", "attention", "flags that were raised before, beside none", time_attention_wait},
      {"arrival", "attention", "keys and values that arrive while it runs (--source)",
       time_attention_arrival},
      {"departure", "attention", "o stored to a peer, beside o stored here",
       time_attention_fused_store},
      {"check", "gradient", "right numbers, and the same bits every time", check_backward},
      {"backward", "gradient", "attention's gradients, full and causal, beside cuDNN",
       time_backward},
  };
  return all;
}

}  // namespace harpe::bench
