#pragma once

#include <memory>

#include "bench/cuda/attention_case.h"
#include "bench/cuda/trial.h"

namespace harpe::bench {

// A case computed with a given configuration, with its chunks in several orders.
[[nodiscard]] std::unique_ptr<Subject> make_attention_subject(const AttentionCase& what,
                                                              const device::AttentionConfig& config,
                                                              const TrialOptions& options,
                                                              const TrialPlaces& places,
                                                              Draw& draw);

}  // namespace harpe::bench
