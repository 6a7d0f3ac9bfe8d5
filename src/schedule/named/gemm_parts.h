#pragma once

#include <string_view>

#include "schedule/named/registry.h"

namespace harpe {

// Which operand of a product moves: b for gemm (weights gathered), a for ag_gemm (activations
// gathered).
enum class Gathered : std::uint8_t { A, B };

Checked<Script> gather_bulk(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_ring(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_fetch(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_push(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_fused(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_pull(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gather_hierarchical(const Program& program, const Mesh& mesh, Gathered operand);
Checked<Script> gemm_grid2d(const Program& program, const Mesh& mesh);

// Where the result of a product over a split reduction ends: c by rows (gemm_rs) or everywhere
// (gemm_ar).
enum class Reduced : std::uint8_t { Scattered, Replicated };

Checked<Script> reduce_bulk(const Program& program, const Mesh& mesh, Reduced result);
Checked<Script> reduce_ring(const Program& program, const Mesh& mesh);  // scattered
Checked<Script> reduce_fetch(const Program& program, const Mesh& mesh, Reduced result);
Checked<Script> reduce_push(const Program& program, const Mesh& mesh, Reduced result);
Checked<Script> reduce_one_shot(const Program& program, const Mesh& mesh);  // replicated
// Of a product whose rows are normalised: by their owners, behind the reduction and before the
// gather. The residual is scattered too.
Checked<Script> reduce_normalise_gather(const Program& program, const Mesh& mesh);
Checked<Script> reduce_hierarchical(const Program& program, const Mesh& mesh, Reduced result);

// S616: a schedule that has no meaning for an operator, and why.
[[nodiscard]] Diag refuse_schedule(std::string_view schedule, std::string_view op,
                                   std::string_view reason);

}  // namespace harpe
