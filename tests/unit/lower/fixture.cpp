#include "tests/unit/lower/fixture.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "verify/verify.h"

namespace harpe::test {

Source gemm(int m, int n, int k, const std::string& mesh, const std::string& body) {
  return {.program = "program gemm {\n  axis M = " + std::to_string(m) +
                     "\n  axis N = " + std::to_string(n) + "\n  axis K = " + std::to_string(k) +
                     "\n  buffer a : f32[M, K] in\n  buffer b : f32[K, N] in\n"
                     "  buffer c : f32[M, N] out\n"
                     "  nest mm over (M, N, K) {\n    c sum= matmul(a, b)\n  }\n}\n",
          .mesh = "mesh m = " + mesh,
          .form = "commir f for gemm on m {\n" + body + "}\n"};
}

Source attention(int queries, int keys, bool causal, const std::string& mesh,
                 const std::string& body) {
  return {.program = "program attn {\n  axis B = 1\n  axis Sq = " + std::to_string(queries) +
                     "\n  axis Skv = " + std::to_string(keys) +
                     "\n  axis H = 4\n  axis G = 1\n  axis D = 8\n  axis Dv = 8\n"
                     "  buffer q : f32[B, Sq, (H, G), D] in\n  buffer k : f32[B, Skv, H, D] in\n"
                     "  buffer v : f32[B, Skv, H, Dv] in\n  buffer o : f32[B, Sq, (H, G), Dv] out\n"
                     "  buffer l : f32[B, (H, G), Sq] out\n"
                     "  nest fwd over (B, H, G, Sq, Skv) whole (D, Dv) {\n"
                     "    (o, l) lse= attn_fwd(q, k, v)" +
                     std::string(causal ? " where causal(Sq, Skv)" : "") + "\n  }\n}\n",
          .mesh = "mesh m = " + mesh,
          .form = "commir f for attn on m {\n" + body + "}\n"};
}

Checked<Plan> lower(const Source& source, const LowerOptions& options) {
  HP_TRY(Cursor program, Cursor::open(source.program, "program"));
  HP_TRY(const Program parsed, parse_program(program));
  HP_TRY(Cursor mesh, Cursor::open(source.mesh, "mesh"));
  HP_TRY(const Mesh parsed_mesh, parse_mesh(mesh));
  HP_TRY(Cursor form, Cursor::open(source.form, "form"));
  HP_TRY(const NormalForm parsed_form, parse_form(form));
  return harpe::lower(parsed, parsed_mesh, parsed_form, options);
}

Plan expect_plan(const Source& source, const LowerOptions& options) {
  Checked<Plan> plan = lower(source, options);
  if (!plan.ok()) {
    ADD_FAILURE() << render(plan.error());
    return {};
  }
  if (!options.space_time_only) {
    const Checked<Certificate> certificate = verify(*plan);
    if (!certificate.ok()) ADD_FAILURE() << render(certificate.error());
  }
  return std::move(plan).value();
}

std::string refusal(const Source& source, const LowerOptions& options) {
  const Checked<Plan> plan = lower(source, options);
  return plan.ok() ? "accepted" : render(plan.error());
}

int count(const Plan& plan, TaskKind kind) {
  return static_cast<int>(std::ranges::count(plan.tasks, kind, &Task::kind));
}

std::int64_t bytes_crossing(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Task& task : plan.tasks) bytes += task.bytes;
  return bytes;
}

}  // namespace harpe::test
