// patch, chunk of a leaf, budget, fuse: kernels.

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace leaf_test {

std::string refuse(std::string_view steps) { return refusal_of("gemm", "one", steps); }

std::string leaf(std::string_view steps) {
  const std::string form = form_after("gemm", "one", steps);
  const std::size_t begin = form.find("    leaf");
  return begin == std::string::npos ? form : form.substr(begin);
}

TEST(Patch, chooses_kernel_and_budget) {
  EXPECT_EQ(leaf("patch(mm, kernel=\"gemm_sm90\", sm=132)"),
            "    leaf kernel \"gemm_sm90\" sm 132\n  }\n");
  EXPECT_EQ(leaf("patch(mm, kernel=\"cpu_gemm\") patch(mm, sm=8)"),
            "    leaf kernel \"cpu_gemm\" sm 8\n  }\n");
  EXPECT_EQ(leaf("patch(mm, kernel=\"cpu_gemm\", sm=8) patch(mm, kernel=\"any\")"),
            "    leaf sm 8\n  }\n");
}

TEST(Patch, refuses_kernels_that_cannot_do_it) {
  EXPECT_EQ(refuse("patch(mm)"), "error[S501]: patch: neither `kernel=` nor `sm=` is given");
  EXPECT_EQ(refuse("patch(mm, kernel=\"gemm_sm80\")"),
            "error[S502]: patch: no kernel is called \"gemm_sm80\" (did you mean `gemm_sm90`?); "
            "there are `cpu_gemm`, `cpu_attention`, `cpu_copy`, `gemm_sm90`, `cublaslt_gemm`, "
            "`fa_fwd_sm90`, `cudnn_fa_fwd`, `fa_bwd_sm90` and `rowdot`; name one of them, or "
            "\"any\" to leave the choice to the executor");
  EXPECT_EQ(
      refuse("patch(mm, kernel=\"fa_fwd_sm90\")"),
      "error[S503]: patch: kernel \"fa_fwd_sm90\" computes `attn_fwd`, and the leaf is `matmul`, "
      "for which there is `cpu_gemm`, `gemm_sm90` and `cublaslt_gemm`");
  EXPECT_EQ(
      refuse("tile(M, [8, 4]) -> m0, m1, m2 chunk(mm, leaf, m1) "
             "patch(mm, kernel=\"cublaslt_gemm\")"),
      "error[S504]: patch: the leaf is chunked by `m1`, which kernel \"cublaslt_gemm\" cannot "
      "wait for");
  EXPECT_EQ(refuse("stage(mm, A, over=[gpu], how=inline) patch(mm, kernel=\"gemm_sm90\")"),
            "error[S505]: patch: `A` is read in place on another rank, which kernel \"gemm_sm90\" "
            "cannot do");
  EXPECT_EQ(refuse("patch(mm, sm=133)"), "error[S511]: 133 SMs are outside 1..132");
  EXPECT_EQ(
      refuse("patch(mm, kernel=\"gemm_sm90\", sm=8) patch(mm, kernel=\"gemm_sm90\")"),
      "error[S008]: nothing would change: the leaf of nest `mm` already has \"gemm_sm90\"; drop "
      "the step");
  EXPECT_EQ(refuse("patch(mm, kernel=\"any\")"),
            "error[S008]: nothing would change: the leaf of nest `mm` already has \"any\"; drop "
            "the step");
  EXPECT_EQ(refuse("patch(nn, sm=8)"),
            "error[S011]: the program has no nest called `nn` (did you mean `mm`?)");
}

TEST(ChunkLeaf, sets_chunk_and_order) {
  EXPECT_EQ(leaf("tile(M, [8, 4]) -> m0, m1, m2 chunk(mm, leaf, m1, order=[m0, gpu])"),
            "    leaf chunk m1 order skew(m0, gpu)\n  }\n");
  EXPECT_EQ(leaf("tile(M, [8, 4]) -> m0, m1, m2 chunk(mm, leaf, m1, order=[m0, gpu]) "
                 "chunk(mm, leaf, m0)"),
            "    leaf chunk m0\n  }\n");
}

TEST(ChunkLeaf, refuses_digits_and_leaves_that_cannot_be_chunked) {
  constexpr std::string_view kTiled = "tile(M, [8, 4]) -> m0, m1, m2 ";
  const auto tiled = [&](std::string_view steps) {
    return refuse(std::string(kTiled) + std::string(steps));
  };
  EXPECT_EQ(
      tiled("chunk(mm, A, m1)"),
      "error[S441]: chunk: `A` stands where `leaf` is expected; write `leaf`, or give `over=` and "
      "`by=`");
  EXPECT_EQ(tiled("chunk(mm, leaf, m1, order=[m1, gpu])"),
            "error[S442]: chunk: `m1` is both the chunk and the digit visited around it");
  EXPECT_EQ(tiled("chunk(mm, leaf, m0, order=[m1, gpu])"),
            "error[S443]: chunk: 8 ranks do not divide the 4 blocks of `m1`");
  EXPECT_EQ(tiled("chunk(mm, leaf, m0, order=[m1])"),
            "error[S015]: no mesh axis is given, where `gpu` could be");
  EXPECT_EQ(tiled("serialize(mm, m0) chunk(mm, leaf, m0)"),
            "error[S024]: digit `m0` is already bound in nest `mm`, by a `for`");
  EXPECT_EQ(tiled("patch(mm, kernel=\"cublaslt_gemm\") chunk(mm, leaf, m1)"),
            "error[S444]: chunk: kernel `cublaslt_gemm` does not wait for its operands chunk by "
            "chunk; chunk the move alone");
  EXPECT_EQ(
      refusal_of("scan", "one", "tile(R, [8]) -> r0, r1 chunk(second, leaf, r0)"),
      "error[S444]: chunk: leaf `mix` does not wait for its operands chunk by chunk; chunk the "
      "move alone");
  EXPECT_EQ(
      tiled("chunk(mm, leaf, m1) chunk(mm, leaf, m1)"),
      "error[S008]: nothing would change: the chunk of nest `mm` already has `m1`; drop the step");
}

TEST(Budget, is_for_the_leaf_or_for_moves_on_sms) {
  EXPECT_EQ(leaf("budget(mm, sm=124)"), "    leaf sm 124\n  }\n");
  EXPECT_EQ(refuse("budget(mm, sm=0)"), "error[S511]: 0 SMs are outside 1..132");
  EXPECT_EQ(refuse("budget(mm, A, sm=4)"),
            "error[S512]: budget: buffers and `over=` must be given together");
  EXPECT_EQ(refuse("stage(mm, A, over=[gpu], how=bulk) budget(mm, A, over=[gpu], sm=4)"),
            "error[S513]: budget: `A` over `gpu` goes via `ce`, which uses no SMs");
  EXPECT_EQ(refuse("stage(mm, A, over=[gpu], how=bulk) bind(mm, A, over=[gpu], via=sm) "
                   "budget(mm, A, over=[gpu], sm=4)"),
            "accepted");
  EXPECT_EQ(
      refuse("budget(mm, sm=4) budget(mm, sm=4)"),
      "error[S008]: nothing would change: the budget in nest `mm` already has 4 SMs; drop the "
      "step");
}

std::string refuse_moe(std::string_view steps) { return refusal_of("moe", "one", steps); }

TEST(Fuse, makes_neighbouring_nests_one_launch) {
  const std::string form =
      form_after("moe", "one",
                 "fuse(ffn, [up, act, down]) "
                 "fuse(mega, [dispatch, ffn, combine], persistent=true, sm=132, "
                 "warps=8)");
  EXPECT_NE(form.find("  fuse ffn = up, act, down\n"
                      "  fuse mega = dispatch, ffn, combine persistent sm 132 warps 8\n"),
            std::string::npos)
      << form;
}

TEST(Fuse, refuses_what_is_no_run_of_free_nests) {
  EXPECT_EQ(refuse_moe("fuse(up, [act])"),
            "error[S521]: fuse: `up` is already a nest or a fusion; choose another name");
  EXPECT_EQ(
      refuse_moe("fuse(ffn, [up, akt])"),
      "error[S522]: fuse: `akt` is neither a nest nor an earlier fusion (did you mean `act`?)");
  EXPECT_EQ(refuse_moe("fuse(ffn, [])"), "error[S523]: fuse `ffn`: no nest is given");
  EXPECT_EQ(refuse_moe("fuse(ffn, [up, act]) fuse(other, [act, down])"),
            "error[S524]: fuse: `act` is already part of `ffn`; fuse that fusion itself");
  EXPECT_EQ(refuse_moe("fuse(ffn, [up, down])"),
            "error[S525]: fuse: `down` does not follow `up` in the program");
  EXPECT_EQ(refuse_moe("fuse(ffn, [up], sm=500)"), "error[S511]: 500 SMs are outside 1..132");
  EXPECT_EQ(refuse_moe("fuse(ffn, [up], warps=0)"), "error[S526]: fuse: 0 warps are outside 1..64");
}

}  // namespace leaf_test
}  // namespace harpe
