#include "schedule/named/gemm.h"

#include <array>

#include "schedule/named/gemm_parts.h"

namespace harpe {
namespace {

using Generator = Checked<Script> (*)(const Program&, const Mesh&);

// Binds the last argument of a generator.
template <auto kFunction, auto kChoice>
Checked<Script> with(const Program& program, const Mesh& mesh) {
  return kFunction(program, mesh, kChoice);
}

constexpr std::string_view kResultMoves =
    "its result moves, and no leaf kernel writes results in place on another rank";
constexpr std::string_view kOneDimension = "its homes are blocked in one dimension each";

Checked<Script> ag_grid2d(const Program&, const Mesh&) {
  return refuse_schedule("grid2d", "ag_gemm", kOneDimension);
}
Checked<Script> rs_pull(const Program&, const Mesh&) {
  return refuse_schedule("pull", "gemm_rs", kResultMoves);
}
Checked<Script> rs_grid2d(const Program&, const Mesh&) {
  return refuse_schedule("grid2d", "gemm_rs", kOneDimension);
}
Checked<Script> ar_ring(const Program&, const Mesh&) {
  return refuse_schedule("ring", "gemm_ar",
                         "a travelling sum ends at one rank, and the result ends at all");
}
Checked<Script> ar_pull(const Program&, const Mesh&) {
  return refuse_schedule("pull", "gemm_ar", kResultMoves);
}
Checked<Script> ar_grid2d(const Program&, const Mesh&) {
  return refuse_schedule("grid2d", "gemm_ar", kOneDimension);
}

constexpr std::array kGemm = {
    NamedSchedule{"bulk", "b gathered once over all ranks", &with<gather_bulk, Gathered::B>},
    NamedSchedule{"ring", "b travels round all ranks, one block of columns per step",
                  &with<gather_ring, Gathered::B>},
    NamedSchedule{"fetch", "b fetched from its owner block by block, three slots ahead",
                  &with<gather_fetch, Gathered::B>},
    NamedSchedule{"push", "b pushed in chunks to all ranks; the GEMM waits chunk by chunk",
                  &with<gather_push, Gathered::B>},
    NamedSchedule{"fused",
                  "push whose chunks the waiting kernels send themselves: one launch a rank",
                  &with<gather_fused, Gathered::B>},
    NamedSchedule{"pull", "b read in place on its owner by the GEMM itself",
                  &with<gather_pull, Gathered::B>},
    NamedSchedule{"grid2d",
                  "a gathered along the second mesh axis, b travels along the first; one axis of P "
                  "ranks is P/u x u (8: 4x2)",
                  &gemm_grid2d},
    NamedSchedule{"hierarchical",
                  "b gathered over the first mesh axis, then a ring over the others; one axis of P "
                  "ranks is u x P/u (8: 2x4)",
                  &with<gather_hierarchical, Gathered::B>},
};

constexpr std::array kAgGemm = {
    NamedSchedule{"bulk", "a gathered once over all ranks", &with<gather_bulk, Gathered::A>},
    NamedSchedule{"ring", "a travels round all ranks, one block of rows per step",
                  &with<gather_ring, Gathered::A>},
    NamedSchedule{"fetch", "a fetched from its owner block by block, three slots ahead",
                  &with<gather_fetch, Gathered::A>},
    NamedSchedule{"push", "a pushed in chunks to all ranks; the GEMM waits chunk by chunk",
                  &with<gather_push, Gathered::A>},
    NamedSchedule{"push_k",
                  "a pushed in chunks of its columns, multiplied while later ones are on their way",
                  &gather_push_k},
    NamedSchedule{"fused",
                  "push whose chunks the waiting kernels send themselves: one launch a rank",
                  &with<gather_fused, Gathered::A>},
    NamedSchedule{"pull", "a read in place on its owner by the GEMM itself",
                  &with<gather_pull, Gathered::A>},
    NamedSchedule{"grid2d", "does not apply", &ag_grid2d},
    NamedSchedule{"hierarchical",
                  "a gathered over the first mesh axis, then a ring over the others; one axis of P "
                  "ranks is u x P/u (8: 2x4)",
                  &with<gather_hierarchical, Gathered::A>},
};

constexpr std::array kGemmRs = {
    NamedSchedule{"bulk", "partial sums reduced and scattered once",
                  &with<reduce_bulk, Reduced::Scattered>},
    NamedSchedule{"ring", "a sum per block travels round all ranks and ends at its owner",
                  &reduce_ring},
    NamedSchedule{"fetch", "partial blocks fetched and added up by their owner",
                  &with<reduce_fetch, Reduced::Scattered>},
    NamedSchedule{"push", "partial blocks pushed to their owner as they are made",
                  &with<reduce_push, Reduced::Scattered>},
    NamedSchedule{"pull", "does not apply", &rs_pull},
    NamedSchedule{"grid2d", "does not apply", &rs_grid2d},
    NamedSchedule{
        "hierarchical",
        "reduced over the inner mesh axes, then over the first; one axis of P ranks is u x "
        "P/u (8: 2x4)",
        &with<reduce_hierarchical, Reduced::Scattered>},
};

constexpr std::array kGemmAr = {
    NamedSchedule{"bulk", "partial sums reduced block by block and gathered, once",
                  &with<reduce_bulk, Reduced::Replicated>},
    NamedSchedule{"ring", "does not apply", &ar_ring},
    NamedSchedule{"fetch", "partial blocks fetched and added up by one rank each, then gathered",
                  &with<reduce_fetch, Reduced::Replicated>},
    NamedSchedule{"push_n", "push in blocks of columns, so that each block has all rows",
                  &reduce_push_n},
    NamedSchedule{"push", "partial blocks pushed to one rank each as they are made, then gathered",
                  &with<reduce_push, Reduced::Replicated>},
    NamedSchedule{"one_shot", "partial sums pushed to all ranks, each of which adds up all",
                  &reduce_one_shot},
    NamedSchedule{"pull", "does not apply", &ar_pull},
    NamedSchedule{"grid2d", "does not apply", &ar_grid2d},
    NamedSchedule{
        "hierarchical",
        "reduced and gathered over the inner mesh axes, then over the first; one axis of P "
        "ranks is u x P/u (8: 2x4)",
        &with<reduce_hierarchical, Reduced::Replicated>},
};

constexpr std::array kGemmArNorm = {
    NamedSchedule{"bulk",
                  "reduced block by block and gathered, once; every rank normalises all rows",
                  &with<reduce_bulk, Reduced::Replicated>},
    NamedSchedule{"fetch",
                  "partial blocks fetched and added up by one rank each, then gathered; every rank "
                  "normalises all rows",
                  &with<reduce_fetch, Reduced::Replicated>},
    NamedSchedule{"push_n", "push in blocks of columns, so that each block has all rows",
                  &reduce_push_n},
    NamedSchedule{"push",
                  "partial blocks pushed to one rank each as they are made, then gathered; every "
                  "rank normalises all rows",
                  &with<reduce_push, Reduced::Replicated>},
    NamedSchedule{"one_shot",
                  "partial sums pushed to all ranks, each of which adds up and normalises all",
                  &reduce_one_shot},
    NamedSchedule{"scattered",
                  "partial blocks pushed to one rank each, which normalises its rows; these are "
                  "gathered, and residuals stay by rows",
                  &reduce_normalise_gather},
    NamedSchedule{"hierarchical",
                  "reduced and gathered over the inner mesh axes, then over the first; every rank "
                  "normalises all rows",
                  &with<reduce_hierarchical, Reduced::Replicated>},
};

}  // namespace

Diag refuse_schedule(std::string_view schedule, std::string_view op, std::string_view reason) {
  return make_diag(
      DiagCode::S616,
      {{"schedule", schedule}, {"op", op}, {"reason", reason}, {"alternatives", "`auto`"}});
}

std::span<const NamedSchedule> gemm_schedules() { return kGemm; }
std::span<const NamedSchedule> ag_gemm_schedules() { return kAgGemm; }
std::span<const NamedSchedule> gemm_rs_schedules() { return kGemmRs; }
std::span<const NamedSchedule> gemm_ar_schedules() { return kGemmAr; }
std::span<const NamedSchedule> gemm_ar_norm_schedules() { return kGemmArNorm; }

}  // namespace harpe
