#pragma once

#include <cstdint>
#include <string>

#include "compile/request.h"

namespace harpe::test {

// y = gelu(a b + bias): a GEMM of a shipped operator under a named schedule, and pointwise tasks on
// the ranks that hold its result.
struct Linear {
  std::string op = "ag_gemm";  // or gemm_rs, gemm_ar, gemm
  std::string schedule = "push";
  std::int64_t m = 1024;
  std::int64_t n = 512;
  std::int64_t k = 512;
  std::string dtype = "bf16";
  std::string state = "f32";  // type of the pointwise tasks' operand
  bool has_gelu = true;       // else y = a b + bias
};

// Program and schedule, as texts. Requires: the schedule applies.
[[nodiscard]] Request ask(const Linear& linear, const std::string& mesh);
[[nodiscard]] std::string name_of(const Linear& linear, const std::string& mesh);

}  // namespace harpe::test
