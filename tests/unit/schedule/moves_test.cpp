// stage and drain, and the attributes of moves.

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace moves_test {

constexpr std::string_view kRing =
    "tile(Sq, [8]) -> q0, q1 tile(Skv, [8]) -> k0, k1 shard(Q, q0, gpu) shard(K, k0, gpu) "
    "shard(V, k0, gpu) shard(O, q0, gpu) shard(L, q0, gpu) ";
constexpr std::string_view kLoop = "serialize(fwd, k0) shift(fwd.k0, [gpu]) ";

std::string items(std::string_view program, std::string_view mesh, const std::string& steps) {
  const std::string form = form_after(program, mesh, steps);
  const std::size_t begin = form.find(" {\n");
  return begin == std::string::npos ? form : form.substr(begin + 3);
}
std::string nest(std::string_view steps) {
  return items("attn", "one", std::string(kRing) + std::string(steps));
}
std::string refuse(std::string_view steps) {
  return refusal_of("attn", "one", std::string(kRing) + std::string(steps));
}
std::string looped(std::string_view steps) { return std::string(kLoop) + std::string(steps); }

TEST(Stage, stands_at_the_top_or_behind_the_moves_of_its_loop) {
  EXPECT_EQ(nest(looped("stage(fwd, [K, V], over=[gpu], at=k0, how=relay, by=src) "
                        "stage(fwd, Q, over=[gpu], how=bulk)")),
            "    stage Q over gpu bulk\n    for k0 skew gpu\n    stage K over gpu relay by src\n"
            "    stage V over gpu relay by src\n    leaf\n  }\n");
}

TEST(Stage, refuses_what_the_nest_does_not_read) {
  EXPECT_EQ(refuse("stage(fwd, O, over=[gpu], how=bulk)"),
            "error[S401]: stage: nest `fwd` does not read `O`");
  EXPECT_EQ(refuse("stage(fwd, P, over=[gpu], how=bulk)"),
            "error[S012]: the program has no buffer called `P` (did you mean `Q`?)");
  EXPECT_EQ(refuse("stage(fwd, [], over=[gpu], how=bulk)"), "error[S025]: no buffer is given");
  EXPECT_EQ(
      refuse("stage(fwd, K, over=[gpu], at=k0, how=bulk)"),
      "error[S019]: `k0` is not a loop of nest `fwd`, whose loops are nothing; serialize it first");
  EXPECT_EQ(refuse("stage(fwd, K, over=[gpu], how=bulk) stage(fwd, K, over=[gpu], how=direct)"),
            "error[S026]: nest `fwd` already has a stage of `K` over mesh axis `gpu`");
  EXPECT_EQ(refuse("stage(fwd, [K, K], over=[gpu], how=bulk)"),
            "error[S026]: nest `fwd` already has a stage of `K` over mesh axis `gpu`");
}

TEST(Stage, relays_only_what_its_loop_rotates) {
  const std::string tail =
      "; shift the loop and place the stage in it with `at=`, or choose "
      "`how=direct`";
  EXPECT_EQ(
      refuse("stage(fwd, K, over=[gpu], how=relay)"),
      "error[S402]: stage: the relay of `K` over `gpu` needs a loop around it: `for … skew gpu`" +
          tail);
  EXPECT_EQ(
      refuse("serialize(fwd, k0) stage(fwd, K, over=[gpu], at=k0, how=relay)"),
      "error[S402]: stage: the relay of `K` over `gpu` needs `for k0` to be skewed by `gpu`, and "
      "it is not skewed" +
          tail);
  EXPECT_EQ(
      refuse(looped("reverse(fwd.k0) stage(fwd, K, over=[gpu], at=k0, how=relay)")),
      "error[S402]: stage: the relay of `K` over `gpu` needs `for k0` to run forwards, and it is "
      "reversed" +
          tail);
  EXPECT_EQ(
      refuse("tile(k1, [16]) -> k2, k3 serialize(fwd, k2) shift(fwd.k2, [gpu]) "
             "stage(fwd, K, over=[gpu], at=k2, how=relay)"),
      "error[S402]: stage: the relay of `K` over `gpu` needs `for k2` to have one step per rank: "
      "16 steps on 8 ranks" +
          tail);
  EXPECT_EQ(
      refuse(looped("stage(fwd, Q, over=[gpu], at=k0, how=relay)")),
      "error[S402]: stage: the relay of `Q` over `gpu` needs `k0` to be a digit of `Q`" + tail);
  EXPECT_EQ(
      refusal_of("attn", "two",
                 "tile(Skv, [2]) -> k0, k1 serialize(fwd, k0) shift(fwd.k0, [node]) "
                 "stage(fwd, K, over=[gpu], at=k0, how=relay)"),
      "error[S402]: stage: the relay of `K` over `gpu` needs `for k0` to be skewed by `gpu`, and "
      "it is skewed by `node`" +
          tail);
}

TEST(Stage, reads_in_place_only_where_a_kernel_can) {
  EXPECT_EQ(refuse("stage(fwd, K, over=[gpu], how=inline)"),
            "error[S403]: stage: leaf `attn_fwd` cannot read `K` in place on another rank; choose "
            "`how=direct`");
  EXPECT_EQ(
      refusal_of("gemm", "one",
                 "patch(mm, kernel=\"gemm_sm90\") stage(mm, A, over=[gpu], how=inline)"),
      "error[S403]: stage: kernel `gemm_sm90` cannot read `A` in place on another rank; choose "
      "`how=direct`");
  EXPECT_EQ(
      refusal_of("gemm", "one", "stage(mm, A, over=[gpu], how=inline, by=src)"),
      "error[S404]: stage: `A` is read in place, so its source cannot start the transfer; drop "
      "`by=src`");
  EXPECT_EQ(items("gemm", "one", "stage(mm, A, over=[gpu], how=inline, by=dst)"),
            "    stage A over gpu inline by dst\n    leaf\n  }\n");
}

constexpr std::string_view kReduce =
    "tile(M, [8]) -> m0, m1 tile(K, [8]) -> c0, c1 shard(A, c0, gpu) shard(B, c0, gpu) "
    "shard(C, m0, gpu) parallelize(mm, c0, gpu) serialize(mm, m0) shift(mm.m0, [gpu], 1) ";

TEST(Drain, takes_sums_round_to_their_owner) {
  EXPECT_EQ(
      items("gemm", "one",
            std::string(kReduce) + "drain(mm, C, over=[gpu], at=m0, how=relay, "
                                   "by=src)"),
      "    par c0 on gpu\n    for m0 skew gpu + 1\n    drain C over gpu relay by src\n    leaf\n"
      "  }\n");
}

TEST(Drain, refuses_what_the_nest_does_not_write) {
  EXPECT_EQ(refuse("drain(fwd, K, over=[gpu], how=bulk)"),
            "error[S411]: drain: nest `fwd` does not write `K`");
  EXPECT_EQ(refuse("drain(fwd, O, over=[gpu], how=inline)"),
            "error[S415]: drain: no leaf kernel writes `O` in place on another rank; choose "
            "`how=direct`");
  EXPECT_EQ(refuse("drain(fwd, O, over=[gpu], how=bulk) drain(fwd, [L, O], over=[gpu], how=bulk)"),
            "error[S026]: nest `fwd` already has a drain of `O` over mesh axis `gpu`");
}

TEST(Drain, relays_only_disjoint_sums_to_one_owner) {
  const std::string direct = "choose `how=direct`";
  EXPECT_EQ(
      refusal_of("gemm", "one", std::string(kReduce) + "drain(mm, C, over=[gpu], how=relay)"),
      "error[S412]: drain: the relay of `C` over `gpu` needs a loop around it: `for … skew gpu`; "
      "shift the loop and place the drain in it with `at=`, or " +
          direct);
  EXPECT_EQ(
      refusal_of("gemm", "one",
                 "tile(M, [8]) -> m0, m1 shard(C, m0, gpu) serialize(mm, m0) "
                 "shift(mm.m0, [gpu]) drain(mm, C, over=[gpu], at=m0, how=relay)"),
      "error[S413]: drain: the relay of `C` over `gpu` would add the same contributions twice "
      "along `gpu`: no par runs over it; parallelize a reduced digit over the axis first, or " +
          direct);
  EXPECT_EQ(
      refusal_of("gemm", "one",
                 "tile(M, [8]) -> m0, m1 tile(N, [8]) -> n0, n1 shard(C, m0, gpu) "
                 "parallelize(mm, n0, gpu) serialize(mm, m0) shift(mm.m0, [gpu]) "
                 "drain(mm, C, over=[gpu], at=m0, how=relay)"),
      "error[S413]: drain: the relay of `C` over `gpu` would add the same contributions twice "
      "along `gpu`: `par n0` is a digit of `C`; parallelize a reduced digit over the axis first, "
      "or " +
          direct);
  EXPECT_EQ(refusal_of("gemm", "one",
                       "tile(M, [8]) -> m0, m1 tile(K, [8]) -> c0, c1 parallelize(mm, c0, gpu) "
                       "serialize(mm, m0) shift(mm.m0, [gpu]) "
                       "drain(mm, C, over=[gpu], at=m0, how=relay)"),
            "error[S414]: drain: the relay of `C` over `gpu` ends nowhere: `C` is replicated along "
            "`gpu`; shard the buffer over the axis first, or choose `how=bulk`");
}

constexpr std::string_view kStaged =
    "serialize(fwd, k0) shift(fwd.k0, [gpu]) "
    "stage(fwd, [K, V], over=[gpu], at=k0, how=relay, by=src) "
    "stage(fwd, Q, over=[gpu], how=direct) drain(fwd, [O, L], over=[gpu], how=bulk) ";
std::string staged(std::string_view steps) { return std::string(kStaged) + std::string(steps); }

TEST(Attributes, are_set_on_the_moves_they_name) {
  EXPECT_EQ(
      nest(staged("pipeline(fwd, [K, V], over=[gpu], depth=2) bind(fwd, K, over=[gpu], via=proxy) "
                  "signal(fwd, K, over=[gpu], kind=flag, fence=dest) "
                  "compress(fwd, V, over=[gpu], wire=f8e4m3) chunk(fwd, Q, over=[gpu], by=q0) "
                  "bind(fwd, Q, over=[gpu], via=sm) budget(fwd, Q, over=[gpu], sm=16)")),
      "    stage Q over gpu direct grain q0 via sm sm 16\n    drain O over gpu bulk\n"
      "    drain L over gpu bulk\n    for k0 skew gpu\n"
      "    stage K over gpu relay by src depth 2 via proxy signal flag fence dest\n"
      "    stage V over gpu relay by src depth 2 wire f8e4m3\n    leaf\n  }\n");
}

TEST(Attributes, refuse_moves_that_are_not_there) {
  EXPECT_EQ(refuse(staged("pipeline(fwd, [K, O], over=[node], depth=2)")),
            "error[S014]: the mesh has no axis called `node`");
  EXPECT_EQ(refuse("pipeline(fwd, K, over=[gpu], depth=2)"),
            "error[S020]: nest `fwd` has no stage or drain of `K` over `gpu`; it has nothing");
  EXPECT_EQ(refuse("stage(fwd, V, over=[gpu], how=bulk) "
                   "bind(fwd, V, over=[gpu], move=drain, via=sm)"),
            "error[S020]: nest `fwd` has no drain of `V` over `gpu`; it has `stage V over gpu`");
  EXPECT_EQ(refuse(staged("signal(fwd, [], over=[gpu], kind=flag)")),
            "error[S025]: no buffer is given");
}

TEST(Attributes, tell_a_stage_from_a_drain_of_one_buffer) {
  EXPECT_EQ(items("scan", "one",
                  "stage(third, s, over=[gpu], how=direct) drain(third, s, over=[gpu], how=direct) "
                  "pipeline(third, s, over=[gpu], move=drain, depth=3)")
                    .find("    stage s over gpu direct\n    drain s over gpu direct depth 3\n") !=
                std::string::npos,
            true);
}

TEST(Pipeline, refuses_depths_that_mean_nothing) {
  EXPECT_EQ(refuse(staged("pipeline(fwd, Q, over=[gpu], depth=0)")),
            "error[S421]: pipeline: depth 0 is outside 1..64");
  EXPECT_EQ(refuse(staged("pipeline(fwd, Q, over=[gpu], depth=65)")),
            "error[S421]: pipeline: depth 65 is outside 1..64");
  EXPECT_EQ(refuse(staged("pipeline(fwd, K, over=[gpu], depth=1)")),
            "error[S422]: pipeline: the relay of `K` over `gpu` has depth 1 and needs at least 2");
  EXPECT_EQ(refusal_of("gemm", "one",
                       "stage(mm, A, over=[gpu], how=inline) pipeline(mm, A, over=[gpu], depth=2)"),
            "error[S423]: pipeline: `A` over `gpu` is read in place and has no slots");
  EXPECT_EQ(
      refuse(staged("pipeline(fwd, K, over=[gpu], depth=2) "
                    "pipeline(fwd, K, over=[gpu], depth=2)")),
      "error[S008]: nothing would change: the depth of `K` over `gpu` already has 2; drop the "
      "step");
}

TEST(Chunk, cuts_a_move_along_a_digit_it_carries_whole) {
  EXPECT_EQ(refuse(staged("chunk(fwd, Q, over=[gpu], by=k0)")),
            "error[S431]: chunk: `k0` is not a digit of `Q`, which has `q0` and `q1`");
  EXPECT_EQ(
      refuse(staged("chunk(fwd, K, over=[gpu], by=k0)")),
      "error[S432]: chunk: the move of `K` over `gpu` carries one value of `k0` already, by a "
      "`for` of nest `fwd`; choose a digit that is inside the leaf");
  EXPECT_EQ(refuse(staged("chunk(fwd, K, over=[gpu], by=k1)")),
            "error[S018]: digit `k1` is the remainder of `Skv`, of one block; tile the axis with "
            "one factor more");
  EXPECT_EQ(refusal_of("gemm", "one",
                       "tile(M, [8]) -> m0, m1 stage(mm, A, over=[gpu], how=inline) "
                       "chunk(mm, A, over=[gpu], by=m0)"),
            "error[S433]: chunk: `A` over `gpu` is read in place and has no transfers");
  EXPECT_EQ(
      refuse(staged("chunk(fwd, Q, over=[gpu], by=q0) chunk(fwd, Q, over=[gpu], by=q0)")),
      "error[S008]: nothing would change: the grain of `Q` over `gpu` already has `q0`; drop the "
      "step");
}

TEST(Chunk, cuts_a_routed_move_along_the_iteration_space) {
  EXPECT_EQ(refusal_of("moe", "one",
                       "tile(E, [8, 4]) -> e0, e1, e2 parallelize(dispatch, e0, gpu) "
                       "stage(dispatch, X, over=[gpu], how=direct, by=src) "
                       "chunk(dispatch, X, over=[gpu], by=e1)"),
            "accepted");
  EXPECT_EQ(refusal_of("moe", "one", "tile(E, [8, 4]) -> e0, e1, e2 parallelize(combine, e0, gpu)"),
            "accepted");
}

TEST(Bind, follows_the_capability_matrix) {
  EXPECT_EQ(
      refusal_of("gemm", "one",
                 "stage(mm, A, over=[gpu], how=inline) bind(mm, A, over=[gpu], via=ce)"),
      "error[S451]: bind: `A` over `gpu` is read in place, which `ce` cannot do; bind it via `sm` "
      "or `tma`");
  EXPECT_EQ(
      refuse(staged("bind(fwd, Q, over=[gpu], via=proxy)")),
      "error[S452]: bind: only the source can start a transfer via `proxy`, and `Q` over `gpu` is "
      "pulled; stage it with `by=src`");
  EXPECT_EQ(
      refuse(staged("bind(fwd, K, over=[gpu], via=nccl)")),
      "error[S453]: bind: all ranks start an nccl transfer together, and `K` over `gpu` is by "
      "`src`; drop `by=`");
  EXPECT_EQ(
      refuse(staged("signal(fwd, K, over=[gpu], kind=event) bind(fwd, K, over=[gpu], via=sm)")),
      "error[S454]: bind: `K` over `gpu` signals by `event`, and `sm` gives `flag` and `counter`; "
      "change the signal first");
  EXPECT_EQ(
      refuse(staged("bind(fwd, K, over=[gpu], via=proxy) "
                    "signal(fwd, K, over=[gpu], fence=nic) bind(fwd, K, over=[gpu], via=tma)")),
      "error[S455]: bind: `K` over `gpu` has fence `nic`, which means nothing via `tma`");
  EXPECT_EQ(
      refuse(staged("bind(fwd, O, over=[gpu], via=multimem)")),
      "error[S456]: bind: `multimem` needs NVLink multicast, which no known machine has on; bind "
      "it via `sm`");
  EXPECT_EQ(
      refuse(staged("bind(fwd, O, over=[gpu], via=nccl) bind(fwd, O, over=[gpu], via=nccl)")),
      "error[S008]: nothing would change: the transport of `O` over `gpu` already has `nccl`; "
      "drop the step");
}

TEST(Signal, is_one_the_transport_gives) {
  EXPECT_EQ(refuse(staged("signal(fwd, K, over=[gpu])")),
            "error[S461]: signal: neither `kind=` nor `fence=` is given");
  EXPECT_EQ(
      refuse(staged("signal(fwd, K, over=[gpu], kind=counter)")),
      "error[S462]: signal: `K` over `gpu` goes via `ce`, which gives `event` and `flag`, not "
      "`counter`; bind another transport first");
  EXPECT_EQ(
      refuse(staged("bind(fwd, O, over=[gpu], via=nccl) signal(fwd, O, over=[gpu], kind=flag)")),
      "error[S462]: signal: `O` over `gpu` goes via `nccl`, which gives its own signal only, not "
      "`flag`; bind another transport first");
  EXPECT_EQ(refuse(staged("signal(fwd, K, over=[gpu], kind=flag, fence=put)")),
            "error[S463]: signal: `K` over `gpu` goes via `ce`, which takes no fence (`put`)");
  EXPECT_EQ(
      refuse(staged("signal(fwd, K, over=[gpu], kind=flag) "
                    "signal(fwd, K, over=[gpu], kind=flag)")),
      "error[S008]: nothing would change: the signal of `K` over `gpu` already has `flag`; drop "
      "the step");
}

TEST(Compress, rounds_only_what_the_numerics_contract_allows) {
  EXPECT_EQ(refuse(staged("compress(fwd, K, over=[gpu], wire=i8)")),
            "error[S471]: compress: wire dtype `i8` is not floating");
  EXPECT_EQ(refuse(staged("compress(fwd, O, over=[gpu], wire=bf16)")),
            "error[S472]: compress: `O` over `gpu` must travel as it is: it drains under `lse`");
  EXPECT_EQ(refusal_of("scan", "one",
                       "stage(second, i, over=[gpu], how=bulk) compress(second, i, over=[gpu], "
                       "wire=bf16)"),
            "error[S472]: compress: `i` over `gpu` must travel as it is: `i` is i32");
  EXPECT_EQ(refusal_of("scan", "one",
                       "drain(third, s, over=[gpu], how=bulk) compress(third, s, over=[gpu], "
                       "wire=bf16)"),
            "error[S472]: compress: `s` over `gpu` must travel as it is: it drains under `=`");
  EXPECT_EQ(refuse(staged("compress(fwd, K, over=[gpu], wire=f32)")),
            "error[S473]: compress: wire `f32` is wider than what `K` over `gpu` carries, bf16");
  EXPECT_EQ(refusal_of("gemm", "one",
                       "drain(mm, C, over=[gpu], how=bulk) compress(mm, C, over=[gpu], wire=f32)"),
            "accepted");
  EXPECT_EQ(refusal_of("gemm", "one",
                       "drain(mm, C, over=[gpu], how=bulk) compress(mm, C, over=[gpu], wire=f64)"),
            "error[S473]: compress: wire `f64` is wider than what `C` over `gpu` carries, f32");
  EXPECT_EQ(refusal_of("gemm", "one",
                       "stage(mm, A, over=[gpu], how=inline) compress(mm, A, over=[gpu], "
                       "wire=f8e4m3)"),
            "error[S474]: compress: `A` over `gpu` is read in place and has no wire");
  EXPECT_EQ(
      refuse(staged("compress(fwd, K, over=[gpu], wire=bf16) "
                    "compress(fwd, K, over=[gpu], wire=bf16)")),
      "error[S008]: nothing would change: the wire of `K` over `gpu` already has `bf16`; drop the "
      "step");
}

}  // namespace moves_test
}  // namespace harpe
