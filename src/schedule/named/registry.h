#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "machine/mesh.h"
#include "schedule/script.h"
#include "support/diag.h"

namespace harpe {

// A schedule with a name: it generates scripts for any shape and mesh to which it applies. It finds
// buffers and axes by position in the operator's one statement, never by name.
struct NamedSchedule {
  std::string_view name;
  std::string_view summary;  // what is sent, and how the mesh axes are used
  Checked<Script> (*generate)(const Program& program, const Mesh& mesh);
};

// The schedules of an operator, the most generally useful first; empty for an unknown operator.
// Every generator requires: a ground program, a mesh that passed check_mesh.
[[nodiscard]] std::span<const NamedSchedule> schedules_of(std::string_view op);
[[nodiscard]] std::vector<std::string> operators_with_schedules();

// A schedule's name as users write it, `ulysses+cudnn_fa_fwd`: after each `+` a kernel for all
// leaves that it fits, patched in at the end.
struct ScheduleName {
  std::string_view base;
  std::vector<std::string_view> kernels;
};
[[nodiscard]] ScheduleName parse_schedule_name(std::string_view name);

// The script of one named schedule, or of `auto`, with the kernels at the end of the name. Errors:
// S601, S602 (names); S603 (another kind of program); S611-S617 (does not apply here), with the
// schedules that do. Errors of a kernel patch appear when the script is replayed.
[[nodiscard]] Checked<Script> generate_schedule(std::string_view op, std::string_view name,
                                                const Program& program, const Mesh& mesh);

// Patches the kernels at the end of a schedule's name into its script.
void patch_kernels(Script& script, std::string_view name, const Program& program);

// A schedule of the operator with its script, or why it does not apply.
struct Applicability {
  std::string_view name;
  std::string_view summary;
  Checked<Script> script;
};
[[nodiscard]] std::vector<Applicability> find_applicable(std::string_view op,
                                                         const Program& program, const Mesh& mesh);

// The schedule that `auto` means without a search. It applies to every legal shape.
//   attention      fewer query positions than ranks: tree; causal with two blocks of positions per
//                  rank: zigzag_ring; else allgather
//   attention_bwd  the same, without tree
//   gemm, ag_gemm, gemm_rs: ring; gemm_ar, gemm_ar_norm, decode: bulk; moe: push
// Errors: S602, S603.
[[nodiscard]] Checked<Script> choose_auto(std::string_view op, const Program& program,
                                          const Mesh& mesh);

}  // namespace harpe
