#pragma once

#include <memory>
#include <vector>

#include "bench/cuda/gemm_problem.h"
#include "bench/cuda/gemm_runner.h"
#include "bench/cuda/trial.h"

namespace harpe::bench {

// A case computed with a given configuration, with its panels in several orders.
[[nodiscard]] std::unique_ptr<Subject> make_gemm_subject(const GemmCase& what,
                                                         const device::GemmConfig& config,
                                                         const TrialOptions& options,
                                                         const TrialPlaces& places, Draw& draw);

}  // namespace harpe::bench
