#include "schedule/named/registry.h"

#include <algorithm>

#include "ir/instantiate.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "schedule/named/mesh_plan.h"
#include "schedule/replay.h"
#include "tests/unit/schedule/world.h"

namespace harpe {
namespace {

Program make_program(std::string_view op, const Bindings& bindings = {}) {
  Checked<Program> program = instantiate(template_of(*find_operator(op)), bindings);
  HP_CHECK(program.ok(), program.ok() ? "" : render(program.error()));
  return std::move(program).value();
}

Mesh one(std::int64_t ranks) { return {"m", {{"cp", ranks}}}; }
Mesh two(std::int64_t outer, std::int64_t inner) {
  return {"m", {{"node", outer}, {"gpu", inner}}};
}

// The form of a named schedule without its header, or the refusal.
std::string form_of(std::string_view op, std::string_view name, const Program& program,
                    const Mesh& mesh) {
  const Checked<Script> script = generate_schedule(op, name, program, mesh);
  if (!script.ok()) return render(script.error());
  const Checked<NormalForm> form = replay(program, mesh, *script);
  if (!form.ok()) return render(form.error());
  const std::string text = print(*form);
  const std::size_t begin = text.find('\n') + 1;
  return text.substr(begin, text.rfind('}') - begin);
}

std::string refuse_attention(std::string_view name, const Bindings& bindings, const Mesh& mesh) {
  const Program program = make_program("attention", bindings);
  return form_of("attention", name, program, mesh);
}

TEST(NamedSchedules, know_every_operator_of_the_library) {
  for (const Operator& op : all_operators()) {
    EXPECT_FALSE(schedules_of(op.name).empty()) << op.name;
  }
}

TEST(NamedSchedules, make_a_ring_that_relays_k_and_v) {
  EXPECT_EQ(form_of("attention", "ring", make_program("attention"), one(8)),
            "  split Sq = q0:8 * q1:_\n  split Skv = k0:8 * k1:_\n"
            "  place q[q0@cp]\n  place k[k0@cp]\n  place v[k0@cp]\n  place o[q0@cp]\n"
            "  place lse[q0@cp]\n"
            "  nest fwd {\n    par q0 on cp\n    for k0 skew cp\n"
            "    stage k over cp relay by src depth 2 via ce signal event\n"
            "    stage v over cp relay by src depth 2 via ce signal event\n    leaf\n  }\n");
}

TEST(NamedSchedules, take_the_kernel_that_their_name_ends_with) {
  const Program program = make_program("attention");
  const std::string plain = form_of("attention", "ulysses", program, one(8));
  const std::string patched = form_of("attention", "ulysses+cudnn_fa_fwd", program, one(8));
  std::string expected = plain;
  expected.insert(expected.rfind("leaf") + 4, " kernel \"cudnn_fa_fwd\"");
  EXPECT_EQ(patched, expected);
  const auto script = generate_schedule("attention", "ulysses+cudnn_fa_fwd", program, one(8));
  ASSERT_TRUE(script.ok());
  EXPECT_EQ(script->name, "ulysses_cudnn_fa_fwd");
}

TEST(NamedSchedules, refuse_kernels_of_other_leaves) {
  const Program program = make_program("attention");
  EXPECT_NE(form_of("attention", "ulysses+cublaslt_gemm", program, one(8)).find("error[S503]"),
            std::string::npos);
  EXPECT_NE(form_of("attention", "ulysses+cudnn_fa", program, one(8)).find("error[S502]"),
            std::string::npos);
  // The kernel waits inside for its chunks.
  EXPECT_NE(form_of("attention", "push+cudnn_fa_fwd", program, one(8)).find("error[S50"),
            std::string::npos);
}

TEST(NamedSchedules, let_gradients_travel_with_their_blocks_unrounded) {
  EXPECT_EQ(form_of("attention_bwd", "ring", make_program("attention_bwd"), one(8)),
            "  split Sq = q0:8 * q1:_\n  split Skv = k0:8 * k1:_\n"
            "  place q[q0@cp]\n  place k[k0@cp]\n  place v[k0@cp]\n  place o[q0@cp]\n"
            "  place lse[q0@cp]\n  place do[q0@cp]\n  place delta[q0@cp]\n  place dq[q0@cp]\n"
            "  place dk[k0@cp]\n  place dv[k0@cp]\n"
            "  nest pre {\n    par q0 on cp\n    leaf\n  }\n"
            "  nest bwd {\n    par q0 on cp\n    for k0 skew cp\n"
            "    stage k over cp relay by src depth 2 via ce signal event\n"
            "    stage v over cp relay by src depth 2 via ce signal event\n"
            "    drain dk over cp relay by src depth 2 wire f32 via ce signal event\n"
            "    drain dv over cp relay by src depth 2 wire f32 via ce signal event\n"
            "    leaf\n  }\n");
}

TEST(NamedSchedules, see_all_mesh_axes_as_one_level_where_they_need_one) {
  EXPECT_EQ(
      form_of("gemm_rs", "ring", make_program("gemm_rs"), two(2, 3)),
      "  split M = m0:6 * m1:_\n  split K = k0:6 * k1:_\n"
      "  place a[k0@(node, gpu)]\n  place b[k0@(node, gpu)]\n  place c[m0@(node, gpu)]\n"
      "  nest mm {\n    par k0 on (node, gpu)\n    for m0 skew (node, gpu) + 1\n"
      "    drain c over (node, gpu) relay by src depth 2 via ce signal event\n    leaf\n  }\n");
}

TEST(NamedSchedules, factor_one_mesh_axis_where_they_need_two) {
  const std::string usp = form_of("attention", "usp", make_program("attention"), one(8));
  EXPECT_EQ(usp.substr(0, usp.find("  place")),
            "  refine cp = cp_0:4 * cp_1:2\n  split Sq = q0:4 * q1:2 * q2:_\n"
            "  split Skv = k0:4 * k1:2 * k2:_\n  split Hkv = h0:2 * h1:_\n");
  const std::string ring = form_of("attention", "double_ring", make_program("attention"), one(6));
  EXPECT_EQ(ring.substr(0, ring.find("  split")), "  refine cp = cp_0:2 * cp_1:3\n");
}

TEST(NamedSchedules, share_query_heads_where_there_are_too_few_kv_heads) {
  const Program program =
      make_program("attention", {{"heads", std::int64_t{16}}, {"kv_heads", std::int64_t{2}}});
  const std::string form = form_of("attention", "ulysses", program, one(8));
  EXPECT_NE(form.find("  refine cp = cp_0:2 * cp_1:4\n"), std::string::npos) << form;
  EXPECT_NE(form.find("    par h0 on cp_0\n    par g0 on cp_1\n"), std::string::npos) << form;
  EXPECT_NE(form.find("  place q[q0@(cp_0, cp_1)]\n"), std::string::npos) << form;
}

TEST(NamedSchedules, take_uneven_head_counts) {
  const Program program = make_program("attention", {{"heads", std::int64_t{12}}});
  const std::string form = form_of("attention", "ulysses", program, one(8));
  EXPECT_NE(form.find("  split Hkv = h0:8 * h1:_\n"), std::string::npos) << form;
}

TEST(NamedSchedules, push_in_chunks_that_the_kernel_waits_for) {
  // 32 MiB per rank.
  const Program large = make_program(
      "ag_gemm", {{"m", std::int64_t{16384}}, {"n", std::int64_t{512}}, {"k", std::int64_t{4096}}});
  EXPECT_EQ(form_of("ag_gemm", "push", large, one(4)),
            "  split M = m0:4 * m1:4 * m2:_\n  split N = n0:4 * n1:_\n"
            "  place a[m0@cp]\n  place b[n0@cp]\n  place c[n0@cp]\n"
            "  nest mm {\n    par n0 on cp\n"
            "    stage a over cp direct by src grain m1 via ce signal flag\n"
            "    leaf chunk m1 order skew(m0, cp)\n  }\n  fuse mm_fused = mm persistent\n");
  const std::string small = form_of("ag_gemm", "push", make_program("ag_gemm"), one(4));
  EXPECT_NE(small.find("split M = m0:4 * m1:1 * m2:_"), std::string::npos) << small;
}

// Of 640 rows two chunks would fill six tiles of 128 rows, where one fills five.
TEST(NamedSchedules, fuse_as_many_chunks_as_fill_tiles) {
  const auto chunks = [](std::int64_t rows, std::int64_t columns) {
    const Program program =
        make_program("ag_gemm", {{"m", 2 * rows}, {"n", 2 * columns}, {"k", std::int64_t{4096}}});
    const std::string form = form_of("ag_gemm", "fused", program, one(2));
    return form.substr(form.find("m1:"), std::string_view("m1:1").size());
  };
  EXPECT_EQ(chunks(1024, 1024), "m1:4");
  EXPECT_EQ(chunks(640, 1024), "m1:1");
  EXPECT_EQ(chunks(768, 1024), "m1:3");
  EXPECT_EQ(chunks(1024, 4096), "m1:1") << "all rows arrive during the rank's own ones";
}

TEST(NamedSchedules, push_sums_out_of_one_kernel) {
  EXPECT_EQ(form_of("gemm_rs", "push", make_program("gemm_rs"), one(4)),
            "  split M = m0:4 * m1:_\n  split N = n0:1 * n1:_\n  split K = k0:4 * k1:_\n"
            "  place a[k0@cp]\n  place b[k0@cp]\n  place c[m0@cp]\n"
            "  nest mm {\n    par k0 on cp\n"
            "    drain c over cp direct by src via sm signal counter\n"
            "    leaf chunk n0 order skew(m0, cp)\n  }\n  fuse mm_fused = mm persistent\n");
}

// Where a rank's block is more than a GPU computes at once and its bands are of equal widths.
TEST(NamedSchedules, push_sums_of_large_blocks_in_two_bands) {
  const auto has_bands = [](std::string_view op, std::string_view name, std::int64_t m,
                            std::int64_t n) {
    const Program program = make_program(op, {{"m", m}, {"n", n}, {"k", std::int64_t{512}}});
    const std::string form = form_of(op, name, program, one(2));
    const bool chunk = form.find(op == "gemm_rs" ? "n0:2 * n1:_" : "n1:2") != std::string::npos;
    EXPECT_EQ(form.find(" grain n") != std::string::npos, chunk) << form;
    return chunk;
  };
  EXPECT_TRUE(has_bands("gemm_rs", "push", 1024, 4096));
  EXPECT_FALSE(has_bands("gemm_rs", "push", 896, 4096));
  EXPECT_FALSE(has_bands("gemm_rs", "push", 2048, 4096 + 128));
  EXPECT_TRUE(has_bands("gemm_ar", "push_n", 1024, 4096));
  EXPECT_FALSE(has_bands("gemm_ar", "push_n", 896, 4096));
  EXPECT_FALSE(has_bands("gemm_ar", "push_n", 2048, 11008)) << "86 tiles, for four bands";
  EXPECT_TRUE(has_bands("gemm_rs", "push", 2048, 11008)) << "43 tiles each";
}

TEST(NamedSchedules, refuse_with_the_numbers_and_what_does_apply) {
  const std::int64_t four = 4;
  EXPECT_EQ(refuse_attention("ulysses", {{"heads", four}}, one(8)),
            "error[S611]: `ulysses` needs at least one head per rank: 4 heads on 8 ranks; try "
            "`allgather`, `ring`, `usp`");
  EXPECT_EQ(
      refuse_attention("ulysses", {{"heads", std::int64_t{6}}, {"kv_heads", std::int64_t{2}}},
                       one(5)),
      "error[S612]: `ulysses` cannot spread 2 KV heads of 3 query heads each over 5 ranks: no two "
      "factors of 5 fit; try `allgather`, `ring`, `usp`");
  EXPECT_EQ(refuse_attention("zigzag_ring", {}, one(8)),
            "error[S614]: `zigzag_ring` balances a causal mask, and the statement has none; try "
            "`allgather`, `ring`, `ulysses`");
  EXPECT_EQ(refuse_attention("zigzag_ring", {{"causal", Name{"true"}}, {"seq", std::int64_t{15}}},
                             one(8)),
            "error[S613]: `zigzag_ring` needs two blocks of positions per rank: 15 positions on 8 "
            "ranks; try `allgather`, `ring`, `ulysses`");
  EXPECT_EQ(refuse_attention("mercury_novel8", {}, one(7)),
            "error[S615]: `mercury_novel8` needs 2 mesh axes of at least 2 ranks, and `cp:7` gives "
            "none; try `allgather`, `ring`, `ulysses`");
  EXPECT_EQ(
      refuse_attention("mercury_best_latency", {}, two(2, 3)),
      "error[S615]: `mercury_best_latency` needs 3 mesh axes of at least 2 ranks, and `node:2, "
      "gpu:3` gives none; try `allgather`, `ring`, `ulysses`");
  EXPECT_EQ(
      form_of("gemm_ar", "ring", make_program("gemm_ar"), one(8)),
      "error[S616]: `ring` does not apply to `gemm_ar`: a travelling sum ends at one rank, and "
      "the result ends at all; try `bulk`, `fetch`, `push_n`");
  EXPECT_EQ(form_of("gemm_ar_norm", "scattered", make_program("gemm_ar"), one(8)),
            "error[S603]: program `gemm_ar` is not a nest of one `matmul` statement with a [m, k] "
            "and b [k, n], and a nest of one `add_rms_norm` statement of its result; write a "
            "schedule file instead");
}

TEST(NamedSchedules, refuse_names_and_programs_they_do_not_know) {
  const Program attention = make_program("attention");
  EXPECT_EQ(
      form_of("gemm_rs", "rings", make_program("gemm_rs"), one(2)),
      "error[S601]: operator `gemm_rs` has no schedule called `rings` (did you mean `ring`?); it "
      "has `bulk`, `ring`, `fetch`, `push`, `pull`, `grid2d` and `hierarchical`");
  EXPECT_EQ(form_of("gem", "ring", attention, one(2)),
            "error[S602]: there are no named schedules for operator `gem` (did you mean `gemm`?); "
            "write a schedule file instead");
  EXPECT_EQ(
      form_of("gemm", "ring", attention, one(2)),
      "error[S603]: program `attention` is not one nest of one `matmul` statement with a [m, k] "
      "and b [k, n]; write a schedule file instead");
  EXPECT_EQ(form_of("attention", "ring", make_program("gemm"), one(2)),
            "error[S603]: program `gemm` is not one nest of one `attn_fwd` or `attn_bwd` statement "
            "with q [batch, queries, heads, dim] and k [batch, keys, kv heads, dim], and nests of "
            "queries alone; write a schedule file instead");
}

TEST(NamedSchedules, find_buffers_and_axes_by_position) {
  const auto* program = find_item<Program>(example_file(), "gemm");  // A, B, C
  ASSERT_NE(program, nullptr);
  const Checked<Script> script = generate_schedule("ag_gemm", "ring", *program, one(8));
  ASSERT_TRUE(script.ok()) << render(script.error());
  Checked<NormalForm> form = replay(*program, one(8), *script);
  ASSERT_TRUE(form.ok()) << render(form.error());
  const auto* expected = find_item<NormalForm>(example_file(), "ag_ring");
  EXPECT_EQ(form->splits, expected->splits);
  EXPECT_EQ(form->places[0].at[0].digit, "m0");
  EXPECT_EQ(form->nests[0].items.size(), expected->nests[0].items.size());
}

TEST(Auto, follows_its_rule) {
  const auto name = [](const Bindings& bindings, std::int64_t ranks) {
    return choose_auto("attention", make_program("attention", bindings), one(ranks))->name;
  };
  EXPECT_EQ(name({}, 8), "allgather");
  EXPECT_EQ(name({{"causal", Name{"true"}}}, 8), "zigzag_ring");
  EXPECT_EQ(name({{"causal", Name{"true"}}, {"seq", std::int64_t{15}}}, 8), "allgather");
  EXPECT_EQ(name({{"seq", std::int64_t{1}}, {"kv_seq", std::int64_t{64}}}, 8), "tree");
  const auto backward = [](const Bindings& bindings) {
    return choose_auto("attention_bwd", make_program("attention_bwd", bindings), one(8))->name;
  };
  EXPECT_EQ(backward({}), "allgather");
  EXPECT_EQ(backward({{"causal", Name{"true"}}}), "zigzag_ring");
  EXPECT_EQ(backward({{"seq", std::int64_t{1}}, {"kv_seq", std::int64_t{64}}}), "allgather");
  EXPECT_EQ(generate_schedule("gemm_ar", "auto", make_program("gemm_ar"), one(3))->name, "bulk");
  EXPECT_EQ(generate_schedule("gemm_rs", "auto", make_program("gemm_rs"), one(3))->name, "ring");
}

TEST(MeshPlan, deals_whole_axes_before_it_factors_one) {
  MeshPlan plan(Mesh{"m", {{"a", 2}, {"b", 6}}});
  const auto cut = plan.cut(plan.all(), 4);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->first.ranks, 4);
  EXPECT_EQ(cut->second.ranks, 3);
  ASSERT_EQ(plan.refinements().size(), 1U);
  EXPECT_EQ(plan.refinements()[0].axis, "b");
  EXPECT_EQ(plan.refinements()[0].factors, (std::vector<std::int64_t>{2, 3}));
}

TEST(MeshPlan, cuts_only_where_factors_allow) {
  MeshPlan plan(Mesh{"m", {{"a", 2}, {"b", 6}}});
  EXPECT_FALSE(plan.cut(plan.all(), 3).has_value());
  EXPECT_TRUE(plan.refinements().empty());
  EXPECT_EQ(smaller_factor(8), 2);
  EXPECT_EQ(smaller_factor(36), 6);
  EXPECT_EQ(smaller_factor(7), 1);
  EXPECT_EQ(smaller_factor(1), 1);
}

}  // namespace
}  // namespace harpe
