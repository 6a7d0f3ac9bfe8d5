#pragma once

#include <string>

#include "lower/lower.h"
#include "plan/plan.h"

namespace harpe::test {

// A gemm of the given sizes (f32) or an attention, and a normal form given by the lines of its
// body.
struct Source {
  std::string program;
  std::string mesh;
  std::string form;
};

[[nodiscard]] Source gemm(int m, int n, int k, const std::string& mesh, const std::string& body);
[[nodiscard]] Source attention(int queries, int keys, bool causal, const std::string& mesh,
                               const std::string& body);

[[nodiscard]] Checked<Plan> lower(const Source& source, const LowerOptions& options = {});
// The plan; a refusal fails the test and returns an empty plan.
[[nodiscard]] Plan expect_plan(const Source& source, const LowerOptions& options = {});
// The rendered refusal, or "accepted".
[[nodiscard]] std::string refusal(const Source& source, const LowerOptions& options = {});

[[nodiscard]] int count(const Plan& plan, TaskKind kind);
[[nodiscard]] std::int64_t bytes_crossing(const Plan& plan);

}  // namespace harpe::test
