#pragma once

#include <string>

#include "harpe/harpe.h"

namespace harpe {

// Small questions, planned and executed in milliseconds.
inline Question gemm_question(const std::string& schedule = "ring") {
  return {.op = "gemm_rs",
          .parameters = {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", "f32"}},
          .mesh = "tp=4",
          .schedule = schedule};
}
inline Question attention_question(const std::string& schedule = "ring") {
  return {.op = "attention",
          .parameters = {{"seq", 64}, {"heads", 4}, {"head_dim", 8}, {"causal", true}},
          .mesh = "cp=4",
          .schedule = schedule};
}

}  // namespace harpe
