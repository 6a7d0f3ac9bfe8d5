#include <gtest/gtest.h>

#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace {

struct Refusal {
  std::string text;
  std::string rendered;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const auto& [text, rendered] : refusals) {
    const Checked<Item> item = parse_text(text);
    EXPECT_EQ(item.ok() ? "accepted" : render(item.error()), rendered) << text;
  }
}

const std::vector<Refusal> kMeshesAndTopologies = {
    {"mesh two = node:2 gpu:8 x", "error[T001]: 1:19: expected the end of the text, found `gpu`"},
    {"mesh two = node:2, gpu", "error[T001]: 1:23: expected `:`, found the end of the text"},
    {"mesh two = node:2, node:4",
     "error[M103]: 1:1: mesh `node=2,node=4` has two axes called `node`; rename one of them"},
    {"mesh two = node:0",
     "error[M102]: 1:1: mesh `node=0`: the size of axis `node` is 0, outside 1 .. 65536"},
    {"mesh two = node:70000",
     "error[M102]: 1:1: mesh `node=70000`: the size of axis `node` is 70000, outside 1 .. 65536"},
    {"mesh = node:2", "error[T001]: 1:6: expected the mesh's name, found `=`"},
    {"mesh two = node:2.5", "error[T001]: 1:17: expected the axis' size, an integer, found `2.5`"},
    {"mesh two = node:99999999999999999999",
     "error[T003]: 1:17: number `99999999999999999999` does not fit 64 bits"},
    {"topo t { gpu h200 sm=132 sm=1 }",
     "error[T006]: 1:26: `sm` is given twice for `gpu h200`; drop one of the two"},
    {"topo t { gpu h200 sm= }",
     "error[T001]: 1:23: expected a number, a string or a name, found `}`"},
    {"topo t { gpu h200",
     "error[T001]: 1:18: expected `gpu`, `level` or `}`, found the end of the text"},
};

TEST(TextRefusals, a_malformed_mesh_and_topology_is_refused_where_it_goes_wrong) {
  expect_refusals(kMeshesAndTopologies);
}

const std::vector<Refusal> kPrograms = {
    {"program p { axis M = 8 axis M = 9 }",
     "error[P001]: 1:29: axis `M` is declared twice; rename one of them"},
    {"program p { axis M = 8 buffer A : bf61[M] in }",
     "error[P002]: 1:35: buffer `A`: no dtype is called `bf61` (did you mean `bf16`?)"},
    {"program p { axis M = 8 buffer A : bf16[M] inn }",
     "error[T005]: 1:43: unknown role `inn` (did you mean `in`?); one of `in` `out` `temp`"},
    {"program p { axis M = 8 buffer A : bf16[M] inout }",
     "error[P027]: 1:43: buffer `A` is `inout`, but a value is either given or computed; declare "
     "what is given `in` and the result `out`; to add to what is given, sum into a `temp` buffer "
     "`t` and write `y = add(x, t)`"},
    {"program p { axis M = 8 buffer A : bf16[N] in }",
     "error[P002]: 1:40: buffer `A`: no axis is called `N` (did you mean `M`?)"},
    {"program p { axis M = 8 buffer A : bf16[M, M] in }",
     "error[P003]: 1:40: buffer `A`: axis `M` occurs twice"},
    {"program p { axis M = 8 buffer A : bf16[(M, ] in }",
     "error[T001]: 1:44: expected an axis, found `]`"},
    {"program p { axis M = 8 buffer A : bf16[M,] in }",
     "error[T001]: 1:42: expected an axis, `(` or an extent, found `]`"},
    {"program p { axis M = 8 grain 0 }", "error[P020]: 1:18: axis `M`: its grain is 0, below 1"},
    {"program p { axis M = 0 }",
     "error[P103]: 1:18: axis `M`: size 0 is outside 1 .. 1099511627776"},
    {"program p { axis M = 2.5 }",
     "error[P010]: 1:22: axis `M`: `2.5` is not an integer or an integer parameter"},
    {"program p { axis M = 2* }",
     "error[T001]: 1:25: expected a number, a string or a name, found `}`"},
    {"program p { axis M = mm }", "error[P002]: 1:22: axis `M`: no parameter is called `mm`"},
    {"program p { axis M = dyn 8 of E }",
     "error[P002]: 1:31: axis `M`: no axis is called `E` (did you mean `M`?)"},
    {"program p { axis M = 8 param m = 3 }",
     "error[T001]: 1:24: expected `axis`, `buffer`, `route`, `leaf`, `given`, `nest` or `}`, found "
     "`param`"},
    {"program p { param m : boolean = 3 }",
     "error[T005]: 1:23: unknown parameter kind `boolean`; one of `bool` `dtype` `float`"},
    {"program p { param m : bool = 3 }",
     "error[P102]: 1:19: parameter `m` takes `true` or `false`, found `3`"},
    {"program p { param m = sequ }",
     "error[P002]: 1:23: parameter `m`: no earlier parameter is called `sequ`"},
    {"program p { param seq = 1 param kv = sqe }",
     "error[P002]: 1:38: parameter `kv`: no earlier parameter is called `sqe` (did you mean "
     "`seq`?)"},
    {"program p { param seq : bool = true param kv = seq }",
     "error[P009]: 1:48: parameter `kv`: parameter `seq` is a bool, where an integer is needed"},
    {"program p { param seq : dtype = bf61 }",
     "error[P102]: 1:19: parameter `seq` takes a dtype (bf16, f16, f32 or f64), found `bf61` (did "
     "you "
     "mean `bf16`?)"},
    {"program p { param m = 1 param m = 2 }",
     "error[P001]: 1:31: parameter `m` is declared twice; rename one of them"},
    {"program p { param m : bool = true axis M = m }",
     "error[P009]: 1:44: axis `M`: parameter `m` is a bool, where an integer is needed"},
    {"program p { param m = 1 axis M = 2 buffer A : m[M] in }",
     "error[P009]: 1:47: buffer `A`: parameter `m` is an integer, where a dtype is needed"},
    {"program p { axis M = 8 leaf f flops 2*M flops 3 }",
     "error[T006]: 1:41: `flops` is given twice for leaf `f`; drop one of the two"},
    {"program p { axis M = 8 leaf f flops 2*N }",
     "error[P002]: 1:39: leaf `f`: no axis or parameter is called `N` (did you mean `M`?)"},
    {"program p { axis M = 8 leaf f kernel x }",
     "error[T001]: 1:38: expected the kernel's name in quotes, found `x`"},
    {"program p { axis M = 8 nest n over (M, N) { } }",
     "error[P002]: 1:40: nest `n`: no axis is called `N` (did you mean `M`?)"},
    {"program p { axis M = 8 nest n over (M) whole (M) { } }",
     "error[P003]: 1:37: nest `n`: axis `M` occurs twice"},
    {"program p { axis M = 8 axis N = 8 nest n over (M) seq (N) { } }",
     "error[P005]: 1:56: nest `n`: `seq` names axis `N`, which is not in `over`; add it to "
     "`over`"},
    {"program p { axis M = 8 nest n over (M) { } nest n over (M) { } }",
     "error[P001]: 1:49: nest `n` is declared twice; rename one of them"},
    {"program p { axis M = 8 nest n over (M) { } axis N = 3 }",
     "error[T001]: 1:44: expected `nest` or `}`, found `axis`"},
    {"program p { axis M = 8 nest n over M { } }", "error[T001]: 1:36: expected `(`, found `M`"},
    {"program p { axis M = 8 buffer A : f32[M] in nest n over (M) { A = copy(A) } }",
     "error[P014]: 1:63: nest `n` writes `A`, whose role is `in`; declare it `out` or `temp`"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "copy(B) } }",
     "error[P002]: 1:94: nest `n`: no buffer is called `B` (did you mean `A`?)"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C smu= "
     "copy(A) } }",
     "error[T005]: 1:87: unknown monoid `smu` (did you mean `sum`?); one of `sum` `max` `lse`"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[M, N] in buffer C : f32[M] out nest n "
     "over (M) { C sum= f(A) } }",
     "error[P004]: 1:99: nest `n`: `A` is indexed by axis `N`, which is not an axis of the nest; "
     "add it to `over` or `whole`, or rename it in the access"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[M] in buffer C : f32[N] out nest n over "
     "(N) { C = f(A[M=R.M]) } }",
     "error[P002]: 1:106: nest `n`: no route is called `R`"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[M] in buffer C : f32[N] out nest n over "
     "(N) { C = f(A[X=N]) } }",
     "error[P012]: 1:104: nest `n`: `A` has no axis `X` to rename (did you mean `M`?)"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[M, N] in buffer C : f32[N] out nest n "
     "over (N) { C = f(A[M=N]) } }",
     "error[P003]: 1:109: nest `n`, `A`: axis `N` occurs twice"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[N] in buffer C : f32[M] out route R : (M) "
     "<- (N) by A nest n over (M) { C = f(A[N=R.K]) } }",
     "error[P013]: 1:134: nest `n`: route `R` has no axis `K` (did you mean `M`?)"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[N] in route R : (M) <- (N) by B }",
     "error[P002]: 1:80: route `R`: no buffer is called `B` (did you mean `A`?)"},
    {"program p { axis M = 8 axis N = 2 buffer A : f32[N] in route R : (M) <- (N) by A drop lod "
     "f(1) }",
     "error[T001]: 1:87: expected `axis`, `buffer`, `route`, `leaf`, `given`, `nest` or `}`, found "
     "`lod`"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C lse= "
     "f(A) } }",
     "error[P006]: 1:85: nest `n`: `lse=` needs a pair of targets (o, l): found 1; write `(o, l) "
     "lse= …`"},
    {"program p { axis M = 8 axis D = 8 buffer A : f32[M, D] in buffer C : f32[M] out buffer L : "
     "f32[D] out nest n over (M, D) { (C, L) lse= f(A) } }",
     "error[P006]: 1:128: nest `n`: `lse=` needs a pair of targets (o, l): axis `D` of `L` is "
     "not one of `C`; write `(o, l) lse= …`"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A) where casual(M, M) } }",
     "error[P002]: 1:100: nest `n`: no mask is called `casual` (did you mean `causal`?)"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A) where causal(M) } }",
     "error[P007]: 1:100: nest `n`: mask `causal` takes 2 arguments, found 1"},
    {"program p { axis M = 8 axis K = 4 buffer A : f32[M] in buffer C : f32[M] out nest n over "
     "(M) { C = f(A) where causal(M, K) } }",
     "error[P008]: 1:121: nest `n`: argument 2 of mask `causal` is `K`, not an axis of the nest"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A) where causal(M, M) if c } }",
     "error[P002]: 1:116: nest `n`: no bool or integer parameter is called `c`"},
    {"program p { param c : float = 1 axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n "
     "over "
     "(M) { C = f(A) where causal(M, M) if c } }",
     "error[P009]: 1:136: nest `n`: parameter `c` is a number, where a bool or an integer is "
     "needed"},
    {"program p { axis M = 8 axis N = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M, "
     "N) { C sum= f(A) where causal(M, N) and window(N, M, 2) } }",
     "error[P023]: 1:134: nest `n`: mask `window` is on (N, M), other axes than mask `causal` "
     "beside it"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A) where window(M, M, 0) } }",
     "error[P020]: 1:85: nest `n`: the length in mask `window` is 0, below 1"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A) where window(M, M, M) } }",
     "error[P010]: 1:107: nest `n`: `M` is not a length, a whole number or an integer parameter"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A; scale=1, scale=2) } }",
     "error[T006]: 1:103: `scale` is given twice for leaf `f`; drop one of the two"},
    {"program p { axis M = 8 buffer A : f32[M] in buffer C : f32[M] out nest n over (M) { C = "
     "f(A; 2) } }",
     "error[T001]: 1:94: expected an attribute's name, found `2`"},
    {"program p { axis M = 8",
     "error[T001]: 1:23: expected `axis`, `buffer`, `route`, `leaf`, `given`, `nest` or `}`, found "
     "the "
     "end of the text"},
    {"program p { axis M = 8 given x }", "error[T001]: 1:30: expected `nest`, found `x`"},
    {"program p { axis M = 8 buffer a : f32[M] in buffer c : f32[M] out given nest n over (M) { "
     "c = copy(a) } }",
     "error[P025]: 1:91: given nest `n` names `c`, whose role is `out`"},
    {"program p { axis M = 8 leaf f flops 2*\"x\" }",
     "error[P010]: 1:29: leaf `f`: `\"x\"` is not a number, an axis or a parameter"},
};

TEST(TextRefusals, a_malformed_program_is_refused_where_it_goes_wrong) {
  expect_refusals(kPrograms);
}

const std::vector<Refusal> kForms = {
    {"commir c for p { }", "error[T001]: 1:16: expected `on`, found `{`"},
    {"commir c for p on m { splt M = m0:2 }",
     "error[T001]: 1:23: expected `refine`, `split`, `layout`, `place`, `nest`, `fuse` or `}`, "
     "found `splt`"},
    {"commir c for p on m { place A[] split M = m0:2 }",
     "error[T001]: 1:33: expected `place`, `nest`, `fuse` or `}`, found `split`"},
    {"commir c for p on m { split M = m0:2 * m0:_ }",
     "error[F103]: 1:40: digit `m0` is named twice; rename one of them"},
    {"commir c for p on m { split M = m0:2 split N = m0:2 }",
     "error[F103]: 1:48: digit `m0` is named twice; rename one of them"},
    {"commir c for p on m { split M = m0:2 split M = m1:2 }",
     "error[F102]: 1:44: axis `M` is split twice; write all its digits in one line"},
    {"commir c for p on m { split M = m0:x }",
     "error[T001]: 1:36: expected the digit's extent or `_`, found `x`"},
    {"commir c for p on m { split M = }", "error[T001]: 1:33: expected a digit's name, found `}`"},
    {"commir c for p on m { refine gpu = a:2 * a:4 }",
     "error[F108]: 1:42: mesh axis `a` is refined twice or its part has a name in use"},
    {"commir c for p on m { refine gpu = a:2 refine gpu = b:4 }",
     "error[F108]: 1:47: mesh axis `gpu` is refined twice or its part has a name in use"},
    {"commir c for p on m { layout M zigzag(m0, mh) layout M stripe(m0) }",
     "error[F113]: 1:54: `M` is laid out twice"},
    {"commir c for p on m { place A[m0@gpu] place A[] }", "error[F113]: 1:45: `A` is placed twice"},
    {"commir c for p on m { place A[m0@gpu,] }", "error[T001]: 1:38: expected a digit, found `]`"},
    {"commir c for p on m { place A[m0 gpu] }", "error[T001]: 1:34: expected `@`, found `gpu`"},
    {"commir c for p on m { place A[m0@()] }",
     "error[T001]: 1:35: expected a mesh axis, found `)`"},
    {"commir c for p on m { place A[] partial smu@tp }",
     "error[T005]: 1:41: unknown monoid `smu` (did you mean `sum`?); one of `sum` `max` `lse`"},
    {"commir c for p on m { nest n { par m0 on gpu } }",
     "error[T001]: 1:46: expected `par`, `for`, `stage`, `drain` or the nest's `leaf` line, "
     "found `}`"},
    {"commir c for p on m { nest n { leaf par m0 on gpu } }",
     "error[T001]: 1:37: expected `}`, found `par`"},
    {"commir c for p on m { nest n { leaf } nest n { leaf } }",
     "error[F113]: 1:44: `n` is scheduled twice"},
    {"commir c for p on m { nest n { for m0 skew gpu + x leaf } }",
     "error[T001]: 1:50: expected the skew's offset, an integer, found `x`"},
    {"commir c for p on m { nest n { stage A over gpu rely by src leaf } }",
     "error[T005]: 1:49: unknown movement `rely` (did you mean `relay`?); one of `bulk` `relay` "
     "`direct` `inline` `one_shot`"},
    {"commir c for p on m { nest n { stage A over gpu relay by sorce leaf } }",
     "error[T005]: 1:58: unknown side `sorce` (did you mean `src`?); one of `src` `dst`"},
    {"commir c for p on m { nest n { stage A over gpu relay via cee leaf } }",
     "error[T005]: 1:59: unknown transport `cee` (did you mean `ce`?); one of `ce` `sm` `tma` "
     "`nccl` `proxy` `ibgda` `multimem`"},
    {"commir c for p on m { nest n { stage A over gpu relay signal flg leaf } }",
     "error[T005]: 1:62: unknown signal `flg` (did you mean `flag`?); one of `event` `flag` "
     "`counter` `batched`"},
    {"commir c for p on m { nest n { stage A over gpu relay fence des leaf } }",
     "error[T005]: 1:61: unknown fence `des` (did you mean `dest`?); one of `put` `dest` `nic` "
     "`batch` `epoch` `imm`"},
    {"commir c for p on m { nest n { drain A over gpu relay wire bf17 leaf } }",
     "error[T005]: 1:60: unknown dtype `bf17` (did you mean `bf16`?); one of `f32` `f16` `bf16` "
     "`f64` `f8e4m3` `f8e5m2` `i8` `u8` `i32` `i64` `bool`"},
    {"commir c for p on m { nest n { stage A over gpu relay depth 2 by src depth 3 leaf } }",
     "error[T006]: 1:70: `depth` is given twice for the stage of `A`; drop one of the two"},
    {"commir c for p on m { nest n { stage A over gpu relay depth two leaf } }",
     "error[T001]: 1:61: expected the number of slots, found `two`"},
    {"commir c for p on m { nest n { stage A gpu relay leaf } }",
     "error[T001]: 1:40: expected `over`, found `gpu`"},
    {"commir c for p on m { nest n { leaf kernel \"a\" sm 3 kernel \"b\" } }",
     "error[T006]: 1:53: `kernel` is given twice for the leaf of nest `n`; drop one of the two"},
    {"commir c for p on m { nest n { leaf kernel gemm } }",
     "error[T001]: 1:44: expected the kernel's name in quotes, found `gemm`"},
    {"commir c for p on m { nest n { leaf order skew } }",
     "error[T001]: 1:48: expected `(`, found `}`"},
    {"commir c for p on m { nest n { leaf } fuse f = n persistent persistent }",
     "error[T006]: 1:61: `persistent` is given twice for fuse `f`; drop one of the two"},
    {"commir c for p on m { nest n { leaf } fuse f = n fuse f = n }",
     "error[F113]: 1:55: `f` is fused twice"},
    {"commir c for p on m { nest n { leaf } fuse f = n nest q { leaf } }",
     "error[T001]: 1:50: expected `fuse` or `}`, found `nest`"},
    {"commir c for p on m { nest n { leaf",
     "error[T001]: 1:36: expected `}`, found the end of the text"},
    {"commir c for p on m { nest n { leaf kernel \"a",
     "error[T004]: 1:44: string is not closed on its line; close it with `\"`"},
    {"commir c for p on m { split M = m0:2 # }",
     "error[T002]: 1:38: character `#` cannot start a token"},
    {"commir c for p on m { nest n { stage A over gpu relay dept 2 leaf } }",
     "error[T005]: 1:55: unknown attribute `dept` (did you mean `depth`?); one of `by` `depth` "
     "`grain` `wire` `via` `signal` `fence` `sm`"},
    {"commir c for p on m { nest n { leaf kernal \"x\" } }",
     "error[T005]: 1:37: unknown attribute `kernal` (did you mean `kernel`?); one of `kernel` "
     "`sm` `chunk` `order`"},
    {"commir c for p on m { nest n { leaf } fuse f = n persistant }",
     "error[T005]: 1:50: unknown attribute `persistant` (did you mean `persistent`?); one of "
     "`persistent` `sm` `warps`"},
    {"commir c for p on m { place A[] ; }",
     "error[T001]: 1:33: expected `place`, `nest`, `fuse` or `}`, found `;`"},
};

TEST(TextRefusals, a_malformed_normal_form_is_refused_where_it_goes_wrong) {
  expect_refusals(kForms);
}

TEST(TextRefusals, the_place_is_file_line_and_column) {
  Cursor cursor = Cursor::open(
                      "// a comment\ncommir c for p on m {\n  place A[m0@gpu]\n"
                      "  nest n {\n    par m0 on\n  }\n}\n",
                      "ring.cir")
                      .value();
  const Checked<NormalForm> form = parse_form(cursor);
  ASSERT_FALSE(form.ok());
  EXPECT_EQ(render(form.error()), "error[T001]: ring.cir:6:3: expected a mesh axis, found `}`");
}

TEST(TextRefusals, an_unknown_name_is_shown_where_it_stands) {
  const Checked<Item> program = parse_text(
      "program p {\n  axis Rows = 8\n  buffer x : f32[Rows] in\n  buffer y : f32[Rows] out\n"
      "  nest n over (Rows) {\n    y = copy(x)\n    y = copy(y[Rows=Rwos])\n  }\n}\n");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(render(program.error()),
            "error[P004]: 7:21: nest `n`: `y` is indexed by axis `Rwos`, which is not an axis of "
            "the nest; add it to `over` or `whole`, or rename it in the access");
}

}  // namespace
}  // namespace harpe::ir_test
