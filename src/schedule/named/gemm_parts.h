#pragma once

#include <string_view>

#include "schedule/named/registry.h"

namespace harpe {

// The operand of a GEMM that is gathered: b for gemm (weights), a for ag_gemm (activations).
enum class Gathered : std::uint8_t { A, B };

Checked<Script> gather_bulk(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_ring(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_fetch(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_push(const Program& program, const Mesh& mesh, Gathered operand);
// a is pushed in chunks along K: the kernel multiplies the first columns of rows while the others
// are on their way.
Checked<Script> gather_push_k(const Program& program, const Mesh& mesh);
Checked<Script> gather_fused(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_pull(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_hierarchical(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gemm_grid2d(const Program& program, const Mesh& mesh);

// The home of a GEMM's result after the reduction: c by rows (gemm_rs), or replicated (gemm_ar).
enum class Reduced : std::uint8_t { Scattered, Replicated };

Checked<Script> reduce_bulk(const Program& program, const Mesh& mesh, Reduced result);
Checked<Script> reduce_ring(const Program& program, const Mesh& mesh);  // scattered
Checked<Script> reduce_fetch(const Program& program, const Mesh& mesh, Reduced result);
Checked<Script> reduce_push(const Program& program, const Mesh& mesh, Reduced result);
// Replicated, in blocks of columns: a kernel has all rows of a block, and reads its weights once.
Checked<Script> reduce_push_n(const Program& program, const Mesh& mesh);
Checked<Script> reduce_one_shot(const Program& program, const Mesh& mesh);  // replicated
// For a GEMM whose rows are normalised: the owner of each row normalises it, between the reduction
// and the gather. The residual is scattered too.
Checked<Script> reduce_normalise_gather(const Program& program, const Mesh& mesh);
Checked<Script> reduce_hierarchical(const Program& program, const Mesh& mesh, Reduced result);

// S616: a schedule that is meaningless for an operator, and why.
[[nodiscard]] Diag refuse_schedule(std::string_view schedule, std::string_view op,
                                   std::string_view reason);

}  // namespace harpe
