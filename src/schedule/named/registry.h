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

// A schedule by name: a generator of scripts for any shape and mesh it applies to. It finds buffers
// and axes through the operator's one statement, by position, never by name.
struct NamedSchedule {
  std::string_view name;
  std::string_view summary;  // what moves, and how the mesh axes are used
  Checked<Script> (*generate)(const Program& program, const Mesh& mesh);
};

// The schedules of an operator, the most generally useful ones first; empty for an operator unknown
// here. Requires of every generator: a ground program, a mesh that passed check_mesh.
[[nodiscard]] std::span<const NamedSchedule> schedules_of(std::string_view op);
[[nodiscard]] std::vector<std::string> operators_with_schedules();

// A schedule's name as users write it, `ulysses+cudnn_fa_fwd`: behind each `+` a kernel for the
// leaves that it does, patched in at the end.
struct ScheduleName {
  std::string_view base;
  std::vector<std::string_view> kernels;
};
[[nodiscard]] ScheduleName parse_schedule_name(std::string_view name);

// The script of one named schedule, or of `auto`, with the kernels that the name ends with.
// Errors: S601, S602 (names); S603 (another kind of program); S611-S617 (does not apply here), with
// the schedules that do; of a kernel patch's, when the script is replayed.
[[nodiscard]] Checked<Script> generate_schedule(std::string_view op, std::string_view name,
                                                const Program& program, const Mesh& mesh);

// The kernels that a schedule's name ends with, patched into its script.
void patch_kernels(Script& script, std::string_view name, const Program& program);

// Every schedule of the operator with its script, or why it has none here.
struct Applicability {
  std::string_view name;
  std::string_view summary;
  Checked<Script> script;
};
[[nodiscard]] std::vector<Applicability> find_applicable(std::string_view op,
                                                         const Program& program, const Mesh& mesh);

// What `auto` means without a search; applies to every legal shape.
//   attention   fewer query positions than ranks: tree; causal with two blocks of positions per
//   rank:
//               zigzag_ring; else allgather
//   attention_bwd   the same, without tree
//   gemm, ag_gemm, gemm_rs: ring; gemm_ar, gemm_ar_norm, decode: bulk; moe: push
// Errors: S602, S603.
[[nodiscard]] Checked<Script> choose_auto(std::string_view op, const Program& program,
                                          const Mesh& mesh);

}  // namespace harpe
