#include "bench/cuda/bench.h"
#include "bench/cuda/reference_checks.h"

namespace harpe::bench {

// A new family of kernels adds its lines here.
const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"check", "reference", "what kernels are compared with, beside the host", check_references},
  };
  return all;
}

}  // namespace harpe::bench
